// SPDX-License-Identifier: Apache-2.0
// Worlds of ranks that run plans.
#include "tests/exploration/worlds.hpp"

#include <utility>

#include "runtime/point_to_point/operations.hpp"
#include "tests/exploration/plan_cases.hpp"
#include "tests/exploration/record_worlds.hpp"
#include "tests/exploration/survivor_worlds.hpp"

namespace torii::exploration {
namespace {

void add_rings(List& list) {
  for (int slots = 1; slots <= 3; ++slots) {
    const auto program = [](std::size_t count) { return Call{.count = count, .program = true}; };
    list.add(line(with_slots("cells", slots), 2, slots, 1, times(7, program(1))));
    list.add(line(with_slots("wide cells", slots), 2, slots, 1, times(6, program(3))));
    list.add(line(with_slots("payload in the signal's line", slots), 2, slots, 1, times(5, program(7))));
    list.add(line(with_slots("payload behind it", slots), 2, slots, 1, times(5, program(8))));
    list.add(line(with_slots("5 segments", slots), 2, slots, 2, {{.count = 40}}));
    list.add(line(with_slots("hand-over between schedules", slots), 2, slots, 2,
                  {program(1), {.count = 16}, {.count = 1}, program(8)}));
    list.add(line(with_slots("3 ranks in a line", slots), 3, slots, 2, times(4, program(1))), slots == 1);
    list.add(line(with_slots("3 ranks in a line, 3 segments", slots), 3, slots, 2, {{.count = 24}}), slots == 1);
  }
  list.add(line("stores past the caches, 2 slots", 2, 2, 1,
                times(4, {.count = 256, .program = true, .past_caches = true}), 2048));
  PlanCase differ = line("calls that differ", 2, 2, 1, times(2, {.count = 1, .program = true}));
  differ.last_calls_differ = true;
  list.add(std::move(differ));
  list.add(asleep(line("ranks that sleep", 2, 1, 1, times(2, {.count = 1, .program = true})), true));
}

void add_networks(List& list) {
  for (int slots = 1; slots <= 3; ++slots) {
    const auto segments = [&](std::size_t count) { return line("", 2, slots, 2, {{.count = 8 * count}}); };
    const auto named = [&](std::string_view what, PlanCase one) {
      one.name = with_slots(what, slots) + one.name;
      return one;
    };
    list.add(named("3 segments", apart(segments(3))));
    list.add(named("4 segments", apart_at_once(segments(4))), false);
    list.add(named("calls as programs", apart_at_once(line("", 2, slots, 1, times(4, {.count = 8, .program = true})))));
    list.add(named("short calls", apart(line("", 2, slots, 1, times(3, {.count = 1, .program = true})))), slots == 1);
  }
  list.add(apart_at_once(line("groups of credits, 8 slots", 2, 8, 1, times(11, {.count = 8, .program = true}))));
}

void add_places(List& list) {
  list.add(catalogued("broadcast in place", "node", 2, Collective::broadcast, 2, 2,
                      times(2, {.count = 16, .in_place = true})));
  list.add(catalogued("allreduce in place", "node", 2, Collective::allreduce, 2, 2,
                      times(2, {.count = 16, .in_place = true})),
           false);
  list.add(catalogued("allreduce by value", "node", 2, Collective::allreduce, 2, 2, times(2, {.count = 16})), false);
  list.add(catalogued("broadcast written in place", "binomial", 2, Collective::broadcast, 2, 2,
                      times(3, {.count = 16, .in_place = true})));
  list.add(catalogued("broadcast in place, then by value", "node", 2, Collective::broadcast, 2, 2,
                      {{.count = 16, .in_place = true}, {.count = 16}, {.count = 16, .in_place = true}}));
  list.add(catalogued("stores past the caches, in place", "binomial", 2, Collective::broadcast, 2, 2,
                      times(2, {.count = 8, .in_place = true, .past_caches = true})));
  list.add(catalogued("allreduce of 3 ranks", "node", 3, Collective::allreduce, 1, 1, {{.count = 1}}), false);
}

void add_exchanges(List& list) {
  for (int slots = 1; slots <= 3; ++slots) {
    const auto exchange = [&](std::size_t calls, std::size_t count) {
      return catalogued(with_slots("pairwise", slots), "direct", 2, Collective::alltoall, slots, 2,
                        times(calls, {.count = count}));
    };
    list.add(exchange(2, 16));
    list.add(catalogued(with_slots("pairwise at once", slots), "direct", 2, Collective::alltoall, slots, 2,
                        times(2, {.count = 16, .unequal = true})));
    PlanCase longer = exchange(1, 48);
    longer.name += ", 3 messages to each";
    list.add(std::move(longer), slots == 1);
    list.add(apart(exchange(1, 16)));
    PlanCase twice = apart(exchange(2, 16));
    twice.name += ", 2 calls";
    list.add(std::move(twice), false);
  }
  list.add(catalogued("pairwise in place", "direct", 2, Collective::alltoall, 2, 2,
                      times(2, {.count = 16, .in_place = true})));
  PlanCase read = catalogued("pairwise read in place", "direct", 2, Collective::alltoall, 2, 2,
                             times(2, {.count = 16, .in_place = true}));
  for (Plan& plan : read.plans) plan.exchange.prefers_reads = true;
  list.add(std::move(read));
  list.add(catalogued("pairwise in place, then by value, then in place", "direct", 2, Collective::alltoall, 2, 2,
                      {{.count = 16, .in_place = true}, {.count = 16}, {.count = 16, .in_place = true}}));
  list.add(
      catalogued("pairwise in place, then at once, then in place", "direct", 2, Collective::alltoall, 2, 2,
                 {{.count = 16, .in_place = true}, {.count = 16, .unequal = true}, {.count = 16, .in_place = true}}));
  list.add(catalogued("broadcast in place, 3 ranks", "node", 3, Collective::broadcast, 2, 2,
                      times(2, {.count = 16, .in_place = true})));
  list.add(catalogued("bundles", "floyd", 3, Collective::alltoall, 2, 1, {{.count = 24}}), false);
}

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
  PairCase in_parts = to_one("a send in parts over a network", 2, {send(1, 0, kLong)}, {0});
  in_parts.distant_entries = 2;
  list.add(std::move(in_parts), true);
}

}  // namespace

std::unique_ptr<World> sleepers_without_time() {
  return std::make_unique<PlanWorld>(
      asleep(line("ranks that sleep", 2, 1, 1, times(2, {.count = 1, .program = true})), false));
}

std::vector<Listed> worlds(bool full) {
  List list;
  add_rings(list);
  add_worlds_on_rings(list);
  add_networks(list);
  add_worlds_on_distant_rings(list);
  add_places(list);
  add_exchanges(list);
  add_pairs(list);
  std::vector<Listed> all = list.take();
  for (const auto& [name, change] : {std::pair("moved", AddressChange::moves), std::pair("more", AddressChange::more),
                                     std::pair("in a larger block", AddressChange::larger_block)}) {
    all.push_back({std::string("adopted addresses, ") + name, true, [change] { return adopted_addresses(change); }});
  }
  all.push_back({"call records", true, call_records});
  all.push_back({"refusal notices", true, refusal_notices});
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
  add("one gives up three times", false, {{.hasty_calls = 3}, {}});
  if (!full) std::erase_if(all, [](const Listed& one) { return !one.is_short; });
  return all;
}

}  // namespace torii::exploration
