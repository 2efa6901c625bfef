// SPDX-License-Identifier: Apache-2.0
// Worlds of ranks that run plans.
#include "tests/exploration/worlds.hpp"

#include "collectives/building/steps.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "tests/exploration/plan_world.hpp"

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

}  // namespace

std::vector<Listed> worlds() {
  std::vector<Listed> list;
  const auto add = [&](PlanCase what, bool is_short = true) {
    const std::string name = what.name;
    list.push_back({name, is_short, [what = std::move(what)] { return std::make_unique<PlanWorld>(what); }});
  };
  const auto times = [](std::size_t calls, Call call) { return std::vector<Call>(calls, call); };
  for (int slots = 1; slots <= 3; ++slots) {
    const std::string with = std::to_string(slots) + (slots == 1 ? " slot" : " slots");
    add(line("cells, " + with + ", 4 calls", 2, slots, 1, times(4, {.count = 1, .program = true})));
    add(line("wide cells, " + with + ", 4 calls", 2, slots, 1, times(4, {.count = 3, .program = true})));
    add(line("slots, " + with + ", 4 calls", 2, slots, 1, times(4, {.count = 8, .program = true})));
    add(line("4 segments, " + with, 2, slots, 2, {{.count = 32}}));
  }
  add(catalogued("offers: broadcast in place", "node", 2, Collective::broadcast, 2, 2,
                 times(2, {.count = 16, .in_place = true})));
  add(catalogued("pairwise in place", "direct", 2, Collective::alltoall, 2, 2,
                 times(2, {.count = 16, .in_place = true})));
  return list;
}

}  // namespace torii::exploration
