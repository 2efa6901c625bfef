// SPDX-License-Identifier: Apache-2.0
// Forced, tuned, offered: picks what serves a call.
#include "collectives/selection/selection.hpp"

#include <algorithm>
#include <cstdio>

#include "collectives/building/plan_builder.hpp"
#include "collectives/selection/modelled_bytes.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

/// Why the algorithm cannot serve the request, or an empty string. A radix that is still open is no reason.
std::string refusal(const Algorithm& algorithm, PlanRequest request) {
  if (request.tuning.radix == 0) request.tuning.radix = Tuning{}.radix;
  return algorithm.why_not(request);
}

/// Those of the catalogue that serve the request, for messages.
std::string able(const PlanRequest& request) {
  std::string names;
  for (const Algorithm& algorithm : catalogue()) {
    if (!refusal(algorithm, request).empty()) continue;
    names += names.empty() ? "" : ", ";
    names += algorithm.name;
  }
  return names.empty() ? "none" : names;
}

/// Why each row refuses the request that serves its collective for two ranks of a node.
std::string none_serves(const PlanRequest& request) {
  std::string text = "no algorithm of the catalogue serves " + std::string(torii::name(request.collective)) + " of " +
                     std::to_string(request.topology.ranks()) + " ranks, " +
                     std::string(torii::name(request.determinism));
  PlanRequest small = request;
  small.topology = Topology::node(2);
  small.root = 0;
  small.determinism = Determinism::run;
  small.leaves = nullptr;
  const char* between = ": ";
  for (const Algorithm& algorithm : catalogue()) {
    if (!refusal(algorithm, small).empty()) continue;
    text += between + std::string(algorithm.name) + ": " + refusal(algorithm, request);
    between = "; ";
  }
  return text;
}

Tuning forced_tuning(Tuning tuning, const Forced& forced) {
  if (forced.segment_bytes != 0) tuning.segment_bytes = forced.segment_bytes;
  if (forced.slots != 0) tuning.slots = forced.slots;
  if (forced.window != 0) tuning.window = forced.window;
  return tuning;
}

/// The bytes of one message if whole operands or blocks travel.
std::size_t one_message_bytes(const PlanRequest& request, std::size_t bytes) {
  return has_block_per_rank(request.collective) ? bytes / static_cast<std::size_t>(request.topology.ranks()) : bytes;
}

/// The longest vector whose operands or blocks fit into messages of that length.
std::size_t most_in_one_message(const PlanRequest& request, std::size_t message_bytes) {
  if (!has_block_per_rank(request.collective)) return message_bytes;
  const auto blocks = static_cast<std::size_t>(request.topology.ranks());
  return message_bytes * blocks + blocks - 1;
}

/// The shortest segment that is worth a put over a network. Two ranks forward nothing, so no rank waits for a segment
/// to be whole. Rounds of an all_gather bundle their segments, and what is one segment already needs no longer one.
std::size_t least_segment(const PlanRequest& request, std::size_t bytes, const Tuning& tuning, std::size_t put_bytes) {
  if (one_message_bytes(request, bytes) <= tuning.segment_bytes || request.collective == Collective::all_gather)
    return 0;
  return request.topology.ranks() == 2 ? 2 * put_bytes : put_bytes;
}

/// The first row for this call whose algorithm accepts it. `name`: only rows of this algorithm, if not empty. Narrows
/// `holds` to lengths for which it finds the same row.
const TuneRow* find_row(const TuneTable& table, const std::string& name, const EstimateRequest& asked,
                        bool names_topology, ByteInterval& holds) {
  PlanRequest request = asked.plan;
  const int ranks = request.topology.ranks();
  const Topology::Kind kind = request.topology.kind();
  const bool is_by_links = kind == Topology::Kind::tree &&
                           (request.collective == Collective::broadcast || request.collective == Collective::reduce);
  for (const TuneRow& row : table.rows()) {
    if (row.collective != request.collective || ranks < row.ranks_min || ranks > row.ranks_max) continue;
    if (row.topology.value_or(kind) != kind) continue;
    if (row.topology == Topology::Kind::node && row.is_switch != asked.several_nodes) continue;
    if (!name.empty() && row.algorithm != name) continue;
    if (!row.topology && (names_topology || (name.empty() && is_by_links))) continue;
    const ByteInterval of_row = {row.bytes_min, row.bytes_max};
    holds.narrow(asked.bytes, of_row);
    if (!of_row.contains(asked.bytes)) continue;
    request.tuning = row.tuning;
    if (refusal(*find_algorithm(row.algorithm), request).empty()) return &row;
  }
  return nullptr;
}

/// An algorithm, and what it estimates.
struct Bid {
  const Algorithm* algorithm = nullptr;
  CostEstimate estimate;
};

/// For what algorithms say of a call.
EstimateRequest as_modelled(EstimateRequest asked) {
  asked.bytes = modelled_bytes(asked.bytes);
  return asked;
}

