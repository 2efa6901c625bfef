// SPDX-License-Identifier: Apache-2.0
// Tune tables: which algorithm and tuning serve which call, as JSON that can be printed, measured and read back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/selection/catalogue.hpp"

namespace torii {

/// One row of a tune file. It serves calls of `collective` on `ranks_min`..`ranks_max` ranks on that kind of topology,
/// whose vector has `bytes_min`..`bytes_max` bytes. The first row that fits and whose algorithm accepts the request
/// wins.
struct TuneRow {
  std::optional<Topology::Kind> topology = {};  ///< none: any. Meshes are tori
  bool is_switch = false;                       ///< with Kind::node: for ranks on several nodes; without, on one node
  Collective collective = Collective::allreduce;
  int ranks_min = 1;
  int ranks_max = 1 << 20;
  std::size_t bytes_min = 0;
  std::size_t bytes_max = SIZE_MAX;
  std::string_view algorithm = {};  ///< a name of the catalogue, which outlives every table
  Tuning tuning;
  bool operator==(const TuneRow&) const = default;
};

/// The parts of a machine that decide which rows are fast on it.
struct MachineShape {
  int cpus = 1;        ///< that ranks may use
  int l3_groups = 1;   ///< groups of these CPUs that share a third-level cache
  int numa_nodes = 1;  ///< of these CPUs
  int ranks = 1;       ///< on the machine; the most that were measured
  bool operator==(const MachineShape&) const = default;
};

/// A tune file: JSON {"version": 1, "rows": [{"collective", "ranks": [min, max], "bytes_min" (without it 0),
/// "bytes_max" (null: any), "algorithm", "segment", "slots", "window", "one_shot", "radix" and "lanes" (to each site;
/// without them a model chooses), "topology" ("node": ranks on one node, "torus", "tree" or "switch": ranks on several
/// nodes of which no more is known; without it all)}], "streams": [{"from", "to", "rates"}], "machine": {"cpus",
/// "l3_groups", "numa_nodes", "ranks"}}. Rows are in the order in which they are tried. Among them, "built-in torus",
/// "built-in switch" and "built-in node" mean the rows of one committed table. "built-in" in place of the list means
/// all three. Streams and machine may be left out.
class TuneTable {
 public:
  static constexpr int kVersion = 1;
  /// Throws Error{invalid_argument} naming `origin`, the row and the value that is wrong and what would be right.
  static TuneTable parse(std::string_view json, const std::string& origin);
  /// The committed tables: collectives/selection/tune_table_torus.json and tune_table_switch.json, then
  /// tune_table.json, measured on nodes; each says where, when and how. Without the rows of algorithms that are not
  /// in the catalogue, which a program may have replaced by a shorter one.
  static const TuneTable& built_in();
  /// The table in the file at `path`, or built_in() for an empty path.
  static TuneTable load(const std::string& path);

  const std::vector<TuneRow>& rows() const noexcept { return rows_; }
  const std::vector<StreamRates>& streams() const noexcept { return streams_; }
  /// The machine on which its rows for nodes were measured, if it says so.
  const std::optional<MachineShape>& machine() const noexcept { return machine_; }
  /// All ranks compare it.
  std::uint64_t digest() const noexcept { return digest_; }

 private:
  std::vector<TuneRow> rows_;
  std::vector<StreamRates> streams_;
  std::optional<MachineShape> machine_;
  std::uint64_t digest_ = 0;
};

}  // namespace torii
