// SPDX-License-Identifier: Apache-2.0
// Worlds of ranks that run plans.
#include "tests/exploration/worlds.hpp"

#include <utility>

#include "collectives/building/steps.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "runtime/point_to_point/operations.hpp"
#include "tests/exploration/network_world.hpp"
#include "tests/exploration/pair_world.hpp"
#include "tests/exploration/plan_world.hpp"
#include "tests/exploration/record_worlds.hpp"
#include "tests/exploration/survivor_worlds.hpp"

namespace torii::exploration {
namespace {

constexpr std::size_t kSegmentBytes = 64;

PlanRequest request_of(int ranks, Collective collective, int slots, int window) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::node(ranks);
  request.tuning = {.segment_bytes = kSegmentBytes, .slots = slots, .window = window};
  return request;
}

/// One stream from each rank to the next, with a credit for each message: rank 0's operand goes down the line.
PlanCase line(std::string name, int ranks, int slots, int window, std::vector<Call> calls,
              std::size_t segment_bytes = kSegmentBytes) {
  PlanCase what;
  what.name = std::move(name);
  PlanRequest request = request_of(ranks, Collective::broadcast, slots, window);
  request.tuning.segment_bytes = segment_bytes;
  for (int rank = 0; rank < ranks; ++rank) {
    Steps steps(request, rank, 1);
    steps.begin("line");
    if (rank == 0) {
      steps.combine(Steps::own());
    } else {
      steps.combine(Link{{.peer = rank - 1}}).keep();
    }
    if (rank + 1 < ranks) steps.send(Link{{.peer = rank + 1}});
    what.plans.push_back(steps.take());
    what.plans.back().in_streams_max = what.plans.back().out_streams_max = 1;
  }
  what.tuning = request.tuning;
  what.calls = std::move(calls);
  return what;
}

PlanCase catalogued(std::string name, std::string_view algorithm, int ranks, Collective collective, int slots,
                    int window, std::vector<Call> calls) {
  PlanCase what;
  what.name = std::move(name);
  what.collective = collective;
  const PlanRequest request = request_of(ranks, collective, slots, window);
  const Algorithm& row = *find_algorithm(algorithm);
  if (const std::string why = row.why_not(request); !why.empty()) throw Error(Status::internal, why);
  what.plans = plan_all(row, request);
  what.tuning = request.tuning;
  what.calls = std::move(calls);
  return what;
}

std::vector<Call> times(std::size_t calls, const Call& call) { return std::vector<Call>(calls, call); }

/// The same between nodes, each rank alone on one.
PlanCase apart(PlanCase what) {
  what.name += ", over a network";
  what.nodes.clear();
  for (std::size_t rank = 0; rank < what.plans.size(); ++rank) what.nodes.push_back(static_cast<int>(rank));
  return what;
}

PlanCase apart_at_once(PlanCase what) {
  what = apart(std::move(what));
  what.moves_at_once = true;
  what.name += " (by loads)";
  return what;
}

PlanCase asleep(PlanCase what, bool sleeps_end) {
  for (Call& call : what.calls) call.sleeps = true;
  what.sleeps_end = sleeps_end;
  return what;
}

class List {
 public:
  void add(PlanCase what, bool is_short = true) {
    const std::string name = what.name;
    list_.push_back(
        {name, is_short, [what = std::move(what)]() -> std::unique_ptr<World> {
           auto world = std::make_unique<PlanWorld>(what);
           if (what.nodes.empty()) return world;
           return std::make_unique<NetworkWorld>(std::move(world), NodesOfRanks{what.nodes, what.moves_at_once});
         }});
  }
  void add(PairCase what, bool apart = false, bool is_short = true) {
    const std::string name = what.name;
    list_.push_back({name, is_short, [what = std::move(what), apart]() -> std::unique_ptr<World> {
                       auto world = std::make_unique<PairWorld>(what);
                       if (!apart) return world;
                       NodesOfRanks nodes;
                       for (int rank = 0; rank < world->ranks(); ++rank) nodes.nodes.push_back(rank);
                       return std::make_unique<NetworkWorld>(std::move(world), std::move(nodes));
                     }});
  }
  std::vector<Listed> take() { return std::move(list_); }

