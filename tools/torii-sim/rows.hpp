// SPDX-License-Identifier: Apache-2.0
// The result of a simulation: a line of text, one JSON object per line, or CSV; each is written at once.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/output.hpp"

namespace torii::tools {

using Json = nlohmann::ordered_json;

/// One simulated call. Times in us; for an alltoall by min or maxmin, which is a list of sends without plans, in units
/// of one message on an idle link.
struct SimRow {
  std::string collective;
  std::string algorithm;
  std::string topology;
  int ranks = 0;
  int engines = 0;
  std::size_t bytes = 0;  ///< the vector's length as for perf binaries
  std::string sharing;
  double time_us = 0;
  double bound_us = 0;  ///< no algorithm is faster; ratio = time / bound
  int links_shared = 0;
  double links_shared_percent = 0;
  std::uint64_t link_bytes_max = 0;
  int height = 0;  ///< the most messages that a value has behind it, one after the other
  double planning_s = 0;
  double wall_s = 0;           ///< of simulating, without planning
  Json more = Json::object();  ///< fields of this command only, written after the others
};

/// Writes rows as they come. Throws Error{invalid_argument} when a file cannot be written.
class RowWriter {
 public:
  /// Paths, - for stdout, empty for nowhere. Text goes to stdout unless something else does.
  RowWriter(const std::string& json_path, const std::string& csv_path);
  void add(const SimRow& row);

 private:
  void write_csv(const Json& object);

  Output json_;
  Output csv_;
  bool has_header_ = false;
};

}  // namespace torii::tools
