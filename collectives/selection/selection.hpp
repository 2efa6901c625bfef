// SPDX-License-Identifier: Apache-2.0
// Which algorithm runs a call: a table that can be printed, measured and read back, not nested ifs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/selection/catalogue.hpp"

namespace torii {

/// One row of a tune file. It serves calls of `collective` on `ranks_min`..`ranks_max` ranks on that kind of topology
/// whose vector has at most `bytes_max` bytes; the first row that fits and whose algorithm accepts the request wins.
struct TuneRow {
  std::optional<Topology::Kind> topology;  ///< none: any. Meshes are tori
  bool is_switch = false;                  ///< only a node's row: for ranks of which each two are a network apart
  Collective collective = Collective::allreduce;
  int ranks_min = 1;
  int ranks_max = 1 << 20;
  std::size_t bytes_max = SIZE_MAX;
  std::string algorithm;
  Tuning tuning;
};

/// What each of 1, 2, ... streams from one site to another carries when all of them do, as torii-info measure found it.
struct StreamRates {
  std::string from;  ///< as SiteWay in sites.hpp names a way
  std::string to;
  std::vector<double> rates;  ///< rates[p - 1]: of each of p streams, in bytes per second
};

/// A tune file: JSON {"version": 1, "rows": [{"collective", "ranks": [min, max], "bytes_max" (null: any), "algorithm",
/// "segment", "slots", "window", "one_shot", "radix" (floyd; without it the model's), "topology" ("node", "torus",
/// "tree" or "switch": ranks on several nodes of which no more is known; without it all), "lanes" (multilane: to each
/// site; without it the model chooses)}], "streams": [{"from", "to", "rates"}]}. Rows are in the order in which they
/// are tried; "built-in" in place of them stands for those of built_in(). Streams may be left out.
class TuneTable {
 public:
  static constexpr int kVersion = 1;
  /// Throws Error{invalid_argument} naming `origin`, the row and the value that is wrong and what would be right.
  static TuneTable parse(std::string_view json, const std::string& origin);
  /// The committed tables: collectives/selection/tune_table_torus.json and tune_table_switch.json, then
  /// tune_table.json, measured by perf/tune; each says where, when and how.
  static const TuneTable& built_in();
  /// The table in the file at `path`, or built_in() for an empty path.
  static TuneTable load(const std::string& path);

  const std::vector<TuneRow>& rows() const noexcept { return rows_; }
  const std::vector<StreamRates>& streams() const noexcept { return streams_; }
  /// The text whose digest all ranks compare.
  const std::string& text() const noexcept { return text_; }

 private:
  std::vector<TuneRow> rows_;
  std::vector<StreamRates> streams_;
  std::string text_;
};

/// What the embedder or a command line forces; empty or 0: the table decides.
struct Forced {
  std::string algorithm;  ///< empty or "auto"
  std::size_t segment_bytes = 0;
  int slots = 0;
  int window = 0;
};

struct Selected {
  const Algorithm* algorithm = nullptr;
  PlanRequest request;             ///< with the tuning filled in
  std::optional<std::size_t> row;  ///< of the table that serves the call; none when no row fits
  std::string by_model;            ///< why, where a model decides, beside a row or instead of one
};

/// Chooses for a vector of `bytes` bytes. `request.tuning` is ignored. On a tree of links only rows for trees are asked
/// for broadcast and reduce; where none fits, the model of the tree decides between scheduled and chain. Between sites
/// multilane serves, unless a row for trees says otherwise, a scatter or gather of long blocks, and a broadcast, reduce
/// or allreduce that the model of lanes finds quicker. Between nodes (on a torus, or where the ranks stand on
/// `several_nodes`), and beyond the ranks of direct's lists, short blocks of an alltoall go by floyd where its model
/// finds that quicker. Rows for switches are made for puts that cost nothing: where one costs as much as `put_bytes`
/// bytes (Capabilities), segments are at least as long as that. Bits do not depend on segments. Throws
/// Error{unsupported} with the algorithm's own reason and the list of those that can, when a forced algorithm cannot
/// serve the request.
Selected select(const TuneTable& table, const Forced& forced, PlanRequest request, std::size_t bytes,
                bool several_nodes = false, std::size_t put_bytes = 0);

}  // namespace torii
