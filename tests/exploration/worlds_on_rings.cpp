// SPDX-License-Identifier: Apache-2.0
// Worlds whose plans use standing rings.
#include "tests/exploration/plan_cases.hpp"

namespace torii::exploration {
namespace {

/// The same over standing rings of so many entries, with an outbox for so many payloads of a line each.
PlanCase on_rings(PlanCase what, int entries, std::size_t payloads = 3) {
  what.name += ", rings of " + std::to_string(entries) + (entries == 1 ? " entry" : " entries");
  const int ranks = static_cast<int>(what.plans.size());
  what.rings = RingSizes{ranks, 1, entries, 4, payloads * kSegmentBytes};
  return what;
}

void add_standing_rings(List& list) {
  const auto program = [](std::size_t count, int plan = 0) {
    return Call{.count = count, .plan = plan, .program = true};
  };
  const auto by_value = [](std::size_t count, int plan = 0) { return Call{.count = count, .plan = plan}; };
  for (int entries = 1; entries <= 3; ++entries) {
    const auto add = [&](PlanCase what, std::size_t payloads = 3) {
      list.add(on_rings(std::move(what), entries, payloads));
    };
    add(line("cells", 2, entries, 1, times(7, program(1))));
    add(line("payload in the line", 2, entries, 1, times(5, program(7))));
    add(line("payload in the outbox", 2, entries, 1, times(5, program(8))));
    add(line("payload in an outbox for one", 2, 1, 1, times(4, program(8))), 1);
    add(line("5 segments", 2, entries, 2, {{.count = 40}}));
    add(line("short, long, short", 2, entries, 2, {program(1), by_value(16), by_value(1), program(8), program(3)}));
    add(line("3 ranks in a line", 3, entries, 2, times(3, program(1))));
    // The ring from rank 0 to rank 1 carries one plan's messages after the other's; rank 1 sends in one of them alone.
    const auto allreduce = [&] {
      return catalogued("", "recursive_doubling", 2, Collective::allreduce, std::max(entries, 2), 1, {});
    };
    add(in_turn("two plans in turn", line("", 2, entries, 1, {}), {allreduce()},
                {program(1), program(1, 1), program(8), program(8, 1)}));
    // The payload is one for both ranks; the next one is for one of them.
    add(in_turn("an outbox read by two ranks, then by one",
                catalogued("", "node", 3, Collective::broadcast, std::max(entries, 2), 2, {}),
                {line("", 3, entries, 1, {})}, {by_value(8), program(8, 1), by_value(8)}),
        2);
  }
  list.add(on_rings(line("5 segments in 1 slot", 2, 1, 2, {{.count = 40}}), 3));
  list.add(on_rings(line("counts after several messages", 2, 8, 1, times(11, program(1))), 8));
  list.add(on_rings(asleep(line("ranks that sleep", 2, 1, 1, times(2, program(1))), true), 1));
  PlanCase differ = line("calls that differ", 2, 2, 1, times(2, program(1)));
  differ.last_calls_differ = true;
  list.add(on_rings(std::move(differ), 2));
  list.add(on_rings(catalogued("broadcast in place, then by value", "node", 2, Collective::broadcast, 2, 2,
                               {{.count = 16, .in_place = true}, {.count = 16}, {.count = 16, .in_place = true}}),
                    2));
  list.add(on_rings(catalogued("broadcast written in place", "binomial", 2, Collective::broadcast, 2, 2,
                               times(3, {.count = 16, .in_place = true})),
                    2));
  list.add(on_rings(catalogued("allreduce in place", "node", 2, Collective::allreduce, 2, 2,
                               times(2, {.count = 16, .in_place = true})),
                    2),
           false);
}

void add_exchanges_on_rings(List& list) {
  const auto exchange = [](std::vector<Call> calls, int slots = 2) {
    return catalogued("pairwise", "direct", 2, Collective::alltoall, slots, 2, std::move(calls));
  };
  const Call by_value = {.count = 16};
  const Call in_place = {.count = 16, .in_place = true};
  for (int entries = 1; entries <= 3; ++entries) {
    list.add(on_rings(exchange(times(2, by_value), entries), entries, 1));
    PlanCase at_once = exchange({{.count = 16, .unequal = true}, {.count = 2, .unequal = true}, by_value}, entries);
    at_once.name += " at once";
    list.add(on_rings(std::move(at_once), entries));
    PlanCase longer = exchange({{.count = 48}}, entries);
    longer.name += ", 3 messages to each";
    list.add(on_rings(std::move(longer), entries, 1), entries == 1);
  }
  PlanCase read = exchange(times(2, in_place));
  read.name += " read in place";
  for (Plan& plan : read.plans) plan.exchange.prefers_reads = true;
  list.add(on_rings(std::move(read), 2));
  list.add(on_rings(
      in_turn("pairwise in place, then by value, then in place", exchange({}), {}, {in_place, by_value, in_place}), 2));
  // Rings and lines of offers are those of both plans.
  const auto broadcast = [] { return catalogued("", "node", 2, Collective::broadcast, 2, 2, {}); };
  const auto of_other = [](Call call) {
    call.plan = 1;
    return call;
  };
  list.add(on_rings(
      in_turn("exchange, flows, exchange", exchange({}), {broadcast()}, {in_place, of_other(in_place), in_place}), 2));
  list.add(on_rings(in_turn("exchange, flows, exchange by value", exchange({}), {line("", 2, 2, 1, {})},
                            {by_value, of_other({.count = 8, .program = true}), by_value}),
                    1, 2));
  list.add(on_rings(
      in_turn("flows, exchange, flows", broadcast(), {exchange({})}, {in_place, of_other(in_place), in_place}), 2));
}

/// The same over standing rings between nodes, of so many entries; `group` messages of flows share a credit.
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
  for (int entries = 1; entries <= 3; ++entries) {
    const auto add = [&](PlanCase what, bool is_short = true) {
      list.add(on_distant_rings(std::move(what), entries, 1), is_short);
    };
    add(apart(line("3 segments", 2, entries, 2, {{.count = 24}})));
    add(apart_at_once(
            line("short, long, short", 2, entries, 2, {program(1), by_value(16), by_value(1), program(8), program(3)})),
        entries == 2);
    const auto allreduce = [&] {
      return catalogued("", "recursive_doubling", 2, Collective::allreduce, std::max(entries, 2), 1, {});
    };
    add(apart_at_once(in_turn("two plans in turn", line("", 2, entries, 1, {}), {allreduce()},
                              {program(1), program(8, 1), program(8)})),
        entries == 2);
    // The payload is one for both ranks; the next one is for one of them.
    add(apart_at_once(in_turn("a payload for two ranks, then for one",
                              catalogued("", "node", 3, Collective::broadcast, std::max(entries, 2), 2, {}),
                              {line("", 3, entries, 1, {})}, {by_value(8), program(8, 1), by_value(8)})),
        entries == 1);
    const auto exchange = [&](std::vector<Call> calls) {
      return catalogued("pairwise", "direct", 2, Collective::alltoall, entries, 2, std::move(calls));
    };
    add(apart(exchange({{.count = 16}})));
    add(apart_at_once(in_turn("exchange, flows, exchange", exchange({}), {line("", 2, entries, 1, {})},
                              {by_value(16), program(8, 1), by_value(16)})),
        false);
  }
  std::vector<Call> by_turns;
  for (int call = 0; call < 9; ++call) by_turns.push_back(program(8, call % 2));
  list.add(on_distant_rings(apart_at_once(in_turn("groups of credits of two plans", line("", 2, 4, 1, {}),
                                                  {line("", 2, 4, 1, {})}, by_turns)),
                            4, 2));
  list.add(on_distant_rings(apart(catalogued("pairwise, an outbox for one", "direct", 2, Collective::alltoall, 2, 2,
                                             {{.count = 32}})),
                            3, 1, 1),
           false);
  PlanCase differ = apart(line("calls that differ", 2, 2, 1, times(2, program(1))));
  differ.last_calls_differ = true;
  list.add(on_distant_rings(std::move(differ), 2, 1));
}

}  // namespace

void add_worlds_on_rings(List& list) {
  add_standing_rings(list);
  add_exchanges_on_rings(list);
}

void add_worlds_on_distant_rings(List& list) { add_distant_rings(list); }

}  // namespace torii::exploration
