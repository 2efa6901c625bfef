// SPDX-License-Identifier: Apache-2.0
// Credits for several messages, and linear programs in place: actions of the executor that are not in the plan.
#include <algorithm>
#include <set>
#include <vector>

#include "collectives/proof/verify_checks.hpp"

namespace torii::verification {
namespace {

/// A receiver credits a group when it has taken all of it, in the word of the group's first slot. So a message must
/// wait for a group that begins at a multiple of its length and contains the message that had its slot.
void check_groups(const JoinedStream& joined, int slots, int group, const CreditRules& rules, Faults& faults) {
  const std::string which = StepTable::text(joined) + " with " + std::to_string(slots) + " slots";
  if (group < 1 || (group & (group - 1)) != 0 || slots % group != 0) {
    faults.add(which + " credits " + std::to_string(group) +
               " messages together, which is no power of two that divides the slots");
    return;
  }
  if (group > 1 && slots / group > kCreditGroupsMax) {
    faults.add(which + " has " + std::to_string(slots / group) + " groups of slots, more than " +
               std::to_string(kCreditGroupsMax));
  }
  const auto count = static_cast<std::uint64_t>(slots);
  const auto length = static_cast<std::uint64_t>(group);
  for (std::uint64_t message = count; message < 3 * count && !faults.full(); ++message) {
    const std::uint64_t first = rules.awaited(message, count, length);
    if (first % length != 0) {
      faults.add(which + ": message " + std::to_string(message) + " waits for the credit of a group that begins at " +
                 std::to_string(first) + ", which nobody gives");
    } else if (message - count < first || message - count >= first + length) {
      faults.add(which + ": message " + std::to_string(message) + " waits for the credit of " + std::to_string(group) +
                 " messages from " + std::to_string(first) + " on and may fill the slot of message " +
                 std::to_string(message - count) + " before it is taken");
    } else {
      continue;
    }
    return;
  }
}

bool is_by_value(const std::vector<Stream>& streams) {
  return std::ranges::all_of(
      streams, [](const Stream& stream) { return stream.delivery == Delivery::through_slots && !stream.wide; });
}

/// Whether a rank runs the plan as a linear program where its vector has one segment.
bool may_be_linear(const Plan& plan) { return plan.lanes.size() == 1 && is_by_value(plan.in) && is_by_value(plan.out); }

/// A linear program that sees the credit of a call's last message takes messages for taken without looking at their
/// credits. Those of earlier calls are: a receiver runs call after call. Those of the same call have to come before the
/// last one in the receiver's plan.
void check_look_ahead(const StepTable& table, const JoinedStream& joined, const CreditRules& rules,
                      Precedence& precedence, Faults& faults) {
  constexpr std::uint64_t kBegun = 5;  // calls before this one had so many segments; this one has one
  const auto bundles = static_cast<std::uint64_t>(joined.stream.bundles_per_segment());
  const auto consumer = [&](std::uint64_t bundle) {
    return table.consumer(joined, static_cast<int>(bundle + 1) * joined.stream.bundle - 1);
  };
  const std::uint64_t end = rules.taken(kBegun, kBegun + 1, bundles);
  for (std::uint64_t message = kBegun * bundles; message < end && !faults.full(); ++message) {
    const std::uint64_t position = message - kBegun * bundles;
    const StepId last = consumer(bundles - 1);
    if (position < bundles && precedence.precedes(consumer(position), last, 0)) continue;
    faults.add(StepTable::text(joined) + ": when the credit of a call's last message is seen, its message " +
               std::to_string(position) + " is held for taken, but " +
               (position < bundles ? table.text(consumer(position)) + " may still read it"
                                   : std::string("it belongs to a later call")));
    return;
  }
}

}  // namespace

void check_credits(const StepTable& table, int slots, const CreditRules& rules, Precedence& precedence,
                   Faults& faults) {
  std::set<int> checked;  // slots and group are all that the rule of groups depends on
  for (const JoinedStream& joined : table.streams) {
    if (faults.full()) return;
    if (!joined.stream.credits || joined.stream.delivery == Delivery::local) continue;
    const int group = rules.group(joined.stream, slots);
    if (checked.insert(group).second) check_groups(joined, slots, group, rules, faults);
    if (may_be_linear(table.plans[joined.sender])) check_look_ahead(table, joined, rules, precedence, faults);
  }
}

void check_linear_in_place(const PlanRequest& request, const StepTable& table, Faults& faults) {
  if (request.collective != Collective::alltoall) return;
  for (const LaneSteps& lane : table.lanes) {
    const Plan& plan = table.plans[lane.rank];
    if (!may_be_linear(plan)) continue;
    // By place in the vector: the step that has stored there first.
    std::vector<StepId> stored(static_cast<std::size_t>(plan.ranks), kNoStep);
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
}

}  // namespace torii::verification
