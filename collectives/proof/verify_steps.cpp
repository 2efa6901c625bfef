// SPDX-License-Identifier: Apache-2.0
// Tabulates a plan set, once its plans have been checked one by one.
#include "collectives/proof/verify_steps.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collectives/proof/verify_structure.hpp"

namespace torii::verification {
namespace {

bool same_but_for_peer(Stream a, Stream b) {
  a.peer = b.peer = 0;
  return a == b;
}

using StreamKey = std::tuple<int, int, int>;  // sender, receiver, tag

/// Joins the two ends of every stream. Returns for every rank the number of each in- and out-stream.
struct StreamIndex {
  std::vector<std::vector<std::int32_t>> in;
  std::vector<std::vector<std::int32_t>> out;
};

StreamIndex join_ends(const Topology& topology, std::span<const Plan> plans, StepTable& table, Faults& faults) {
  StreamIndex index{std::vector<std::vector<std::int32_t>>(plans.size()),
                    std::vector<std::vector<std::int32_t>>(plans.size())};
  std::map<StreamKey, std::int32_t> sent;
  std::int32_t messages = 0;
  const int ranks = static_cast<int>(plans.size());
  for (int rank = 0; rank < ranks; ++rank) {
    for (const Stream& stream : plans[rank].out) {
      const std::string where = stream_text(rank, stream.peer, stream.tag);
      check_stream(stream, rank, where, faults);
      check_ties(topology, rank, stream, where, faults);
      if (stream.peer < 0 || stream.peer >= ranks) faults.add(where + ": there is no such receiver");
      const auto number = static_cast<std::int32_t>(table.streams.size());
      if (!sent.emplace(StreamKey(rank, stream.peer, stream.tag), number).second)
        faults.add(where + ": occurs twice at the sender");
      table.streams.push_back({rank, stream.peer, stream, messages});
      messages += std::max(stream.messages_per_segment, 0);
      index.out[rank].push_back(number);
    }
  }
  std::vector<bool> received(table.streams.size(), false);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const Stream& stream : plans[rank].in) {
      const std::string where = stream_text(stream.peer, rank, stream.tag);
      const auto found = sent.find(StreamKey(stream.peer, rank, stream.tag));
      if (found == sent.end()) {
        faults.add(where + ": the receiver expects it but no rank sends it");
        index.in[rank].push_back(kOwnStream);
        continue;
      }
      if (received[found->second]) faults.add(where + ": occurs twice at the receiver");
      received[found->second] = true;
      if (!same_but_for_peer(stream, table.streams[found->second].stream)) faults.add(where + ": the two ends differ");
      index.in[rank].push_back(found->second);
    }
  }
  for (std::size_t c = 0; c < received.size(); ++c) {
    if (!received[c]) faults.add(StepTable::text(table.streams[c]) + ": the receiver does not know it");
  }
  table.producer_of.assign(messages, kNoStep);
  table.consumer_of.assign(messages, kNoStep);
  return index;
}

void add_port(StepTable& table, StepId step, std::int32_t stream_number, int message, bool as_source, Faults& faults) {
  const JoinedStream& joined = table.streams[stream_number];
  const char* verb = as_source ? "consumed" : "produced";
  if (message >= joined.stream.messages_per_segment) {
    faults.add(table.text(step) + ": message " + std::to_string(message) + " of " + StepTable::text(joined) +
               " is beyond its " + std::to_string(joined.stream.messages_per_segment) + " messages per segment");
    return;
  }
  StepId& owner = (as_source ? table.consumer_of : table.producer_of)[joined.first_message + message];
  if (owner != kNoStep) {
    faults.add(table.text(step) + ": message " + std::to_string(message) + " of " + StepTable::text(joined) + " is " +
               verb + " twice");
    return;
  }
  owner = step;
  table.ports.push_back({stream_number, message});
}

int block_of_step(const PlanRequest& request, const Plan& plan, const Flow& flow, int place) {
  const int block = flow.walk.block(place);
  if (request.collective != Collective::alltoall) return block;
  const bool reads_own = !flow.sources.empty() && flow.sources[0].stream == kOwn;
  if (!reads_own && !flow.keep && !flow.sources.empty()) return kPassedOn;
  return reads_own ? plan.rank * plan.ranks + block : block * plan.ranks + plan.rank;
}

void check_operand_number(const PlanRequest& request, const StepTable& table, StepId step, int operand,
                          Faults& faults) {
  const int operands = request.leaves == nullptr ? 1 : request.leaves->operands(table.rank_of(step));
  if (operand < operands) return;
  faults.add(table.text(step) + ": combines operand " + std::to_string(operand) + " of its rank, which has " +
             std::to_string(operands));
}

