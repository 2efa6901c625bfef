// SPDX-License-Identifier: Apache-2.0
// The parts that algorithms are made of.
#include "collectives/building/plan_builder.hpp"

#include <algorithm>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/topology/routing.hpp"

namespace torii {

PlanBuilder::PlanBuilder(const PlanRequest& request, int rank, Dealing dealing, int blocks) : request_(request) {
  plan_.rank = rank;
  plan_.ranks = request.topology.ranks();
  plan_.dealing = dealing;
  plan_.blocks = blocks;
  plan_.slots = request.tuning.slots;
}

StreamEnd PlanBuilder::in(const Stream& stream) {
  plan_.in.push_back(stream);
  if (balances_ties_) plan_.in.back().ties = balanced_ties(request_.topology, stream.peer, plan_.rank);
  return {static_cast<std::uint16_t>(plan_.in.size() - 1), 0};
}

StreamEnd PlanBuilder::out(const Stream& stream) {
  plan_.out.push_back(stream);
  if (balances_ties_) plan_.out.back().ties = balanced_ties(request_.topology, plan_.rank, stream.peer);
  return {static_cast<std::uint16_t>(plan_.out.size() - 1), 0};
}

StreamEnd PlanBuilder::at_position(const std::vector<Stream>& streams, const Stream& stream, int position,
                                   bool comes_in) {
  const auto is_it = [&](const Stream& one) { return one.peer == stream.peer && one.tag == stream.tag; };
  const auto found = stream.messages_per_segment == 1 ? streams.end() : std::ranges::find_if(streams, is_it);
  if (found == streams.end())
    return {(comes_in ? in(stream) : out(stream)).stream, static_cast<std::uint16_t>(position)};
  return {static_cast<std::uint16_t>(found - streams.begin()), static_cast<std::uint16_t>(position)};
}

PlanBuilder::Onward PlanBuilder::onward(int tag, int messages_per_segment) {
  const bool wide = request_.wide_wire;
  const bool has_whole_result = request_.collective == Collective::allreduce ||
                                request_.collective == Collective::scan ||
                                (request_.collective == Collective::exscan && plan_.rank != 0) ||
                                (request_.collective == Collective::reduce && plan_.rank == request_.root);
  const bool stands = has_whole_result && !wide;
  const Stream stream = {.peer = plan_.rank,
                         .tag = tag,
                         .messages_per_segment = messages_per_segment,
                         .delivery = stands ? Delivery::local : Delivery::through_slots,
                         .wide = wide};
  return {out(stream), in(stream), stands};
}

Lane& PlanBuilder::lane(int window) {
  plan_.lanes.push_back({{}, window});
  return plan_.lanes.back();
}

Plan PlanBuilder::take() {
  std::erase_if(plan_.lanes, [](const Lane& lane) { return lane.flows.empty(); });
  return std::move(plan_);
}

namespace {

bool go_on(const std::vector<StreamEnd>& flow, int steps, const std::vector<StreamEnd>& next) {
  return std::equal(flow.begin(), flow.end(), next.begin(), next.end(),
                    [=](StreamEnd of, StreamEnd end) { return end == (of.stream == kOwn ? of : at(of, steps)); });
}

}  // namespace

void StepWriter::add(int block, Flow step) {
  step.walk = {block, 1, 1, blocks_};
  if (!lane_.flows.empty()) {
    Flow& last = lane_.flows.back();
    Walk& walk = last.walk;
    const int distance = walk.count == 1 ? block - walk.first : walk.step;
    if (walk.first + distance * walk.count == block && last.label == step.label && last.keep == step.keep &&
        last.fold == step.fold && go_on(last.sources, walk.count, step.sources) &&
        go_on(last.targets, walk.count, step.targets)) {
      walk.step = distance;
      ++walk.count;
      return;
    }
  }
  lane_.flows.push_back(std::move(step));
}

void set_maxima(Plan& plan, const PlanRequest& request, Plan (*draft)(const PlanRequest&, int),
                std::initializer_list<int> busiest) {
  for (const int rank : busiest) {
    const Plan other = draft(request, rank);
    plan.in_streams_max = std::max(plan.in_streams_max, static_cast<int>(other.in.size()));
    plan.out_streams_max = std::max(plan.out_streams_max, static_cast<int>(other.out.size()));
  }
}

std::string why_not_any(const PlanRequest& request) {
  const int ranks = request.topology.ranks();
  if (request.leaves != nullptr) {
    return "its order is not that of " + std::to_string(request.leaves->leaves()) + " leaves in these intervals of " +
           std::to_string(ranks) + " ranks; node (up to 256 ranks) and binomial honour it for any intervals";
  }
  if (request.root < 0 || request.root >= ranks) {
    return "the root is " + std::to_string(request.root) + "; it must be a rank from 0 to " + std::to_string(ranks - 1);
  }
  if (!has_root(request.collective) && request.root != 0) {
    return "the root is " + std::to_string(request.root) + ", but " + std::string(name(request.collective)) +
           " has none; it must be 0";
  }
  if (request.tuning.slots < 1) return "slots is " + std::to_string(request.tuning.slots) + "; it must be at least 1";
  if (request.tuning.window < 1) {
    return "window is " + std::to_string(request.tuning.window) + "; it must be at least 1";
  }
  return "";
}

std::string why_not_any(std::string_view algorithm, std::initializer_list<Collective> able,
                        const PlanRequest& request) {
  std::string text;
  for (const Collective collective : able) {
    if (collective == request.collective) return why_not_any(request);
    text += text.empty() ? "" : ", ";
    text += name(collective);
  }
  return std::string(algorithm) + " does " + text + "; not " + std::string(name(request.collective));
}

std::size_t default_one_shot_bytes(const PlanRequest& request) {
  constexpr auto kOneShotBytesMax = tuned<std::size_t>("node.one_shot_bytes_max");
  const auto blocks = static_cast<std::size_t>(is_personalised(request.collective) ? request.topology.ranks() : 1);
  return kOneShotBytesMax * blocks + blocks - 1;
}

Tuning default_tuning(const PlanRequest& request, std::size_t bytes) {
  return {.one_shot = bytes <= default_one_shot_bytes(request)};
}

std::size_t segment_for_all_peers(const PlanRequest& request) {
  constexpr std::size_t kSlotsBytesMax = std::size_t{8} << 20;
  constexpr std::size_t kSegmentBytesMin = 512;
  const Tuning& tuning = request.tuning;
  const auto slots = static_cast<std::size_t>(request.topology.ranks()) * static_cast<std::size_t>(tuning.slots);
  return std::min(tuning.segment_bytes, std::max(kSlotsBytesMax / slots / 64 * 64, kSegmentBytesMin));
}

std::string why_not_canonical(const PlanRequest& request, decltype(Algorithm::order) order) {
  if (request.determinism != Determinism::canonical || !combines(request.collective)) return "";
  // The places of roundings matter as much as those of brackets, and only wide partial results have no roundings.
  PlanRequest wide = request;
  wide.wide_wire = true;
  ExpressionPool pool;
  // In scan and exscan the last rank's result is the longest, and begins with those of all others.
  const int last = request.topology.ranks() - 1;
  const bool is_exclusive = request.collective == Collective::exscan;
  if (is_exclusive && last == 0) return "";
  const std::vector<ExpressionId> leaves = all_leaves(pool, is_exclusive ? last : last + 1);
  if (order(wide, is_prefix(request.collective) ? last : 0, pool) == pool.canonical(leaves, true)) return "";
  return "its order is not the canonical one for " + std::to_string(request.topology.ranks()) +
         " ranks; node (up to 256 ranks) and binomial honour it for any number of ranks";
}

std::string why_not_leaves(std::string_view algorithm, std::initializer_list<Collective> able,
                           const PlanRequest& request) {
  PlanRequest one_each = request;
  one_each.leaves = nullptr;
  std::string reason = why_not_any(algorithm, able, one_each);
  if (!reason.empty() || request.leaves == nullptr || request.leaves->ranks() == request.topology.ranks())
    return reason;
  return "the intervals of leaves are those of " + std::to_string(request.leaves->ranks()) + " ranks, but there are " +
         std::to_string(request.topology.ranks());
}

ExpressionId leaves_order(const PlanRequest& request, ExpressionPool& pool) {
  return pool.canonical(all_leaves(pool, static_cast<int>(request.leaves->leaves())), true);
}

std::vector<ExpressionId> all_leaves(ExpressionPool& pool, int ranks) {
  std::vector<ExpressionId> leaves;
  leaves.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) leaves.push_back(pool.leaf(rank));
  return leaves;
}

}  // namespace torii
