// SPDX-License-Identifier: Apache-2.0
// Reads and checks the question of a simulation.
#include "tools/torii-sim/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "reduce_kernels/kernels.hpp"
#include "runtime/base/status.hpp"
#include "tools/leaf_intervals.hpp"
#include "tools/torii-sim/synthetic_node.hpp"

namespace torii::tools {
namespace {

constexpr int kSwitchRanksMost = 1 << 14;

/// Bytes that a rank can send and receive in a microsecond: over the links of an inner node of a mesh, over a rank's
/// links of a tree, or over one link to a switch.
struct Rates {
  double out;
  double in;
};

Rates rates_of(const SimOptions& options, const Topology& topology, int rank) {
  const double one = options.bandwidth_GBps * 1e3;
  if (topology.kind() == Topology::Kind::node) return {one, one};
  Rates rates = {0, 0};
  if (const TreeTopology* tree = topology.tree()) {
    for (const TreeHop hop : tree->hops(tree->node_of(rank))) {
      const TreeLink& link = tree->links()[static_cast<std::size_t>(hop.link)];
      rates.out += 1e-6 * static_cast<double>(link.bandwidth[static_cast<std::size_t>(hop.direction)]);
      rates.in += 1e-6 * static_cast<double>(link.bandwidth[static_cast<std::size_t>(1 - hop.direction)]);
    }
    return rates;
  }
  int links = 0;
  for (int d = 0; d < 3; ++d) {
    const int extent = topology.extents()[static_cast<std::size_t>(d)];
    if (extent > 1) links += extent == 2 && !topology.wraps(d) ? 1 : 2;
  }
  if (options.ports) links = 1;
  const double engines = options.engine_rates.empty()
                             ? options.engines
                             : std::accumulate(options.engine_rates.begin(), options.engine_rates.end(), 0.0);
  return {std::min(engines, static_cast<double>(links)) * one, links * one};
}

/// Bytes that a rank has to send and receive with any algorithm.
Rates needs_of(Collective collective, double bytes, double ranks, bool is_root) {
  const double block = bytes / ranks;
  const double others = bytes - block;
  switch (collective) {
    case Collective::broadcast:
      return is_root ? Rates{bytes, 0} : Rates{0, bytes};
    case Collective::scatter:
      return is_root ? Rates{others, 0} : Rates{0, block};
    case Collective::reduce:
      return is_root ? Rates{0, bytes} : Rates{bytes, 0};
    case Collective::gather:
      return is_root ? Rates{0, others} : Rates{block, 0};
    case Collective::all_gather:
      return {block, others};
    case Collective::reduce_scatter:
      return {others, block};
    case Collective::alltoall:
      return {others, others};
    case Collective::scan:
    case Collective::exscan:
      return {0, 0};  // differs from rank to rank; the sum over all ranks counts
    default:
      return {bytes, bytes};
  }
}

/// --ranks gives the ranks of `node`, the file those of a tree, the extents those of others.
Topology read_topology(const SimOptions& options) {
  if (options.topology.starts_with(kSyntheticNode)) return read_synthetic_node(options.topology).groups;
  if (options.topology.starts_with("node:")) {
    invalid(
        fmt::format("--topology is {}: nothing says what lies between its ranks; let hwloc describe it, as in "
                    "hwloc:pack:2 l3:12 core:8",
                    options.topology));
  }
  if (options.topology.starts_with("tree:")) {
    const std::string path = options.topology.substr(5);
    return Topology::of_tree(TreeTopology::load(path), path);
  }
  if (options.topology == "node" && options.ranks == 0) {
    invalid(fmt::format("--topology node needs --ranks, a number from 1 to {}", kSwitchRanksMost));
  }
  if (options.topology == "node" && (options.ranks < 1 || options.ranks > kSwitchRanksMost)) {
    invalid(fmt::format("--ranks is {}; on a node it must be from 1 to {}", options.ranks, kSwitchRanksMost));
  }
  const int ranks = options.topology == "node" ? options.ranks : ranks_named(options.topology);
  return Topology::parse(options.topology, std::max(ranks, 1));
}

std::optional<Sharing> read_sharing(const SimOptions& options) {
  if (options.sharing == "min") return Sharing::min;
  if (options.sharing == "maxmin") return Sharing::maxmin;
  return std::nullopt;
}

/// Between the cores of a node there are no engines or signals whose time an option could give: all is in its links.
simulated::NetworkModel read_network(const SimOptions& options, const Topology& topology) {
  simulated::NetworkModel network = {.topology = topology,
                                     .sharing = read_sharing(options),
                                     .engines = options.engines,
                                     .engine_rates = options.engine_rates,
                                     .alpha_us = options.alpha_us,
                                     .overhead_us = options.overhead_us,
                                     .bandwidth_GBps = options.bandwidth_GBps,
                                     .ports = options.ports,
                                     .jitter_us = options.jitter_us,
                                     .seed = options.seed};
  if (!options.topology.starts_with(kSyntheticNode)) return network;
  const SimOptions untouched;
  for (const auto& [flag, is_set] : {std::pair{"--engines", options.engines != untouched.engines},
                                     std::pair{"--engine-rates", !options.engine_rates.empty()},
                                     std::pair{"--alpha", options.alpha_us != untouched.alpha_us},
                                     std::pair{"--overhead", options.overhead_us != untouched.overhead_us},
                                     std::pair{"--bandwidth", options.bandwidth_GBps != untouched.bandwidth_GBps},
                                     std::pair{"--ports", options.ports}}) {
    if (is_set)
      invalid(
          fmt::format("{} has no meaning for {}: cores and caches have costs of their own", flag, options.topology));
  }
  network.topology = read_synthetic_node(options.topology).network;
  network.engines = 1;
  network.alpha_us = 0;
  network.overhead_us = 0;
  return network;
}

/// As a team makes a call over leaves: canonical, and of its own plans only where canonical ones do not serve.
void read_leaves(const SimOptions& options, Question& question) {
  PlanRequest& request = question.request;
  if (!combines(request.collective) || is_prefix(request.collective)) {
    invalid(fmt::format("--leaves has no meaning for {}", options.collective));
  }
  if (options.data) invalid("--data and --leaves exclude each other: the operands are not those of ranks");
  question.leaves = std::make_shared<const LeafIntervals>(read_intervals(options.leaves, request.topology.ranks()));
  request.determinism = Determinism::canonical;
  if (!question.leaves->is_one_subtree_each()) request.leaves = question.leaves.get();
}

}  // namespace

Question read_question(const SimOptions& options) {
  Question question;
  PlanRequest& request = question.request;
  request.collective = *parse_collective(options.collective);
  request.topology = read_topology(options);
  if (options.root != 0 && !has_root(request.collective)) {
    invalid(fmt::format("--root has no meaning for {}", options.collective));
  }
  if (options.root < 0 || options.root >= request.topology.ranks()) {
    invalid(fmt::format("--root is {}; it must be from 0 to {}", options.root, request.topology.ranks() - 1));
  }
  request.root = options.root;
  if (!options.leaves.empty()) read_leaves(options, question);
  if (options.watched < 0 || options.watched >= request.topology.ranks()) {
    invalid(fmt::format("--watched is {}; it must be from 0 to {}", options.watched, request.topology.ranks() - 1));
  }
  const auto type = parse_type(options.type);
  if (!type) invalid(fmt::format("--type is '{}'; it must be a type such as f32, i64 or bf16", options.type));
  question.type = *type;
  const auto op = parse_op(options.op);
  if (!op || *op == Op::user)
    invalid(fmt::format("--op is '{}'; it must be an operation such as sum or max", options.op));
  question.op = *op;
  const char* const reason = combines(request.collective) ? kernels::why_not(*op, *type) : nullptr;
  if (reason != nullptr)
    invalid(fmt::format("--op {} is not defined for --type {}: {}", options.op, options.type, reason));
  if (request.collective != Collective::barrier) {
    const std::size_t parts =
        has_block_per_rank(request.collective) ? static_cast<std::size_t>(request.topology.ranks()) : 1;
    question.bytes = read_size("--bytes", options.bytes) / (parts * size_of(*type)) * (parts * size_of(*type));
  }
  question.network = read_network(options, request.topology);
  return question;
}

double bound_us(const SimOptions& options, const Question& question) {
  const Topology& topology = question.network.topology;
  const double ranks = topology.ranks();
  const Collective collective = question.request.collective;
  if (ranks == 1) return 0;
  if (collective == Collective::barrier) return question.network.alpha_us;
  const auto bytes = static_cast<double>(question.bytes);
  double least_us = 0;
  Rates all = {0, 0};
  for (int rank = 0; rank < topology.ranks(); ++rank) {
    const Rates rates = rates_of(options, topology, rank);
    const Rates needs = needs_of(collective, bytes, ranks, rank == question.request.root);
    least_us = std::max({least_us, needs.out / rates.out, needs.in / rates.in});
    all = {all.out + rates.out, all.in + rates.in};
  }
  // Every rank's operand or block has to reach other ranks, and in an allreduce so does the result.
  const bool has_own_blocks = has_block_per_rank(collective) && !has_root(collective);
  const double moved = is_prefix(collective) || has_own_blocks ? bytes * (ranks - 1)
                       : collective == Collective::allreduce   ? 2 * bytes * (ranks - 1)
                                                               : 0;
  least_us = std::max(least_us, moved / std::min(all.out, all.in));
  if (collective == Collective::alltoall && topology.kind() == Topology::Kind::torus) {
    least_us = std::max(least_us, alltoall_bound(topology) * bytes / ranks / (options.bandwidth_GBps * 1e3));
  }
  return question.network.alpha_us + least_us;
}

}  // namespace torii::tools
