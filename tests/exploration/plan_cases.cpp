// SPDX-License-Identifier: Apache-2.0
// Makes cases of plans.
#include "tests/exploration/plan_cases.hpp"

#include "collectives/building/steps.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"

namespace torii::exploration {
namespace {

PlanRequest request_of(int ranks, Collective collective, int slots, int window) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::node(ranks);
  request.tuning = {.segment_bytes = kSegmentBytes, .slots = slots, .window = window};
  return request;
}

}  // namespace

PlanCase line(std::string name, int ranks, int slots, int window, std::vector<Call> calls, std::size_t segment_bytes) {
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

PlanCase in_turn(std::string name, PlanCase first, std::vector<PlanCase> others, std::vector<Call> calls) {
  first.name = std::move(name);
  first.others = std::move(others);
  first.calls = std::move(calls);
  return first;
}

std::string with_slots(std::string_view what, int slots) {
  return std::string(what) + ", " + std::to_string(slots) + (slots == 1 ? " slot" : " slots");
}

}  // namespace torii::exploration
