// SPDX-License-Identifier: Apache-2.0
// Rows for people (a table as nccl-tests print it) and for programs (JSON lines, CSV).
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "perf/common/measure.hpp"
#include "perf/common/options.hpp"
#include "runtime/base/output.hpp"

namespace torii::perf {

/// One measured cell.
struct Row {
  torii_collective collective;
  std::string algorithm, transport, isa;
  int ranks = 0, engines = 0, root = -1;
  std::vector<int64_t> engine_bytes;  ///< put by each engine during the timed calls, all ranks together
  size_t segment_bytes = 0, bytes = 0, elements = 0;
  torii_type type = TORII_F32;
  torii_op op = TORII_SUM;
  Statistics time;
  std::optional<int64_t> wrong;  ///< none: not checked
  std::optional<uint64_t> hash;
};

/// Only rank 0 makes one.
class Report {
 public:
  /// Throws Error when a file cannot be written.
  explicit Report(const Options& options);
  void header(int ranks);
  void add(const Row& row);
  /// A remark above or below the table.
  void note(const std::string& text);
  /// Says on a terminal what takes so long; `text` is replaced by the next one.
  void progress(const std::string& text);

 private:
  void add_csv(const Row& row);

  const Options& options_;
  Output json_, csv_;
  std::FILE* table_;
  bool csv_has_header_ = false;
  bool progress_shown_ = false;
};

}  // namespace torii::perf