 private:
  std::vector<Listed> list_;
};

std::string with_slots(std::string_view what, int slots) {
  return std::string(what) + ", " + std::to_string(slots) + (slots == 1 ? " slot" : " slots");
}

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

/// The same over standing rings of so many entries, with an outbox for so many payloads of a line each.
PlanCase on_rings(PlanCase what, int entries, std::size_t payloads = 3) {
  what.name += ", rings of " + std::to_string(entries) + (entries == 1 ? " entry" : " entries");
  const int ranks = static_cast<int>(what.plans.size());
  what.rings = RingSizes{ranks, 1, entries, 4, payloads * kSegmentBytes};
  return what;
}

/// Calls of several plans, in this order.
PlanCase in_turn(std::string name, PlanCase first, std::vector<PlanCase> others, std::vector<Call> calls) {
  first.name = std::move(name);
  first.others = std::move(others);
  first.calls = std::move(calls);
  return first;
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

/// Sends of rank 0 to rank 1, received in this order of tags.
PairCase to_one(std::string name, int slots, std::vector<PairStep> sends, const std::vector<int>& tags) {
  std::vector<PairStep> receives;
  for (const int tag : tags) receives.push_back(receive(0, tag));
  for (PairStep& one : receives) one.waits = true;
  return {with_slots(name, slots), slots, {then_wait(std::move(sends)), std::move(receives)}};
}

void add_pairs(List& list) {
  constexpr std::size_t kLong = 10;  // more than a slot holds
  for (int slots = 1; slots <= 2; ++slots) {
    list.add(to_one("sends in the signal's line", slots, {send(1, 0, 1), send(1, 1, 2), send(1, 0, 1)}, {0, 1, 0}));
    list.add(to_one("sends behind it", slots, {send(1, 0, 6), send(1, 0, 5), send(1, 0, 6)}, {0, 0, 0}));
    list.add(to_one("sends before their receives", slots, {send(1, 0, 1), send(1, 0, 6), send(1, 1, 1)}, {1, 0, 0}));
    list.add(to_one("a send that is read in place", slots, {send(1, 0, kLong, true), send(1, 1, 1)}, {0, 1}));
    list.add(to_one("a send in parts", slots, {send(1, 0, kLong), send(1, 1, 1)}, {0, 1}));
    list.add(to_one("sends in parts in another order", slots, {send(1, 0, kLong), send(1, 1, kLong)}, {1, 0}));
    const auto both = [&](bool in_arena) {
      return PairCase{with_slots(in_arena ? "both ways, read in place" : "both ways, in parts", slots),
                      slots,
                      {then_wait({send(1, 0, kLong, in_arena), receive(1, 0)}),
                       then_wait({send(0, 0, kLong, in_arena), receive(0, 0)})}};
    };
    list.add(both(true));
    list.add(both(false));
  }
  list.add(PairCase{"sends of two ranks to any",
                    1,
                    {then_wait({send(2, 0, 1)}), then_wait({send(2, 0, 1)}),
                     then_wait({receive(kAnyRank, 0), receive(kAnyRank, 0)})}});
  list.add(to_one("sends over a network", 1, {send(1, 0, 1), send(1, 1, 6)}, {1, 0}), true);
  list.add(to_one("a send in parts over a network", 2, {send(1, 0, kLong)}, {0}), true);
}

}  // namespace

std::unique_ptr<World> sleepers_without_time() {
  return std::make_unique<PlanWorld>(
      asleep(line("ranks that sleep", 2, 1, 1, times(2, {.count = 1, .program = true})), false));
}

std::vector<Listed> worlds(bool full) {
  List list;
  add_rings(list);
  add_standing_rings(list);
  add_exchanges_on_rings(list);
  add_networks(list);
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
