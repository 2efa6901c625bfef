// SPDX-License-Identifier: Apache-2.0
// Worlds of ranks that run plans, within a node and over a network.
#include "tests/exploration/plan_cases.hpp"

namespace torii::exploration {
namespace {

/// The case with standing rings of so many entries, and an outbox for so many payloads of a line each.
PlanCase on_rings(PlanCase what, int entries, std::size_t payloads = 3) {
  what.name += ", rings of " + std::to_string(entries) + (entries == 1 ? " entry" : " entries");
  const int ranks = static_cast<int>(what.plans.size());
  what.rings = RingSizes{ranks, 1, entries, 4, payloads * kSegmentBytes};
  return what;
}

PlanCase sleepers(bool sleeps_end) {
  const Call call = {.count = 1, .program = true};
  return on_rings(asleep(line("ranks that sleep", 2, 1, 1, times(2, call)), sleeps_end), 1);
}

void add_standing_rings(List& list) {
  const auto program = [](std::size_t count, int plan = 0) {
    return Call{.count = count, .plan = plan, .program = true};
  };
  const auto by_value = [](std::size_t count, int plan = 0) { return Call{.count = count, .plan = plan}; };
  for (const int entries : {1, 2, 4}) {
    const int slots = std::min(entries, 3);
    const auto add = [&](PlanCase what, std::size_t payloads = 3, bool is_short = true) {
      list.add(on_rings(std::move(what), entries, payloads), is_short);
    };
    add(line("cells", 2, slots, 1, times(7, program(1))));
    add(line("wide cells", 2, slots, 1, times(6, program(3))));
    add(line("payload in the line", 2, slots, 1, times(5, program(7))));
    add(line("payload in the outbox", 2, slots, 1, times(5, program(8))));
    add(line("payload in an outbox for one", 2, 1, 1, times(4, program(8))), 1);
    add(line("5 segments", 2, slots, 2, {{.count = 40}}));
    add(line("short, long, short", 2, slots, 2, {program(1), by_value(16), by_value(1), program(8), program(3)}));
    add(line("3 ranks in a line", 3, slots, 2, times(3, program(1))));
    add(line("3 ranks in a line, 3 segments", 3, slots, 2, {{.count = 24}}), 3, entries == 1);
    // The ring from rank 0 to rank 1 carries one plan's messages after the other's; rank 1 sends in one of them alone.
    const auto allreduce = [&] { return catalogued("", "recursive_doubling", 2, Collective::allreduce, slots, 1, {}); };
    if (entries != 1) {
      add(in_turn("two plans in turn", line("", 2, slots, 1, {}), {allreduce()},
                  {program(1), program(1, 1), program(8), program(8, 1)}));
    }
    // The payload is one for both ranks; the next one is for one of them.
    add(in_turn("an outbox read by two ranks, then by one", catalogued("", "node", 3, Collective::broadcast, 1, 1, {}),
                {line("", 3, std::min(entries, 2), 1, {})}, {by_value(8), program(8, 1), by_value(8)}),
        2);
  }
  list.add(on_rings(line("5 segments in 1 slot", 2, 1, 2, {{.count = 40}}), 4));
  // Of 8 entries two are counted together, of payloads in fewer places each one, and all at the end of a call.
  list.add(on_rings(line("counts after several messages", 2, 8, 1, times(11, program(1))), 8, 8));
  list.add(on_rings(line("2 segments in 1 slot", 2, 1, 1, {by_value(16)}), 8, 1));
  list.add(on_rings(line("a whole outbox after one payload", 2, 8, 1, {program(8), by_value(64)}), 8, 8));
  list.add(on_rings(
      line("stores past the caches", 2, 2, 1, times(4, {.count = 256, .program = true, .past_caches = true}), 2048), 2,
      2 * 2048 / kSegmentBytes));
  list.add(sleepers(true));
}

void add_places(List& list) {
  const auto add = [&](PlanCase what, bool is_short = true) { list.add(on_rings(std::move(what), 2, 8), is_short); };
  const Call in_place = {.count = 16, .in_place = true};
  const Call by_value = {.count = 16};
  add(catalogued("broadcast in place", "node", 2, Collective::broadcast, 2, 2, times(2, in_place)));
  add(catalogued("broadcast in place, then by value", "node", 2, Collective::broadcast, 2, 2,
                 {in_place, by_value, in_place}));
  add(catalogued("broadcast written in place", "binomial", 2, Collective::broadcast, 2, 2, times(3, in_place)));
  add(catalogued("stores past the caches, in place", "binomial", 2, Collective::broadcast, 2, 2,
                 times(2, {.count = 8, .in_place = true, .past_caches = true})));
  add(catalogued("broadcast in place, 3 ranks", "node", 3, Collective::broadcast, 2, 2, times(2, in_place)));
  add(catalogued("allreduce in place", "node", 2, Collective::allreduce, 2, 2, times(2, in_place)), false);
  add(catalogued("allreduce by value", "node", 2, Collective::allreduce, 2, 2, {by_value}), false);
  add(catalogued("allreduce of 3 ranks", "node", 3, Collective::allreduce, 1, 1, {{.count = 1}}), false);
  add(catalogued("bundles", "floyd", 3, Collective::alltoall, 2, 1, {{.count = 24}}), false);
}

void add_exchanges(List& list) {
  const auto exchange = [](std::vector<Call> calls, int slots = 2) {
    return catalogued("pairwise", "direct", 2, Collective::alltoall, slots, 2, std::move(calls));
  };
  const Call by_value = {.count = 16};
  const Call in_place = {.count = 16, .in_place = true};
  for (const int entries : {1, 2, 4}) {
    const int slots = std::min(entries, 3);
    list.add(on_rings(exchange(times(2, by_value), slots), entries, 1));
    PlanCase at_once = exchange({{.count = 16, .unequal = true}, {.count = 2, .unequal = true}, by_value}, slots);
    at_once.name += " at once";
    list.add(on_rings(std::move(at_once), entries));
    PlanCase longer = exchange({{.count = 48}}, slots);
    longer.name += ", 3 messages to each";
    list.add(on_rings(std::move(longer), entries, 1), entries == 1);
  }
  PlanCase read = exchange(times(2, in_place));
  read.name += " read in place";
  for (Plan& plan : read.plans) plan.exchange.prefers_reads = true;
  list.add(on_rings(std::move(read), 2));
  list.add(on_rings(
      in_turn("pairwise in place, then by value, then in place", exchange({}), {}, {in_place, by_value, in_place}), 2));
  list.add(on_rings(in_turn("pairwise in place, then at once, then in place", exchange({}), {},
                            {in_place, {.count = 16, .unequal = true}, in_place}),
                    2));
  // Rings and lines of offers are those of both plans.
  const auto broadcast = [] { return catalogued("", "node", 2, Collective::broadcast, 2, 2, {}); };
  const auto of_other = [](Call call) {
    call.plan = 1;
    return call;
  };
  list.add(on_rings(
      in_turn("exchange, flows, exchange", exchange({}), {broadcast()}, {in_place, of_other(in_place), in_place}), 2));
  list.add(on_rings(in_turn("exchange, flows, exchange by value", exchange({}, 1), {line("", 2, 1, 1, {})},
                            {by_value, of_other({.count = 8, .program = true}), by_value}),
                    1, 2));
  list.add(on_rings(
      in_turn("flows, exchange, flows", broadcast(), {exchange({})}, {in_place, of_other(in_place), in_place}), 2));
}

/// The case with standing rings between nodes, of so many entries; `group` messages of flows share a credit.
PlanCase on_distant_rings(PlanCase what, int entries, std::uint32_t group, std::size_t payloads = 16) {
  what.name += ", rings of " + std::to_string(entries) + (entries == 1 ? " entry" : " entries");
  const int ranks = static_cast<int>(what.plans.size());
  RingSizes sizes{1, 1, entries, 7, payloads * (kSegmentBytes + kLineBytes)};
  sizes.team_ranks = ranks;
  sizes.kinds = {{{entries, 1}, {entries, group}, {entries, group}, {entries, group}}};
  what.rings = sizes;
  return what;
}

void add_distant_rings(List& list) {
  const auto program = [](std::size_t count, int plan = 0) {
    return Call{.count = count, .plan = plan, .program = true};
  };
  const auto by_value = [](std::size_t count, int plan = 0) { return Call{.count = count, .plan = plan}; };
  for (const int entries : {1, 2, 4}) {
    const int slots = std::min(entries, 3);
    const auto add = [&](PlanCase what, bool is_short = true) {
      list.add(on_distant_rings(std::move(what), entries, 1), is_short);
    };
    add(apart(line("3 segments", 2, slots, 2, {{.count = 24}})));
    add(apart_at_once(line("4 segments", 2, slots, 2, {{.count = 32}})), false);
    add(apart_at_once(line("calls as programs", 2, slots, 1, times(4, program(8)))));
    add(apart(line("short calls", 2, slots, 1, times(3, program(1)))), entries == 1);
    add(apart_at_once(
            line("short, long, short", 2, slots, 2, {program(1), by_value(16), by_value(1), program(8), program(3)})),
        entries == 2);
    const auto allreduce = [&] {
      return catalogued("", "recursive_doubling", 2, Collective::allreduce, std::max(entries, 2), 1, {});
    };
    add(apart_at_once(in_turn("two plans in turn", line("", 2, slots, 1, {}), {allreduce()},
                              {program(1), program(8, 1), program(8)})),
        entries == 2);
    // The payload is one for both ranks; the next one is for one of them.
    add(apart_at_once(in_turn("a payload for two ranks, then for one",
                              catalogued("", "node", 3, Collective::broadcast, std::max(slots, 2), 2, {}),
                              {line("", 3, slots, 1, {})}, {by_value(8), program(8, 1), by_value(8)})),
        entries == 1);
    const auto exchange = [&](std::vector<Call> calls) {
      return catalogued("pairwise", "direct", 2, Collective::alltoall, slots, 2, std::move(calls));
    };
    add(apart(exchange({{.count = 16}})));
    PlanCase twice = exchange(times(2, {.count = 16}));
    twice.name += ", 2 calls";
    add(apart(std::move(twice)), false);
    add(apart(catalogued("scatter", "direct", 2, Collective::scatter, slots, 2, times(3, {.count = 16}))),
        entries == 1);
    add(apart_at_once(in_turn("exchange, flows, exchange", exchange({}), {line("", 2, slots, 1, {})},
                              {by_value(16), program(8, 1), by_value(16)})),
        false);
  }
  std::vector<Call> by_turns;
  for (int call = 0; call < 9; ++call) by_turns.push_back(program(8, call % 2));
  list.add(on_distant_rings(apart_at_once(in_turn("groups of credits of two plans", line("", 2, 4, 1, {}),
                                                  {line("", 2, 4, 1, {})}, by_turns)),
                            4, 2));
  list.add(on_distant_rings(
      apart(catalogued("scatter, an outbox for one", "direct", 2, Collective::scatter, 2, 2, {{.count = 48}})), 4, 1,
      1));
  const auto told = [&](std::string name, PlanCase what) {
    what.name = std::move(name);
    what.tells = true;
    list.add(on_distant_rings(apart(std::move(what)), 1, 1));
  };
  told("places of entries are told", line("", 2, 1, 1, times(2, by_value(8))));
  told("places of an exchange's entries are told",
       catalogued("", "direct", 2, Collective::scatter, 1, 1, times(2, {.count = 16})));
}

void add_differing_calls(List& list) {
  PlanCase differ = line("calls that differ", 2, 2, 1, times(2, {.count = 1, .program = true}));
  differ.last_calls_differ = true;
  list.add(on_rings(differ, 2));
  list.add(on_distant_rings(apart(std::move(differ)), 2, 1));
}

}  // namespace

std::unique_ptr<World> sleepers_without_time() { return std::make_unique<PlanWorld>(sleepers(false)); }

void add_plans(List& list) {
  add_standing_rings(list);
  add_places(list);
  add_exchanges(list);
  add_distant_rings(list);
  add_differing_calls(list);
}

}  // namespace torii::exploration
