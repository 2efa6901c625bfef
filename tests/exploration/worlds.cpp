// SPDX-License-Identifier: Apache-2.0
// Worlds of ranks that run plans.
#include "tests/exploration/worlds.hpp"

#include "collectives/building/steps.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "tests/exploration/network_world.hpp"

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
PlanCase line(std::string name, int ranks, int slots, int window, std::vector<Call> calls) {
  PlanCase what;
  what.name = std::move(name);
  const PlanRequest request = request_of(ranks, Collective::broadcast, slots, window);
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

class List {
 public:
  void add(PlanCase what, bool is_short = true) {
    const std::string name = what.name;
    list_.push_back({name, is_short, [what = std::move(what)]() -> std::unique_ptr<World> {
                       if (what.nodes.empty()) return std::make_unique<PlanWorld>(what);
                       return std::make_unique<NetworkWorld>(what);
                     }});
  }
  std::vector<Listed> take() { return std::move(list_); }

 private:
  std::vector<Listed> list_;
};

void add_rings(List& list) {
  for (int slots = 1; slots <= 3; ++slots) {
    const std::string with = std::to_string(slots) + (slots == 1 ? " slot" : " slots");
    list.add(line("cells, " + with, 2, slots, 1, times(6, {.count = 1, .program = true})));
    list.add(line("wide cells, " + with, 2, slots, 1, times(6, {.count = 3, .program = true})));
    list.add(line("payload in the signal's line, " + with, 2, slots, 1, times(5, {.count = 7, .program = true})));
    list.add(line("slots, " + with, 2, slots, 1, times(5, {.count = 8, .program = true})));
    list.add(line("4 segments, " + with, 2, slots, 2, {{.count = 32}}));
    list.add(line("hand-over between schedules, " + with, 2, slots, 2,
                  {{.count = 1, .program = true}, {.count = 16}, {.count = 1}, {.count = 8, .program = true}}));
    list.add(line("3 ranks in a line, " + with, 3, slots, 2, times(4, {.count = 1, .program = true})));
    list.add(apart(line("4 segments, " + with, 2, slots, 2, {{.count = 32}})));
  }
}

void add_places(List& list) {
  list.add(catalogued("broadcast in place", "node", 2, Collective::broadcast, 2, 2,
                      times(2, {.count = 16, .in_place = true})));
  list.add(catalogued("allreduce in place", "node", 2, Collective::allreduce, 2, 2,
                      times(2, {.count = 16, .in_place = true})));
  list.add(catalogued("broadcast written in place", "binomial", 2, Collective::broadcast, 2, 2,
                      times(3, {.count = 16, .in_place = true})));
  list.add(catalogued("stores past the caches, in place", "binomial", 2, Collective::broadcast, 2, 2,
                      times(2, {.count = 8, .in_place = true, .past_caches = true})));
}

void add_exchanges(List& list) {
  for (int slots = 1; slots <= 3; ++slots) {
    const std::string with = std::to_string(slots) + (slots == 1 ? " slot" : " slots");
    list.add(catalogued("pairwise, " + with, "direct", 2, Collective::alltoall, slots, 2, times(2, {.count = 16})));
    list.add(apart(catalogued("pairwise, " + with, "direct", 2, Collective::alltoall, slots, 2,
                              times(2, {.count = 16}))));
  }
  list.add(catalogued("pairwise in place", "direct", 2, Collective::alltoall, 2, 2,
                      times(2, {.count = 16, .in_place = true})));
  list.add(catalogued("pairwise in place, then by value, then in place", "direct", 2, Collective::alltoall, 2, 2,
                      {{.count = 16, .in_place = true}, {.count = 16}, {.count = 16, .in_place = true}}));
}

}  // namespace

std::vector<Listed> worlds() {
  List list;
  add_rings(list);
  add_places(list);
  add_exchanges(list);
  return list.take();
}

}  // namespace torii::exploration
