// SPDX-License-Identifier: Apache-2.0
// Credits for several messages, and slots that need none: actions of the executor that are not in the plan.
#include <algorithm>
#include <set>
#include <vector>

#include "collectives/proof/verify_checks.hpp"

namespace torii::verification {
namespace {

/// A receiver credits a group when it has taken all of it, in the word of the group's first slot. So a message must
/// wait for the group that contains the message that had its slot.
void check_awaited_groups(const std::string& which, std::uint64_t slots, std::uint64_t group,
                          const ExecutorRules& rules, Faults& faults) {
  for (std::uint64_t message = slots; message < 3 * slots; ++message) {
    const std::uint64_t first = rules.awaited(message, slots, group);
    const std::string waits = which + ": message " + std::to_string(message) + " waits for the credit of ";
    if (rules.credited(first, group) != first) {
      return faults.add(waits + "a group that begins at " + std::to_string(first) + ", which nobody gives");
    }
    if (rules.credited(message - slots, group) != first) {
      return faults.add(waits + std::to_string(group) + " messages from " + std::to_string(first) +
                        " on and may fill the slot of message " + std::to_string(message - slots) +
                        " before it is taken");
    }
  }
}

/// Groups follow one another without a gap, and each has the messages that its credit is for.
void check_credited_groups(const std::string& which, std::uint64_t slots, std::uint64_t group,
                           const ExecutorRules& rules, Faults& faults) {
  for (std::uint64_t message = 0; message < 3 * slots; ++message) {
    const std::uint64_t first = rules.credited(message, group);
    if (first == message - message % group) continue;
    return faults.add(which + ": message " + std::to_string(message) + " is credited with " + std::to_string(group) +
                      " messages from " + std::to_string(first) + " on");
  }
}

/// If so many messages have been taken, each message that needs no credit finds its slot free.
void check_free_slots(const std::string& which, std::uint64_t slots, const ExecutorRules& rules, Faults& faults) {
  for (std::uint64_t taken = 0; taken <= 2 * slots; ++taken) {
    const std::uint64_t end = rules.free(taken, slots);
    for (std::uint64_t message = 0; message < end; ++message) {
      if (message < slots || message - slots < taken) continue;
      return faults.add(which + ": when " + std::to_string(taken) + " messages have been taken, message " +
                        std::to_string(message) + " needs no credit, but message " + std::to_string(message - slots) +
                        " may be in its slot");
    }
  }
}

void check_groups(const JoinedStream& joined, int slots, int group, const ExecutorRules& rules, Faults& faults) {
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
  check_awaited_groups(which, count, length, rules, faults);
  check_credited_groups(which, count, length, rules, faults);
  check_free_slots(which, count, rules, faults);
}

/// At the end of a call that used no slots, exactly the credits are there that slots would have left. The next call
/// waits for them if it uses slots. The rule knows of a call no more than where its messages begin and end. So all
/// beginnings within two rounds of the slots, with all lengths up to two rounds, are all cases.
void check_released(const JoinedStream& joined, std::uint64_t slots, const ExecutorRules& rules, Faults& faults) {
  for (std::uint64_t begun = 0; begun <= 2 * slots; ++begun) {
    for (std::uint64_t ended = begun + 1; ended <= begun + 2 * slots + 1; ++ended) {
      const std::uint64_t first = rules.released(begun, ended, slots);
      const std::string which = StepTable::text(joined) + ": a call without slots for messages " +
                                std::to_string(begun) + " to " + std::to_string(ended - 1) + " gives credits from " +
                                std::to_string(first) + " on";
      if (first < begun || first >= ended) return faults.add(which + ", which is none of them");
      for (std::uint64_t next = std::max(ended, begun + slots); next < ended + slots; ++next) {
        if (next - slots >= first) continue;
        return faults.add(which + ", but message " + std::to_string(next) +
                          " of the next one waits for the credit of " + std::to_string(next - slots));
      }
    }
  }
}

/// A linear program that sees the credit of a call's last message takes messages for taken without looking at their
/// credits. Those of earlier calls are: a receiver runs call after call. Those of the same call have to come before the
/// last one in the receiver's plan.
void check_look_ahead(const StepTable& table, const JoinedStream& joined, const ExecutorRules& rules,
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

void check_credits(const StepTable& table, int slots, const ExecutorRules& rules, Precedence& precedence,
                   Faults& faults, Proofs& proofs) {
  std::set<int> checked;  // slots and group are all that the rule of groups depends on
  bool is_release_checked = false;
  for (const JoinedStream& joined : table.streams) {
    if (faults.full()) return;
    if (joined.stream.delivery == Delivery::local) continue;
    if (!joined.stream.credits) {
      ++proofs.implied_credits;
      continue;
    }
    ++proofs.own_credits;
    const int group = rules.group(joined.stream, slots);
    if (group > 1) ++proofs.credit_groups;
    proofs.credit_group_max = std::max(proofs.credit_group_max, group);
    if (checked.insert(group).second) check_groups(joined, slots, group, rules, faults);
    if (joined.stream.delivery != Delivery::through_slots && !is_release_checked) {
      is_release_checked = true;
      check_released(joined, static_cast<std::uint64_t>(slots), rules, faults);
    }
    if (!rules.as_list(table.plans[joined.sender])) continue;
    ++proofs.looked_ahead;
    check_look_ahead(table, joined, rules, precedence, faults);
  }
}

}  // namespace torii::verification
