// SPDX-License-Identifier: Apache-2.0
// scheduled: the whole message from rank to rank on a tree of links, by the schedule of least time.
//
//   broadcast, rank 2 of    0>2 0>1 2>3        take    0 -> keep, hand over
//   where 0>1 comes after 0>2                  told    token -> 0
//                                              send    the result -> 3
//   reduce runs the same backwards: 3>2 1>0, then, told of 1>0, 2>0. A rank folds its own operand first, then the
//   others in the order in which they come by the schedule.
//
// Source: Hourai, Nishida, Oyanagi 2004, sections 2 and 5 (schedule.hpp).
// Cost: what schedule.hpp says for a message of one segment, and one latency for each wait for a token. A transfer that
// follows another one on a link starts when the receiver of that one has said that it has everything. The end of a put
// only says that the data is on its way. A vector longer than a segment is pipelined segment by segment.
// Order: along the schedule of the tree with its links' directions exchanged, run backwards.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <memory>

#include "collectives/building/lane_choice.hpp"
#include "collectives/building/plan_builder.hpp"
#include "collectives/building/sites.hpp"
#include "collectives/schedules/schedule.hpp"
#include "runtime/base/index.hpp"
#include "runtime/base/recent.hpp"

namespace torii {
namespace {

constexpr int kRanksMax = 256;
constexpr std::size_t kNodesMax = 1024;
/// A slot holds a whole segment, and a rank has some 15 streams at most: so an outbox holds the plan.
constexpr std::size_t kWholeBytesMax = std::size_t{4} << 20;

constexpr int kDataTag = 0;
constexpr int kTokenTag = 1;
constexpr int kOwnTag = 2;  // and those that follow: within a rank

bool is_reduce(const PlanRequest& request) { return request.collective == Collective::reduce; }

/// One transfer as the two ranks see it.
struct Step {
  int sender = 0;
  int receiver = 0;
  std::vector<int> asks;   ///< ranks whose tokens the sender awaits
  std::vector<int> tells;  ///< ranks that await the receiver's token
};

/// The transfers in the order in which they run.
struct Steps {
  std::vector<Step> list;
  int in_streams_max = 0;
  int out_streams_max = 0;
};

/// Tokens are left out where the sender knows anyway: it received that message, or has been told before. One token from
/// a rank says that all has come that it awaited before.
std::vector<Step> steps_of(const Schedule& schedule, bool backwards) {
  const std::vector<Transfer>& transfers = schedule.transfers;
  const std::size_t count = transfers.size();
  const auto place = [&](std::size_t transfer) { return backwards ? count - 1 - transfer : transfer; };
  std::vector<Step> steps(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto [sender, receiver] = std::pair(transfers[i].sender, transfers[i].receiver);
    steps[place(i)] = {backwards ? receiver : sender, backwards ? sender : receiver, {}, {}};
  }
  struct Told {
    std::size_t earlier;
    std::size_t later;
  };
  std::map<std::pair<int, int>, Told> told;  // by who tells and who asks
  for (std::size_t i = 0; i < count; ++i) {
    for (const int before : transfers[i].after) {
      const std::size_t earlier = std::min(place(index(before)), place(i));
      const std::size_t later = std::max(place(index(before)), place(i));
      const int teller = steps[earlier].receiver;
      const int asker = steps[later].sender;
      if (teller == asker) continue;
      Told& known = told.try_emplace({teller, asker}, Told{earlier, later}).first->second;
      known = {std::max(known.earlier, earlier), std::min(known.later, later)};
    }
  }
  for (const auto& [ranks, when] : told) {
    steps[when.earlier].tells.push_back(ranks.second);
    steps[when.later].asks.push_back(ranks.first);
  }
  return steps;
}

class Flows {
 public:
  Flows(const PlanRequest& request, const std::vector<Step>& steps, int rank)
      : request_(request), steps_(steps), rank_(rank), builder_(request, rank, Dealing::block, 1) {}

  Plan make() {
    Lane& lane = builder_.lane(1);
    if (is_reduce(request_)) {
      reduce();
    } else {
      broadcast();
    }
    lane.flows = std::move(flows_);
    return builder_.take();
  }

 private:
  Stream stream(int peer, int tag, Delivery delivery = Delivery::through_slots) const {
    return {.peer = peer, .tag = tag, .delivery = delivery};
  }

  void ask(const Step& step) {
    for (const int rank : step.asks) {
      flows_.push_back({.sources = {builder_.in(stream(rank, kTokenTag))}, .label = "await"});
    }
  }
  void tell(const Step& step) {
    if (step.tells.empty()) return;
    Flow flow = {.label = "tell"};
    for (const int rank : step.tells) flow.targets.push_back(builder_.out(stream(rank, kTokenTag)));
    flows_.push_back(std::move(flow));
  }

