// SPDX-License-Identifier: Apache-2.0
// Copies, buffer offers and waits that the executor leaves out, by the rules of runtime/plan/shortcuts.hpp.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "collectives/proof/verify_checks.hpp"

namespace torii::verification {
namespace {

/// The first message of the segment that two streams do not take from the same step; -1 if there is none.
int first_difference(const StepTable& table, const JoinedStream& a, const JoinedStream& b) {
  if (a.stream.messages_per_segment != b.stream.messages_per_segment || a.stream.bundle != b.stream.bundle ||
      a.stream.wide != b.stream.wide) {
    return 0;
  }
  for (int message = 0; message < a.stream.messages_per_segment; ++message) {
    if (table.producer(a, message) != table.producer(b, message)) return message;
  }
  return -1;
}

/// The values that the steps of one rank store in its result, by place in the vector.
std::vector<std::vector<StepId>> keeps_by_place(const StepTable& table, int rank) {
  std::vector<std::vector<StepId>> keeps(static_cast<std::size_t>(table.plans[rank].blocks));
  for (const LaneSteps& lane : table.lanes_of_rank(rank)) {
    for (StepId step = lane.first; step < lane.end; ++step) {
      const Flow& flow = table.flow_of(step);
      if (flow.keep) keeps[static_cast<std::size_t>(flow.walk.block(table.steps[step].place))].push_back(step);
    }
  }
  return keeps;
}

std::string place_text(const StepTable& table, StepId step) {
  const int place = table.flow_of(step).walk.block(table.steps[step].place);
  return "block " + std::to_string(place) + " of rank " + std::to_string(table.rank_of(step));
}

/// The flows of one rank whose value an engine may send from the caller's vector.
class SentInPlace {
 public:
  SentInPlace(const StepTable& table, int rank, const ExecutorRules& rules, const PairwiseExchange* exchange)
      : table_(table),
        plan_(table.plans[rank]),
        rules_(rules),
        exchange_(exchange),
        keeps_(keeps_by_place(table, rank)) {
    const auto uses = block_uses(plan_, [](int) { return true; });
    results_are_final_ = exchange == nullptr && std::ranges::all_of(uses, rules.result_final);
  }

  /// `first` is the flow's first step.
  void check(StepId first, Precedence& precedence, Faults& faults, Proofs& proofs) const {
    const Flow& flow = table_.flow_of(first);
    const auto targets = table_.targets(first);
    if (std::ranges::all_of(targets, [&](StepPort port) { return is_local(port); })) return;
    const bool from_operand = keeps_own(table_, first) && operand_stays_for(flow);
    const bool from_result = results_are_final_ && maker(first) != kNoStep;
    if (from_operand || from_result) ++proofs.sent_in_place;
    for (StepId step = first; step < first + flow.walk.count && !faults.full(); ++step) {
      if (from_operand) check_operand(step, faults);
      if (from_result) check_result(step, precedence, faults);
    }
  }

 private:
  bool is_local(StepPort port) const { return table_.streams[port.stream].stream.delivery == Delivery::local; }
  const std::vector<StepId>& keeps_at(StepId step) const {
    return keeps_[static_cast<std::size_t>(table_.flow_of(step).walk.block(table_.steps[step].place))];
  }
  /// The executor's rule where only this flow goes to another node, which asks for the least.
  bool operand_stays_for(const Flow& flow) const {
    if (exchange_ != nullptr) return rules_.exchange_operand_kept(*exchange_);
    const auto uses = block_uses(plan_, [&](int stream) {
      return std::ranges::any_of(flow.targets, [=](StreamEnd end) { return end.stream == stream; });
    });
    return std::ranges::all_of(uses, rules_.operand_kept);
  }
  /// The step that stores the value in the result: this one, or the one that hands it over. kNoStep: none does.
  StepId maker(StepId step) const {
    if (table_.flow_of(step).keep) return step;
    const auto sources = table_.sources(step);
    if (sources.size() != 1 || sources[0].stream == kOwnStream || !is_local(sources[0])) return kNoStep;
    return table_.producer(table_.streams[sources[0].stream], sources[0].message);
  }
  void check_operand(StepId step, Faults& faults) const {
    for (const StepId keep : keeps_at(step)) {
      if (keeps_own(table_, keep)) continue;
      return faults.add("in place, " + table_.text(keep) + " overwrites the operand " + place_text(table_, step) +
                        ", which an engine may still send for " + table_.text(step));
    }
  }
  void check_result(StepId step, Precedence& precedence, Faults& faults) const {
    const StepId made = maker(step);
    for (const StepId keep : keeps_at(step)) {
      if (keep == made || precedence.precedes(keep, made, 0)) continue;
      return faults.add(table_.text(keep) + " overwrites the result " + place_text(table_, step) +
                        ", which an engine may still send for " + table_.text(step));
    }
  }

