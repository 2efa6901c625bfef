// SPDX-License-Identifier: Apache-2.0
// The search for a schedule, and the pipelined chain, as rows of torii-sim.
#include "tools/torii-sim/tree_broadcast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "collectives/drawing/draw_schedule.hpp"
#include "collectives/selection/catalogue.hpp"
#include "runtime/base/status.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-sim/clock.hpp"
#include "tools/torii-sim/options.hpp"
#include "tools/torii-sim/rows.hpp"

namespace torii::tools {
namespace {

constexpr std::int64_t kStepsWithBudget = INT64_MAX / 2;

struct TreeQuestion {
  Topology topology;
  PlanRequest request;
  std::size_t bytes = 0;
};

TreeQuestion read_tree_question(const SimOptions& options) {
  const std::string path = options.topology.substr(options.topology.find(':') + 1);
  TreeQuestion question;
  question.topology = Topology::of_tree(TreeTopology::load(path), path);
  question.bytes = read_size("--bytes", options.bytes);
  const int ranks = question.topology.ranks();
  const int root = options.root != 0 ? options.root : question.topology.tree()->root();
  if (root < 0 || root >= ranks) {
    throw Error(Status::invalid_argument, fmt::format("--root is {}; it must be from 0 to {}", root, ranks - 1));
  }
  question.request.collective = Collective::broadcast;
  question.request.topology = question.topology;
  question.request.root = root;
  return question;
}

SimRow row_of(const SimOptions& options, const TreeQuestion& question, const char* algorithm) {
  SimRow row;
  row.collective = "broadcast";
  row.algorithm = algorithm;
  row.topology = options.topology;
  row.ranks = question.topology.ranks();
  row.engines = options.engines;
  row.bytes = question.bytes;
  row.sharing = "reserved";
  return row;
}

/// The most messages that a rank's copy has behind it.
int height_of(const Schedule& schedule, int ranks) {
  std::vector<int> heights(static_cast<std::size_t>(ranks), 0);
  for (const Transfer& transfer : schedule.transfers) {
    heights[static_cast<std::size_t>(transfer.receiver)] = heights[static_cast<std::size_t>(transfer.sender)] + 1;
  }
  return *std::max_element(heights.begin(), heights.end());
}

/// Bytes over the directed link that most transfers cross; each transfer carries the whole message.
std::uint64_t most_bytes(const TreeTopology& tree, const std::vector<std::pair<int, int>>& pairs, std::size_t bytes) {
  std::vector<std::uint64_t> load(2 * tree.links().size(), 0);
  for (const auto& [sender, receiver] : pairs) {
    for (const TreeHop hop : tree.way(tree.node_of(sender), tree.node_of(receiver))) {
      load[static_cast<std::size_t>(2 * hop.link + hop.direction)] += bytes;
    }
  }
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

SimRow scheduled_row(const SimOptions& options, const TreeQuestion& question) {
  const TreeTopology& tree = *question.topology.tree();
  ScheduleBudget budget;
  if (options.budget_s) budget = {kStepsWithBudget, *options.budget_s};
  const Clock::time_point begun = Clock::now();
  const Schedule schedule = find_schedule(tree, question.request.root, question.bytes, budget);
  SimRow row = row_of(options, question, "scheduled");
  row.planning_s = seconds_since(begun);
  row.time_us = 1e6 * schedule.time_s;
  row.bound_us = 1e6 * schedule.bound_s;
  row.height = height_of(schedule, row.ranks);
  std::vector<std::pair<int, int>> pairs;
  Json transfers = Json::array();
  for (const Transfer& transfer : schedule.transfers) {
    pairs.emplace_back(transfer.sender, transfer.receiver);
    transfers.push_back({{"sender", transfer.sender},
                         {"receiver", transfer.receiver},
                         {"start_us", 1e6 * transfer.start_s},
                         {"end_us", 1e6 * transfer.end_s}});
  }
  row.link_bytes_max = most_bytes(tree, pairs, question.bytes);
  row.more = {{"proven", schedule.proven},
              {"gap", schedule.gap()},
              {"nodes", schedule.nodes},
              {"search_s", row.planning_s},
              {"schedule", std::move(transfers)}};
  if (options.json.empty() && options.csv.empty()) std::fputs(draw_schedule_text(schedule).c_str(), stdout);
  return row;
}

SimRow chain_row(const SimOptions& options, const TreeQuestion& question) {
  const TreeTopology& tree = *question.topology.tree();
  const Clock::time_point begun = Clock::now();
  const CostEstimate estimate = find_algorithm("chain")->estimate({.plan = question.request, .bytes = question.bytes});
  const std::size_t segment_bytes =
      options.segment != "auto" ? read_size("--segment", options.segment) : estimate.tuning.segment_bytes;
  const std::vector<int> order = tree.depth_first(question.request.root);
  SimRow row = row_of(options, question, "chain");
  row.time_us = 1e6 * chain_time_s(tree, question.request.root, question.bytes, segment_bytes);
  std::vector<std::pair<int, int>> pairs;
  std::int64_t slowest = INT64_MAX;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    pairs.emplace_back(order[i], order[i + 1]);
    for (const TreeHop hop : tree.way(tree.node_of(order[i]), tree.node_of(order[i + 1]))) {
      const TreeLink& link = tree.links()[static_cast<std::size_t>(hop.link)];
      slowest = std::min(slowest, link.bandwidth[static_cast<std::size_t>(hop.direction)]);
    }
  }
  // The slowest link of this chain carries everything.
  row.bound_us = pairs.empty() ? 0 : 1e6 * static_cast<double>(question.bytes) / static_cast<double>(slowest);
  row.height = static_cast<int>(pairs.size());
  row.link_bytes_max = most_bytes(tree, pairs, question.bytes);
  row.planning_s = seconds_since(begun);
  row.more = {{"segment_bytes", segment_bytes}, {"chain", order}};
  return row;
}

}  // namespace

int run_tree_broadcast(const SimOptions& options, RowWriter& rows) {
  const TreeQuestion question = read_tree_question(options);
  if (options.algorithm == "scheduled") {
    rows.add(scheduled_row(options, question));
  } else if (options.algorithm == "chain") {
    rows.add(chain_row(options, question));
  } else if (options.algorithm == "auto") {
    const SimRow scheduled = scheduled_row(options, question);
    const SimRow chain = chain_row(options, question);
    rows.add(chain.time_us < scheduled.time_us ? chain : scheduled);
  } else {
    throw Error(Status::invalid_argument, fmt::format("--algorithm is '{}'; on a tree of links it must be scheduled, "
                                                      "chain or auto",
                                                      options.algorithm));
  }
  return kDone;
}

}  // namespace torii::tools