  /// The value that has come is in the result, and each later send gets the right to read it.
  void broadcast() {
    std::vector<StreamEnd> handed;
    std::size_t next = 0;
    for (const Step& step : steps_) {
      if (step.receiver == rank_) {
        Flow take = {.sources = {builder_.in(stream(step.sender, kDataTag, Delivery::write_in_place))},
                     .keep = true,
                     .label = "take"};
        const auto sends =
            std::count_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.sender == rank_; });
        for (int i = 0; i < sends; ++i) {
          const Stream own = stream(rank_, kOwnTag + i, Delivery::local);
          take.targets.push_back(builder_.out(own));
          handed.push_back(builder_.in(own));
        }
        flows_.push_back(std::move(take));
        tell(step);
      } else if (step.sender == rank_) {
        ask(step);
        const StreamEnd source = rank_ == request_.root ? StreamEnd{} : handed[next++];
        const StreamEnd target = builder_.out(stream(step.receiver, kDataTag, Delivery::write_in_place));
        flows_.push_back({.sources = {source}, .targets = {target}, .label = "send"});
      }
    }
  }

  /// Folds as late as it can, but before it tells anybody that an operand has come.
  void reduce() {
    const auto partial = [&](int peer) {
      Stream result = stream(peer, kDataTag);
      result.wide = request_.wide_wire;
      return result;
    };
    std::vector<StreamEnd> operands = {{}};
    int folds = 0;
    for (const Step& step : steps_) {
      if (step.receiver == rank_) {
        operands.push_back(builder_.in(partial(step.sender)));
        if (step.tells.empty()) continue;
        const PlanBuilder::Onward onward = builder_.onward(kOwnTag + folds++, 1);
        flows_.push_back(
            {.sources = std::move(operands), .keep = onward.keep, .targets = {onward.target}, .label = "fold"});
        operands = {onward.source};
        tell(step);
      } else if (step.sender == rank_) {
        ask(step);
        flows_.push_back(
            {.sources = std::move(operands), .targets = {builder_.out(partial(step.receiver))}, .label = "send"});
      }
    }
    if (rank_ == request_.root) flows_.push_back({.sources = std::move(operands), .keep = true, .label = "combine"});
  }

  const PlanRequest& request_;
  const std::vector<Step>& steps_;
  const int rank_;
  PlanBuilder builder_;
  std::vector<Flow> flows_;
};

Steps make_steps(const PlanRequest& request) {
  Steps steps;
  const bool backwards = is_reduce(request);
  steps.list =
      steps_of(*kept_schedule(request.topology, request.root, request.tuning.segment_bytes, backwards), backwards);
  for (int rank = 0; rank < request.topology.ranks(); ++rank) {
    const Plan plan = Flows(request, steps.list, rank).make();
    steps.in_streams_max = std::max(steps.in_streams_max, static_cast<int>(plan.in.size()));
    steps.out_streams_max = std::max(steps.out_streams_max, static_cast<int>(plan.out.size()));
  }
  return steps;
}

/// Every rank works out its peers' plans too. Besides the schedule the streams at the ranks depend on the wire alone.
std::shared_ptr<const Steps> find_steps(const PlanRequest& request) {
  static Recent<Steps, int, bool, bool, std::size_t, Topology> recent(32);
  return recent.get([&] { return make_steps(request); }, request.root, is_reduce(request), request.wide_wire,
                    request.tuning.segment_bytes, request.topology);
}

ExpressionId order(const PlanRequest& request, int /*block*/, ExpressionPool& pool) {
  const std::shared_ptr<const Steps> steps = find_steps(request);
  std::vector<std::vector<ExpressionId>> operands;
  for (int rank = 0; rank < request.topology.ranks(); ++rank) operands.push_back({pool.leaf(rank)});
  for (const Step& step : steps->list) {
    std::vector<ExpressionId>& here = operands[index(step.receiver)];
    here.push_back(pool.fold(operands[index(step.sender)], !request.wide_wire));
    if (!step.tells.empty()) here = {pool.fold(here, !request.wide_wire)};
  }
  return pool.fold(operands[index(request.root)], true);
}

