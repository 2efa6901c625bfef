// SPDX-License-Identifier: Apache-2.0
// The options of every command of torii-sim: one collective on one topology, over one model of a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace torii::tools {

/// The longest vector, and the largest end of a scan.
inline constexpr std::size_t kBytesMost = std::size_t{1} << 48;

/// The flags of all commands, as given; check() has checked them.
struct SimOptions {
  std::string collective;
  std::string algorithm = "auto";
  std::string topology;  ///< torus:4x4x4, mesh:8x8, torus:4x4x2m, tree:FILE, node (a switch), or hwloc:DESCRIPTION
  int ranks = 0;         ///< of node
  std::string bytes = "1M";
  std::string segment = "auto";  ///< bytes; auto: the best of a few; table: as a team, also slots and window
  std::string type = "f32";
  std::string op = "sum";
  std::string sharing = "auto";  ///< min, maxmin, packet; reserved: the model of schedules; auto: packet
  int root = 0;
  std::string leaves;                ///< of a sum over leaves, as read_intervals() reads them; empty: operands of ranks
  int engines = 4;                   ///< 1..16; controllers of an alltoall
  std::vector<double> engine_rates;  ///< of each engine, in link bandwidths; empty: a free engine takes the next put
  int slots = 0;                     ///< 0: as many as the network needs
  int window = 0;
  double alpha_us = 1.5;              ///< from an engine's start to the signal, in addition to the bytes
  double overhead_us = 0.2;           ///< an engine's time per put, in addition to the bytes
  double bandwidth_GBps = 5;          ///< of one directed link
  bool ports = false;                 ///< a node sends over one link at a time, and receives over one
  bool overlap = true;                ///< false: nothing moves down a tree before everything has moved up
  std::optional<double> reduce_GBps;  ///< operand bytes folded per second; none: folding takes no time
  double skew_us = 0;                 ///< ranks start within this time
  double jitter_us = 0;               ///< every put may take this much longer
  std::uint64_t seed = 1;             ///< of skew and jitter
  std::optional<double> budget_s;     ///< for searches
  bool common_root = false;           ///< all trees of trinaryx3 have root 0, in an allreduce too
  int radix = 0;                      ///< of floyd; 0: the model's
  bool every_segment = false;         ///< long pipelines are run to the end, not extended from their steady state
  bool data = false;                  ///< vectors and kernels are real, and the result is compared
  std::string svg_links;              ///< picture of the bytes on each link
  std::string svg_time_line;          ///< picture of the work of the engines of `watched`
  int watched = 0;
  std::vector<std::string> scan;  ///< the shapes, ranks, engines and bytes of a scan
  bool cliffs = false;            ///< judge the scan
  std::string figure;             ///< curves of the results, as SVG to this file
  std::string cost;               ///< what the simulations themselves took, as SVG to this file
  std::vector<double> split;      ///< speeds of folding in GB/s for which the figure splits the time
  std::string json;               ///< a file, or - for stdout
  std::string csv;
};

/// Bytes of a size with K, M or G. Throws Error{invalid_argument} naming `flag` and the text.
std::size_t read_size(const std::string& flag, const std::string& text);

/// Throws Error{invalid_argument} naming the flag and what would be right.
void check(const SimOptions& options);

}  // namespace torii::tools