void lay_out_steps(const PlanRequest& request, const StreamIndex& index, StepTable& table, Faults& faults) {
  for (int rank = 0; rank < static_cast<int>(table.plans.size()); ++rank) {
    const Plan& plan = table.plans[rank];
    table.first_lane_of_rank.push_back(static_cast<std::int32_t>(table.lanes.size()));
    for (int lane = 0; lane < static_cast<int>(plan.lanes.size()); ++lane) {
      const auto lane_number = static_cast<std::int32_t>(table.lanes.size());
      table.lanes.push_back({rank, lane, table.step_count(), table.step_count(), plan.lanes[lane].window});
      const std::vector<Flow>& flows = plan.lanes[lane].flows;
      for (int f = 0; f < static_cast<int>(flows.size()); ++f) {
        for (int place = 0; place < flows[f].walk.count; ++place) {
          const StepId step = table.step_count();
          const int block = block_of_step(request, plan, flows[f], place);
          table.steps.push_back({lane_number, f, place, block});
          table.first_source.push_back(static_cast<std::int32_t>(table.ports.size()));
          for (const StreamEnd& source : flows[f].sources) {
            if (source.stream != kOwn) {
              add_port(table, step, index.in[rank][source.stream], source.position + place, true, faults);
              continue;
            }
            table.ports.push_back({kOwnStream, source.position});
            if (!has_operand(request, rank, owner_of(request, plan, block)))
              faults.add(table.text(step) + ": the rank has no operand for this block");
            check_operand_number(request, table, step, source.position, faults);
          }
          table.first_target.push_back(static_cast<std::int32_t>(table.ports.size()));
          for (const StreamEnd& target : flows[f].targets) {
            add_port(table, step, index.out[rank][target.stream], target.position + place, false, faults);
          }
          if (flows[f].keep && !has_result(request, rank, owner_of(request, plan, block))) {
            faults.add(table.text(step) + ": keeps a block where this rank has no result of its own to fill");
          }
        }
      }
      table.lanes.back().end = table.step_count();
    }
  }
  table.first_lane_of_rank.push_back(static_cast<std::int32_t>(table.lanes.size()));
  table.first_source.push_back(static_cast<std::int32_t>(table.ports.size()));
}

void check_messages(const StepTable& table, Faults& faults) {
  for (const JoinedStream& joined : table.streams) {
    for (int message = 0; message < joined.stream.messages_per_segment; ++message) {
      const StepId producer = table.producer(joined, message);
      const StepId consumer = table.consumer(joined, message);
      const std::string which = "message " + std::to_string(message) + " of " + StepTable::text(joined);
      if (producer == kNoStep) faults.add(which + " is never produced");
      if (consumer == kNoStep) faults.add(which + " is never consumed");
      if (producer == kNoStep || consumer == kNoStep) continue;
      if (table.steps[producer].block != table.steps[consumer].block) {
        faults.add(which + " carries another block than is expected: " + table.text(producer) + ", " +
                   table.text(consumer));
      }
      if (faults.full()) return;
    }
  }
}

}  // namespace

std::string StepTable::text(StepId step) const {
  const LaneSteps& lane = lane_of(step);
  return flow_text(lane.rank, lane.lane, steps[step].flow, flow_of(step).label) + " block " +
         std::to_string(steps[step].block);
}

std::string StepTable::text(const JoinedStream& joined) {
  return stream_text(joined.sender, joined.receiver, joined.stream.tag);
}

int owner_of(const PlanRequest& request, const Plan& plan, int block) {
  if (request.collective == Collective::alltoall) return block;
  return has_block_per_rank(request.collective) ? block / (plan.blocks / request.topology.ranks()) : -1;
}

bool has_operand(const PlanRequest& request, int rank, int owner) {
  if (request.collective == Collective::broadcast) return rank == request.root;
  if (request.collective == Collective::scatter) return rank == request.root;
  if (request.collective == Collective::alltoall) return rank == owner / request.topology.ranks();
  if (request.collective == Collective::all_gather || request.collective == Collective::gather) return rank == owner;
  return true;
}

ExpressionId operand_of(const PlanRequest& request, int rank, int operand, ExpressionPool& pool) {
  if (request.leaves == nullptr) return pool.leaf(rank);
  const LeafSubtree& subtree = request.leaves->subtrees_of(rank)[static_cast<std::size_t>(operand)];
  std::vector<ExpressionId> leaves;
  for (std::size_t i = 0; i < subtree.count; ++i) leaves.push_back(pool.leaf(static_cast<int>(subtree.first + i)));
  return pool.canonical(leaves, true);
}

bool has_result(const PlanRequest& request, int rank, int owner) {
  switch (request.collective) {
    case Collective::barrier:
      return false;
    case Collective::broadcast:
      return rank != request.root;  // the root's operand is its result already
    case Collective::reduce:
    case Collective::gather:
      return rank == request.root;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return rank == owner;
    case Collective::alltoall:
      return rank == owner % request.topology.ranks();
    case Collective::exscan:
      return rank != 0;
    case Collective::allreduce:
    case Collective::all_gather:
    case Collective::scan:
      return true;
  }
  return false;
}

StepTable tabulate(const PlanRequest& request, std::span<const Plan> plans, Faults& faults,
                   const ExecutorRules& rules) {
  StepTable table;
  table.plans = plans;
  check_plan_shapes(request, plans, faults);
  if (faults.any()) return table;
  table.blocks = request.collective == Collective::alltoall ? request.topology.ranks() * request.topology.ranks()
                                                            : plans[0].blocks;
  const StreamIndex index = join_ends(request.topology, plans, table, faults);
  for (const Plan& plan : plans) {
    for (std::size_t lane = 0; lane < plan.lanes.size(); ++lane) {
      if (plan.lanes[lane].window < 1) {
        faults.add("rank " + std::to_string(plan.rank) + " lane " + std::to_string(lane) + ": the window is " +
                   std::to_string(plan.lanes[lane].window));
      }
      const std::vector<Flow>& flows = plan.lanes[lane].flows;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        check_flow(plan, flows[f], flow_text(plan.rank, static_cast<int>(lane), static_cast<int>(f), flows[f].label),
                   faults);
      }
    }
  }
  check_maxima(plans, faults);
  if (faults.any()) return table;
  lay_out_steps(request, index, table, faults);
  if (!faults.any() && request.collective == Collective::alltoall) name_passed_on(table, faults);
  if (!faults.any()) check_messages(table, faults);
  if (!faults.any()) check_bundles(table, rules, faults);
  return table;
}

}  // namespace torii::verification