std::string why_not(const PlanRequest& request) {
  std::string reason = why_not_any("scheduled", {Collective::broadcast, Collective::reduce}, request);
  if (!reason.empty()) return reason;
  if (request.topology.kind() == Topology::Kind::torus) {
    return "scheduled stands on a tree of links; on " + request.topology.text() + " use trinaryx3";
  }
  const int ranks = request.topology.ranks();
  const TreeTopology* tree = request.topology.tree();
  if (ranks > kRanksMax || (tree != nullptr && tree->nodes().size() > kNodesMax)) {
    return "scheduled is for up to " + std::to_string(kRanksMax) + " ranks and " + std::to_string(kNodesMax) +
           " nodes, there are " + std::to_string(ranks) + " ranks";
  }
  return why_not_canonical(request, order);
}

Plan make_plan(const PlanRequest& request, int rank) {
  const std::shared_ptr<const Steps> steps = find_steps(request);
  Plan plan = Flows(request, steps->list, rank).make();
  plan.in_streams_max = steps->in_streams_max;
  plan.out_streams_max = steps->out_streams_max;
  return plan;
}

/// The latency of the long links between two ranks. Inside a site a token takes about as long as a host needs to
/// forward a segment, which the model ignores in chains too.
double long_latency_s(const TreeTopology& tree, int from, int to) {
  double sum_s = 0;
  for (const TreeHop hop : tree.way(tree.node_of(from), tree.node_of(to))) {
    const TreeLink& link = tree.links()[static_cast<std::size_t>(hop.link)];
    const std::int64_t latency_ns = link.latency_ns[static_cast<std::size_t>(hop.direction)];
    if (latency_ns >= kLongLatencyNs) sum_s += 1e-9 * static_cast<double>(latency_ns);
  }
  return sum_s;
}

/// The time of the schedule with its tokens. The search ignores the tokens by which receivers say that they have
/// everything, but over long links they are most of a short message's time. A rank begins its transfers in their order.
double time_with_tokens_s(const TreeTopology& tree, const Schedule& schedule) {
  std::vector<double> ends_s;
  std::vector<double> begins_s(index(tree.ranks()), 0);  // by rank: no transfer begins before
  double last_s = 0;
  for (const Transfer& transfer : schedule.transfers) {
    double& begin_s = begins_s[index(transfer.sender)];
    begin_s = std::max(begin_s, transfer.start_s);
    for (const int before : transfer.after) {
      const double far_s = long_latency_s(tree, schedule.transfers[index(before)].receiver, transfer.sender);
      if (far_s > 0) begin_s = std::max(begin_s, ends_s[index(before)] + far_s);
    }
    ends_s.push_back(begin_s + transfer.end_s - transfer.start_s);
    begins_s[index(transfer.receiver)] = ends_s.back();
    last_s = std::max(last_s, ends_s.back());
  }
  return last_s;
}

/// The vector whole, in one segment, rounded up so that vectors of nearly one length share a plan. Longer vectors go in
/// segments of 4 MiB, and for them nothing is offered.
CostEstimate estimate(const EstimateRequest& request) {
  const std::size_t power = std::bit_ceil(std::clamp(request.bytes, std::size_t{128}, kWholeBytesMax));
  const std::size_t between = power / 4 * 3;  // 96 of 128 would not be a multiple of 64
  CostEstimate estimate = {.tuning = {power >= 256 && request.bytes <= between ? between : power, 1, 1, false}};
  if (request.plan.topology.tree() != nullptr) estimate.holds = {request.bytes, request.bytes};
  PlanRequest tuned = request.plan;
  tuned.tuning = estimate.tuning;
  if (request.is_tuned || request.bytes > kWholeBytesMax || tuned.topology.tree() == nullptr) return estimate;
  if (!why_not(tuned).empty()) return estimate;
  const auto schedule = kept_schedule(tuned.topology, tuned.root, estimate.tuning.segment_bytes, is_reduce(tuned));
  const double time_s = time_with_tokens_s(directed_tree(tuned), *schedule);
  estimate.seconds = std::max(time_s, streams_time_s(request, 1));
  char text[128];
  int length = std::snprintf(text, sizeof(text), "by the tree's model: scheduled %.4g ms (%sproven least)",
                             1e3 * schedule->time_s, schedule->proven ? "" : "not ");
  if (time_s > schedule->time_s * (1 + 1e-9)) {
    std::snprintf(text + length, sizeof(text) - static_cast<std::size_t>(length), ", with tokens %.4g ms",
                  1e3 * time_s);
  }
  estimate.why = text;
  return estimate;
}

}  // namespace

extern const Algorithm kScheduled = {
    "scheduled", "Hourai, Nishida, Oyanagi 2004, sections 2 and 5", why_not, make_plan, order, estimate};

}  // namespace torii
