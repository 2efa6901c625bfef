// SPDX-License-Identifier: Apache-2.0
// From a command line to a selected algorithm, its plans and their proof, by the same steps as a team's call.
#include "tools/torii-info/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/team/team.hpp"
#include "collectives/selection/catalogue.hpp"
#include "reduce_kernels/types.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/base/status.hpp"
#include "runtime/plan/crediting.hpp"
#include "runtime/topology/rank_map.hpp"
#include "tools/leaf_intervals.hpp"
#include "tools/torii-info/tune.hpp"
#include "transports/network/setup.hpp"

namespace torii::tools {
namespace {

constexpr int kRanksDefault = 4;
constexpr int kRanksShownMost = 16;
/// Up to this many ranks a proof takes less than a second and is always made.
constexpr int kRanksVerifiedMost = 64;
/// Without a proof, declared orders are worked out for this many blocks only.
constexpr int kOrdersDeclaredMost = 16;

Collective read_collective(const std::string& text) {
  if (const auto collective = parse_collective(text)) return *collective;
  std::string names;
  for (int i = 0; i < kCollectiveCount; ++i) names += " " + std::string(name(static_cast<Collective>(i)));
  invalid(fmt::format("'{}' is no collective; it must be one of{}", text, names));
}

Topology read_topology(const Settings& settings, const std::optional<int>& ranks) {
  const std::string text = settings.topology == "auto" ? "node" : settings.topology;
  if (text.starts_with("tree:") && !ranks) {
    const std::string content = TreeTopology::read(text.substr(5));
    return Topology::parse_tree(text, content, TreeTopology::parse(content, text.substr(5)).ranks());
  }
  const Topology topology = Topology::parse(text, ranks.value_or(text == "node" ? kRanksDefault : ranks_named(text)));
  return with_rank_map(topology, read_rank_map(settings.rank_map),
                       settings.rank_map.starts_with("list:") ? "of the settings" : settings.rank_map);
}

void check_barrier(const PlanQuestion& question) {
  for (const auto& [flag, given] :
       {std::pair{"--bytes", question.bytes.has_value()}, std::pair{"--type", question.type.has_value()}}) {
    if (given) invalid(std::string(flag) + " has no meaning for a barrier, which moves no vector");
  }
}

/// The vector's length in whole elements, and in whole blocks for collectives of one block per rank.
void read_vector(const PlanQuestion& question, PlanAnswer& answer) {
  const PlanRequest& request = answer.selected.request;
  const std::string bytes = question.bytes.value_or("1M");
  answer.type = question.type.value_or("f32");
  const auto type = parse_type(answer.type);
  if (!type) invalid(fmt::format("--type is '{}'; it must be a type such as f32, i64 or bf16", answer.type));
  const auto wanted = parse_bytes(bytes);
  if (!wanted || *wanted > (std::size_t{1} << 48)) {
    invalid(fmt::format("--bytes is '{}'; it must be a number up to 2^48, with K, M or G", bytes));
  }
  const bool per_rank = has_block_per_rank(request.collective);
  const std::size_t block_bytes =
      size_of(*type) * (per_rank ? static_cast<std::size_t>(request.topology.ranks()) : std::size_t{1});
  answer.bytes = *wanted / block_bytes * block_bytes;
  answer.elements = answer.bytes / size_of(*type);
  if (combines(request.collective) && (answer.settings.wide_wire || request.determinism == Determinism::canonical)) {
    answer.widening = widening_of(*type);
  }
}

/// A list of leaves says how many ranks there are.
std::optional<int> ranks_of(const PlanQuestion& question) {
  const bool is_list = question.leaves->find(',') != std::string::npos;
  if (question.ranks || !is_list) return question.ranks;
  return read_intervals(*question.leaves, question.ranks).ranks();
}

/// As a team makes a call over leaves: canonical, small floats as a call of float, and of its own plans only where
/// canonical ones do not serve.
void read_leaves(const PlanQuestion& question, PlanAnswer& answer) {
  PlanRequest& request = answer.selected.request;
  if (!combines(request.collective) || is_prefix(request.collective)) {
    invalid(fmt::format("--leaves has no meaning for {}", name(request.collective)));
  }
  answer.leaves = std::make_shared<const LeafIntervals>(read_intervals(*question.leaves, request.topology.ranks()));
  request.determinism = Determinism::canonical;
  if (!answer.leaves->is_one_subtree_each()) request.leaves = answer.leaves.get();
}

int read_root(const PlanQuestion& question, const PlanRequest& request) {
  if (question.root && !has_root(request.collective)) {
    invalid(fmt::format("--root has no meaning for {}", name(request.collective)));
  }
  const int root = question.root.value_or(0);
  if (root < 0 || root >= request.topology.ranks()) {
    invalid(fmt::format("--root is {}; it must be from 0 to {}", root, request.topology.ranks() - 1));
  }
  return root;
}

std::string_view origin_of(const Settings& settings, std::string_view variable) {
  for (const SettingView& setting : settings.list()) {
    if (setting.name == variable) return name(setting.origin);
  }
  return "";
}

/// The table's answer, or that it has none.
std::string row_reason(const TuneTable& table, const PlanAnswer& answer, const std::string& forced) {
  const std::string table_name =
      answer.settings.tune_file.empty() ? "the built-in tune table" : answer.settings.tune_file;
  const auto row = answer.selected.row;
  if (!row) {
    return fmt::format("no row of {} fits: {}the default tuning", table_name,
                       forced.empty() ? "the first of the catalogue that can, with " : "");
  }
  return fmt::format("row {} of {}: {}", *row, table_name, row_text(table.rows()[*row]));
}

std::string reason(const TuneTable& table, const PlanAnswer& answer) {
  const Settings& settings = answer.settings;
  const bool forced = settings.algorithm != "auto";
  std::string text;
  if (forced) text = fmt::format("forced by TORII_ALGORITHM ({}); ", origin_of(settings, "TORII_ALGORITHM"));
  const std::string& explanation = answer.selected.explanation;
  text += explanation.empty() ? row_reason(table, answer, forced ? settings.algorithm : "") : explanation;
  for (const auto& [knob, is_set] :
       {std::pair{"TORII_SEGMENT", settings.segment_bytes != 0}, std::pair{"TORII_SLOTS", settings.slots != 0},
        std::pair{"TORII_WINDOW", settings.window != 0}}) {
    if (is_set) text += fmt::format("; {} ({}) overrides it", knob, origin_of(settings, knob));
  }
  return text;
}

/// As a team does: slots and segments are made to fit into its standing rings.
void fit(PlanAnswer& answer) {
  Selected& selected = answer.selected;
  const Tuning asked = selected.request.tuning;
  const int ranks = selected.request.topology.ranks();
  const int channels = answer.settings.channels;
  answer.rings = answer.several_nodes
                     ? distant_ring_sizes(1, ranks, channels, answer.settings.slots >= kSharedSlotsLeast)
                     : ring_sizes(ranks, channels);
  const Plan plan = fitting_plan(selected, 0, 1, answer.widening, answer.rings);
  const Tuning& tuning = selected.request.tuning;
  if (tuning.segment_bytes != asked.segment_bytes) {
    answer.why +=
        fmt::format("; segments of {} instead, to fit into the team's outbox", bytes_text(tuning.segment_bytes));
  }
  if (tuning.slots != asked.slots) {
    answer.why += fmt::format("; {} slots instead, as many as rings have entries", tuning.slots);
  }
  answer.extent_bytes = own_outbox_bytes(plan, tuning.segment_bytes, answer.widening, answer.rings) / 2;
}

void add_orders(const Algorithm& algorithm, int blocks, PlanAnswer& answer) {
  const PlanRequest& request = answer.selected.request;
  if (answer.verdict && answer.verdict->ok()) {
    answer.orders = answer.verdict->result_expression;
  } else if (combines(request.collective) && algorithm.order != nullptr) {
    const int orders = is_prefix(request.collective) ? request.topology.ranks() : blocks;
    for (int block = 0; block < std::min(orders, kOrdersDeclaredMost); ++block) {
      answer.orders.push_back(algorithm.order(request, block, answer.pool));
    }
  }
}

std::vector<Plan> plans_shown(const Algorithm& algorithm, const PlanRequest& request, const std::optional<int>& rank) {
  const int ranks = request.topology.ranks();
  if (rank && (*rank < 0 || *rank >= ranks)) {
    invalid(fmt::format("--rank is {}; it must be from 0 to {}", *rank, ranks - 1));
  }
  if (!rank && ranks <= kRanksShownMost) return plan_all(algorithm, request);
  return {algorithm.plan(request, rank.value_or(0))};
}

}  // namespace

PlanAnswer answer(const PlanQuestion& question) {
  PlanAnswer answer;
  answer.settings = Settings::load(question.overrides, nullptr, algorithm_names());
  answer.several_nodes = question.several_nodes;
  const Settings& settings = answer.settings;
  PlanRequest& request = answer.selected.request;
  request.collective = read_collective(question.collective);
  request.topology = read_topology(settings, question.leaves ? ranks_of(question) : question.ranks);
  request.root = read_root(question, request);
  request.determinism = settings.determinism;
  if (question.leaves) read_leaves(question, answer);
  if (request.collective == Collective::barrier) {
    check_barrier(question);
  } else {
    read_vector(question, answer);
  }
  if (answer.leaves != nullptr && !answer.leaves->is_one_each()) answer.widening = Widening::none;
  request.wide_wire = answer.wide();

  const TuneTable table = TuneTable::load(settings.tune_file);
  const Forced forced = {settings.algorithm, settings.segment_bytes, settings.slots, settings.window};
  // `request` now has the tuning.
  answer.selected = select(table, forced, request, answer.bytes, answer.several_nodes, transports::put_bytes(true));
  answer.why = reason(table, answer);
  fit(answer);
  const Algorithm& algorithm = *answer.selected.algorithm;
  for (const Algorithm& other : catalogue()) {
    if (other.name != algorithm.name) answer.others.emplace_back(other.name, other.why_not(request));
  }

  answer.shown = plans_shown(algorithm, request, question.rank);
  if (question.svg) answer.all = plan_all(algorithm, request);
  if (question.verify || request.topology.ranks() <= kRanksVerifiedMost) {
    answer.verdict = verify(algorithm, request, answer.pool);
  }
  const Plan& plan = answer.shown.front();
  add_orders(algorithm, plan.blocks, answer);
  return answer;
}

}  // namespace torii::tools