/// The least estimate with a time, and the names and times of the others.
Bid least_estimate(const EstimateRequest& asked, std::string& others, ByteInterval& holds) {
  Bid best;
  PlanRequest request = asked.plan;
  const auto note = [&](const Bid& bid) {
    char time[32];
    std::snprintf(time, sizeof(time), " %.4g ms", 1e3 * bid.estimate.seconds);
    others += "; " + std::string(bid.algorithm->name) + time;
  };
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.estimate == nullptr) continue;
    Bid bid = {&algorithm, algorithm.estimate(as_modelled(asked))};
    holds.narrow(asked.bytes, lengths_seen_in(bid.estimate.holds));
    request.tuning = bid.estimate.tuning;
    if (bid.estimate.seconds == CostEstimate{}.seconds || !refusal(algorithm, request).empty()) continue;
    if (bid.estimate.seconds < best.estimate.seconds) std::swap(best, bid);
    if (bid.algorithm != nullptr) note(bid);
  }
  return best;
}

/// The choice without a row: the forced algorithm, or the first of the catalogue that accepts the call.
Bid without_row(const std::string& name, const EstimateRequest& asked, ByteInterval& holds) {
  PlanRequest request = asked.plan;
  request.tuning = default_tuning(request, asked.bytes);
  holds.narrow(asked.bytes, {0, default_one_shot_bytes(request)});
  for (const Algorithm& algorithm : catalogue()) {
    const bool is_wanted = name.empty() ? refusal(algorithm, request).empty() : algorithm.name == name;
    if (!is_wanted) continue;
    if (name.empty() || algorithm.estimate == nullptr) return {&algorithm, {.tuning = request.tuning}};
    // A forced algorithm's estimate may depend on the length though it leaves the choice to others.
    const EstimateRequest modelled = as_modelled(asked);
    holds.narrow(asked.bytes, lengths_seen_in({modelled.bytes, modelled.bytes}));
    return {&algorithm, {.tuning = algorithm.estimate(modelled).tuning}};
  }
  throw Error(Status::unsupported,
              name.empty() ? none_serves(request)
                           : "no algorithm is called '" + name + "'; those that serve this call: " + able(request));
}

}  // namespace

Selected select(const TuneTable& table, const Forced& forced, PlanRequest request, std::size_t bytes,
                bool several_nodes, std::size_t put_bytes) {
  const std::string name = forced.algorithm == "auto" ? "" : forced.algorithm;
  EstimateRequest asked = {request, bytes, several_nodes, table.streams()};
  Selected selected;
  ByteInterval& holds = selected.holds;
  const TuneRow* row = find_row(table, name, asked, false, holds);
  Bid chosen;
  if (name.empty()) {
    asked.is_tuned = find_row(table, name, asked, true, holds) != nullptr;
    chosen = least_estimate(asked, selected.explanation, holds);
  }
  const bool is_offered = chosen.algorithm != nullptr && (row == nullptr || row->algorithm != chosen.algorithm->name);
  if (is_offered) {
    row = nullptr;
  } else if (row != nullptr) {
    selected.row = static_cast<std::size_t>(row - table.rows().data());
    chosen = {find_algorithm(row->algorithm), {.tuning = row->tuning}};
    std::size_t& segment_bytes = chosen.estimate.tuning.segment_bytes;
    if (row->is_switch) {
      segment_bytes = std::max(segment_bytes, least_segment(request, bytes, row->tuning, put_bytes));
      holds.narrow(bytes, {0, most_in_one_message(request, row->tuning.segment_bytes)});
    }
  } else {
    chosen = without_row(name, asked, holds);
  }
  const Algorithm& algorithm = *chosen.algorithm;
  Tuning& tuning = request.tuning;
  tuning = forced_tuning(chosen.estimate.tuning, forced);
  const std::string reason = refusal(algorithm, request);
  if (!reason.empty()) {
    throw Error(Status::unsupported, std::string(algorithm.name) + " cannot serve this call: " + reason +
                                         " (those that can: " + able(request) + ")");
  }
  if (is_personalised(request.collective)) tuning.segment_bytes = segment_for_all_peers(request);
  std::string why = chosen.estimate.why;
  if (algorithm.complete != nullptr) {
    const EstimateRequest modelled = as_modelled(asked);
    const CostEstimate completed = algorithm.complete(modelled);
    tuning = completed.tuning;
    holds.narrow(bytes, lengths_seen_in({modelled.bytes, modelled.bytes}));
    if (!completed.why.empty()) why = completed.why;
  } else if (tuning.radix == 0) {
    tuning.radix = Tuning{}.radix;
  }
  // A one-shot operand or block travels in one message.
  if (tuning.one_shot) holds.narrow(bytes, {0, most_in_one_message(request, tuning.segment_bytes)});
  tuning.one_shot = tuning.one_shot && one_message_bytes(request, bytes) <= tuning.segment_bytes;
  selected.algorithm = &algorithm;
  selected.explanation = is_offered ? why + selected.explanation : why;
  selected.request = request;
  return selected;
}

}  // namespace torii