  const StepTable& table_;
  const Plan& plan_;
  const ExecutorRules& rules_;
  const PairwiseExchange* exchange_;
  std::vector<std::vector<StepId>> keeps_;
  bool results_are_final_ = false;
};

template <typename Visit>
void for_each_flow(const StepTable& table, int rank, Visit&& visit) {
  for (const LaneSteps& lane : table.lanes_of_rank(rank)) {
    for (StepId step = lane.first; step < lane.end; step += table.flow_of(step).walk.count) visit(step);
  }
}

/// The streams for which one rank makes buffer offers to another.
struct Offered {
  std::vector<const JoinedStream*> reads;   ///< the peer reads the rank's operand
  std::vector<const JoinedStream*> writes;  ///< the peer writes into the rank's result
};

/// Whether the peer has read the offer when the rank's call ends. It reads the offer before it takes the first message
/// that it reads in place, and before it sends the first one that it writes in place.
bool is_read_in_time(const StepTable& table, int rank, const Offered& offered, bool by_value,
                     const ExecutorRules& rules, Precedence& precedence) {
  const auto in_time = [&](StepId step) { return outlasts(table, rank, step, precedence); };
  if (std::ranges::any_of(offered.writes, [&](auto* joined) { return in_time(table.producer(*joined, 0)); })) {
    return true;
  }
  return !by_value && std::ranges::any_of(offered.reads, [&](auto* joined) {
    return rules.awaits(joined->stream) || in_time(table.consumer(*joined, 0));
  });
}

void check_alltoall_in_place(const StepTable& table, const LaneSteps& lane, Faults& faults) {
  // By place in the vector: the step that has stored there first.
  std::vector<StepId> stored(static_cast<std::size_t>(table.plans[lane.rank].ranks), kNoStep);
  for (StepId step = lane.first; step < lane.end && !faults.full(); ++step) {
    const Flow& flow = table.flow_of(step);
    const auto place = static_cast<std::size_t>(flow.walk.block(table.steps[step].place));
    const bool reads = std::ranges::any_of(flow.sources, [](const StreamEnd& end) { return end.stream == kOwn; });
    if (reads && stored[place] != kNoStep) {
      faults.add("in place, " + table.text(stored[place]) + " overwrites the operand's block for rank " +
                 std::to_string(place) + " before it is read by " + table.text(step));
    }
    const bool stays = reads && flow.sources.size() == 1;  // it is there already
    if (flow.keep && !stays && stored[place] == kNoStep) stored[place] = step;
  }
}

/// A list has the steps of one lane, makes no buffer offers, and moves contiguous blocks of the vector's own type.
void check_list(const StepTable& table, const Plan& plan, Faults& faults) {
  const std::string who = "rank " + std::to_string(plan.rank) + " runs as a list, but ";
  if (plan.lanes.size() != 1) faults.add(who + "it has " + std::to_string(plan.lanes.size()) + " lanes");
  for (const LaneSteps& lane : table.lanes_of_rank(plan.rank)) {
    for (StepId step = lane.first; step < lane.end && !faults.full(); ++step) {
      for (const StepPort& source : table.sources(step)) {
        if (source.stream == kOwnStream && source.message != 0) faults.add(who + "it has several operands");
      }
    }
  }
  if (plan.dealing == Dealing::block_cyclic && plan.blocks > 1) faults.add(who + "its blocks are in pieces");
  for (const JoinedStream& joined : table.streams) {
    if ((joined.sender != plan.rank && joined.receiver != plan.rank) || faults.full()) continue;
    if (joined.stream.wide) faults.add(who + StepTable::text(joined) + " is wide");
    if (joined.stream.delivery == Delivery::through_slots) continue;
    faults.add(who + StepTable::text(joined) + " does not go through slots");
  }
}

}  // namespace

void check_shared_payloads(const StepTable& table, const ExecutorRules& rules, Faults& faults, Proofs& proofs) {
  for (const Plan& plan : table.plans) {
    const std::vector<int> feeding = flows_feeding(plan);
    for_each_flow(table, plan.rank, [&](StepId step) {
      const std::vector<StreamEnd>& ends = table.flow_of(step).targets;
      const auto ports = table.targets(step);
      for (std::size_t b = 1; b < ends.size() && !faults.full(); ++b) {
        bool is_shared = false;
        for (std::size_t a = 0; a < b; ++a) {
          if (!rules.shared(plan, feeding, ends[a], ends[b])) continue;
          is_shared = true;
          const JoinedStream& first = table.streams[ports[a].stream];
          const JoinedStream& second = table.streams[ports[b].stream];
          const int differs = first_difference(table, first, second);
          if (differs < 0) continue;
          faults.add(StepTable::text(second) + " and " + StepTable::text(first) +
                     " share a copy of their payload, but their messages " + std::to_string(differs) + " differ");
        }
        if (is_shared) ++proofs.shared;
      }
    });
  }
}

void check_sent_in_place(const StepTable& table, const ExecutorRules& rules, const PairwiseExchange* exchange,
                         Precedence& precedence, Faults& faults, Proofs& proofs) {
  for (const Plan& plan : table.plans) {
    const SentInPlace sent(table, plan.rank, rules, exchange);
    for_each_flow(table, plan.rank, [&](StepId step) { sent.check(step, precedence, faults, proofs); });
  }
}

void check_private_reads(Collective collective, const StepTable& table, const ExecutorRules& rules, Faults& faults,
                         Proofs& proofs) {
  if (!rules.only_copies(collective)) return;
  for (const Plan& plan : table.plans) {
    for_each_flow(table, plan.rank, [&](StepId step) {
      for (const StreamEnd& end : table.flow_of(step).sources) {
        if (end.stream == kOwn || plan.in[end.stream].delivery != Delivery::read_in_place || faults.full()) continue;
        ++proofs.read_privately;
        if (table.flow_of(step).sources.size() == 1) continue;
        faults.add(table.text(step) + " may read an operand from private memory, but folds it");
      }
    });
  }
}

void check_offers(const StepTable& table, const ExecutorRules& rules, Precedence& precedence, Faults& faults,
                  Proofs& proofs) {
  std::map<std::pair<int, int>, Offered> pairs;  // the rank that makes the offer, and the one that reads it
  for (const JoinedStream& joined : table.streams) {
    const Delivery delivery = joined.stream.delivery;
    if (delivery == Delivery::read_in_place) pairs[{joined.sender, joined.receiver}].reads.push_back(&joined);
    if (delivery == Delivery::write_in_place) pairs[{joined.receiver, joined.sender}].writes.push_back(&joined);
  }
  proofs.offers = static_cast<int>(pairs.size());
  for (const auto& [pair, offered] : pairs) {
    for (const bool by_value : {false, true}) {
      if (faults.full()) return;
      const std::string who = "rank " + std::to_string(pair.first);
      const std::string peer = "rank " + std::to_string(pair.second);
      const std::string manner = by_value ? ", with its operand by value," : "";
      const bool awaited = !offered.writes.empty() || (!offered.reads.empty() && !by_value);
      if (!rules.offers(!offered.writes.empty(), by_value)) {
        if (awaited) faults.add(who + manner + " makes no buffer offer to " + peer + ", which waits for it");
      } else if (!is_read_in_time(table, pair.first, offered, by_value, rules, precedence)) {
        faults.add(who + manner + " makes a buffer offer to " + peer + " and may end its call before it is read");
      }
    }
  }
}

void check_lists(const PlanRequest& request, const StepTable& table, const ExecutorRules& rules, Faults& faults,
                 Proofs& proofs) {
  for (const Plan& plan : table.plans) {
    if (!rules.as_list(plan) || faults.full()) continue;
    ++proofs.lists;
    check_list(table, plan, faults);
    if (request.collective != Collective::alltoall) continue;
    for (const LaneSteps& lane : table.lanes_of_rank(plan.rank)) check_alltoall_in_place(table, lane, faults);
  }
}

}  // namespace torii::verification
