// SPDX-License-Identifier: Apache-2.0
// Worlds of ranks that send to each other, and the list of all worlds.
#include "tests/exploration/worlds.hpp"

#include <utility>

#include "runtime/point_to_point/operations.hpp"
#include "tests/exploration/founding_worlds.hpp"
#include "tests/exploration/plan_cases.hpp"
#include "tests/exploration/record_worlds.hpp"
#include "tests/exploration/survivor_worlds.hpp"

namespace torii::exploration {
namespace {

PairStep send(int to, int tag, std::size_t count, bool in_arena = false) {
  return {.sends = true, .peer = to, .tag = tag, .count = count, .in_arena = in_arena, .waits = false};
}
PairStep receive(int from, int tag) { return {.sends = false, .peer = from, .tag = tag, .waits = false}; }
std::vector<PairStep> then_wait(std::vector<PairStep> steps) {
  steps.back().waits = true;
  return steps;
}

std::string with_entries(std::string_view what, int entries) {
  return std::string(what) + (entries == 1 ? ", 1 entry" : ", " + std::to_string(entries) + " entries");
}

/// Sends of rank 0 to rank 1, received in this order of tags.
PairCase to_one(std::string name, int entries, std::vector<PairStep> sends, const std::vector<int>& tags) {
  std::vector<PairStep> receives;
  for (const int tag : tags) receives.push_back(receive(0, tag));
  for (PairStep& one : receives) one.waits = true;
  return {with_entries(name, entries), entries, {then_wait(std::move(sends)), std::move(receives)}};
}

void add_pairs(List& list) {
  constexpr std::size_t kLong = 10;  // more than a place holds
  for (int entries = 1; entries <= 2; ++entries) {
    const auto add = [&](PairCase what) { list.add(std::move(what)); };
    add(to_one("sends in the signal's line", entries, {send(1, 0, 1), send(1, 1, 2), send(1, 0, 1)}, {0, 1, 0}));
    add(to_one("sends behind it", entries, {send(1, 0, 6), send(1, 0, 5), send(1, 0, 6)}, {0, 0, 0}));
    add(to_one("sends before their receives", entries, {send(1, 0, 1), send(1, 0, 6), send(1, 1, 1)}, {1, 0, 0}));
    add(to_one("a send that is read in place", entries, {send(1, 0, kLong, true), send(1, 1, 1)}, {0, 1}));
    add(to_one("a send in parts", entries, {send(1, 0, kLong), send(1, 1, 1)}, {0, 1}));
    add(to_one("sends in parts in another order", entries, {send(1, 0, kLong), send(1, 1, kLong)}, {1, 0}));
    const auto both = [&](bool in_arena) {
      return PairCase{with_entries(in_arena ? "both ways, read in place" : "both ways, in parts", entries),
                      entries,
                      {then_wait({send(1, 0, kLong, in_arena), receive(1, 0)}),
                       then_wait({send(0, 0, kLong, in_arena), receive(0, 0)})}};
    };
    add(both(true));
    add(both(false));
  }
  list.add(to_one("sends that share a place", 2, {send(1, 0, 6), send(1, 0, 6), send(1, 0, 5)}, {0, 0, 0}));
  list.add(PairCase{"sends of two ranks to any",
                    1,
                    {then_wait({send(2, 0, 1)}), then_wait({send(2, 0, 1)}),
                     then_wait({receive(kAnyRank, 0), receive(kAnyRank, 0)})}});
  list.add(to_one("sends over a network", 1, {send(1, 0, 1), send(1, 1, 6)}, {1, 0}), true);
  list.add(to_one("sends over a network from one place", 1, {send(1, 0, 6), send(1, 0, 5)}, {0, 0}), true);
  PairCase in_parts = to_one("a send in parts over a network", 2, {send(1, 0, kLong)}, {0});
  in_parts.distant_entries = 2;
  list.add(std::move(in_parts), true);
}

void add_foundings(std::vector<Listed>& list) {
  using Calls = std::vector<std::vector<FoundingCall>>;
  const auto add = [&](std::string name, bool is_short, int entries, Calls calls) {
    list.push_back({"foundings: " + std::move(name), is_short, [calls, entries] { return foundings(calls, entries); }});
  };
  const FoundingCall both = {.members = {1, 0}};
  const auto with = [](FoundingCall call, bool FoundingCall::*what) {
    call.*what = true;
    return call;
  };
  add("two ranks, again in one entry", true, 1, {{both, both}, {both, both}});
  add("one refuses at first", true, 1, {{both}, {with(both, &FoundingCall::refuses)}});
  add("the opener refuses at first", true, 1, {{with(both, &FoundingCall::refuses)}, {both}});
  add("one differs at first", true, 1, {{both}, {with(both, &FoundingCall::differs)}});
  add("one has no object at first", true, 1, {{both}, {with(both, &FoundingCall::fails_object)}});
  const FoundingCall alone = {.members = {0}};
  const FoundingCall in_vain = with(both, &FoundingCall::has_no_team);
  const FoundingCall refused = with(in_vain, &FoundingCall::refuses);
  add("a member dies inside", true, 1, {{in_vain, alone}, {with(both, &FoundingCall::dies_inside)}});
  add("a member dies before", true, 1, {{refused, alone}, {with(both, &FoundingCall::dies)}});
  add("two ranks, again in another entry", false, 2, {{both, both}, {both, both}});
  add("one gives up at first", false, 2, {{both}, {with(both, &FoundingCall::is_hasty)}});
  add("the opener gives up at first", false, 2, {{with(both, &FoundingCall::is_hasty)}, {both}});
}

}  // namespace

std::vector<Listed> worlds(bool full) {
  List list;
  add_plans(list);
  add_pairs(list);
  std::vector<Listed> all = list.take();
  for (const auto& [name, change] : {std::pair("moved", AddressChange::moves), std::pair("more", AddressChange::more),
                                     std::pair("in a larger block", AddressChange::larger_block)}) {
    all.push_back({std::string("adopted addresses, ") + name, true, [change] { return adopted_addresses(change); }});
  }
  all.push_back({"call records", true, call_records});
  all.push_back({"refusal notices", true, refusal_notices});
  all.push_back({"calls that both refuse", true, calls_that_both_refuse});
  const auto add = [&](std::string name, bool is_short, std::vector<Caller> callers) {
    all.push_back({"survivors: " + std::move(name), is_short, [callers] { return survivors(callers); }});
  };
  all.push_back({"rounds of survivors", true, rounds_of_survivors});
  add("two ranks", true, {{}, {}});
  add("one is left out", true, {{.without = {1}}, {}});
  add("one gives up at first, and is left out", true, {{.without = {1}}, {.hasty_calls = 1}});
  add("one was lost before", true, {{.lost = {1}}, {}});
  add("two leave each other out", true, {{.without = {1}}, {.without = {0}}});
  add("one refuses at first", false, {{}, {.refuses = true}});
  add("one gives up at first", false, {{.hasty_calls = 1}, {}});
  add("one gives up twice, and is left out", false, {{.without = {1}}, {.hasty_calls = 2}});
  add_foundings(all);
  if (!full) std::erase_if(all, [](const Listed& one) { return !one.is_short; });
  return all;
}

}  // namespace torii::exploration
