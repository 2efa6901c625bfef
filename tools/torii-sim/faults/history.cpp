// SPDX-License-Identifier: Apache-2.0
// Draws histories, and tells what may come of them.
#include "tools/torii-sim/faults/history.hpp"

#include <algorithm>
#include <array>

#include "api/agreement/team_control.hpp"
#include "tools/torii-sim/faults/drawing.hpp"

namespace torii::faults {
namespace {

using fibers::kMicrosecond;
using fibers::kMillisecond;
using fibers::Time;

constexpr Time kPauseMostUs = 3000;

/// All members refuse, or some of them do something that fails the team.
void add_deviations(Step& step, const std::vector<int>& members, Draw& draw) {
  const auto refuses = [&](int rank) { step.deviations[static_cast<std::size_t>(rank)] = Deviation::refused; };
  if (draw.one_in(2)) {
    std::ranges::for_each(members, refuses);
    return;
  }
  const auto chosen = static_cast<std::size_t>(members[draw.below(members.size())]);
  switch (draw.below(4)) {
    case 0:
      step.other = unlike(step.call, draw.random());
      step.deviations[chosen] = Deviation::differs;
      return;
    case 1:
      step.deviations[chosen] = Deviation::aborts;
      return;
    case 2:
      // All but one.
      std::ranges::for_each(members, refuses);
      step.deviations[chosen] = Deviation::none;
      return;
    default:
      refuses(static_cast<int>(chosen));
      // Another member comes when those that do not need the refusing one are long done.
      step.pauses_us[static_cast<std::size_t>(members[draw.below(members.size())])] =
          static_cast<int>(draw.between(kPauseMostUs / 4, kPauseMostUs));
  }
}

/// A forced algorithm, and the collectives that it serves.
struct Forced {
  const char* algorithm;
  std::vector<torii_collective> collectives;
};

const std::vector<Forced>& all_forced() {
  static const std::vector<Forced> all = {
      {"trinaryx3", {TORII_BARRIER, TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE}},
      {"ring",
       {TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_REDUCE_SCATTER, TORII_SCAN,
        TORII_EXSCAN}},
      {"bucket", {TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_REDUCE_SCATTER}},
      {"recursive_doubling", {TORII_BARRIER, TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_SCAN, TORII_EXSCAN}},
      {"rabenseifner", {TORII_REDUCE, TORII_ALLREDUCE}},
      {"binomial", {TORII_BARRIER, TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE}},
      {"node",
       {TORII_BARRIER, TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_REDUCE_SCATTER,
        TORII_SCATTER, TORII_GATHER, TORII_SCAN, TORII_EXSCAN}},
      {"swing", {TORII_ALLREDUCE}},
      {"direct", {TORII_ALLTOALL, TORII_SCATTER, TORII_GATHER}},
      {"a2a", {TORII_ALLTOALL}},
      {"a2and", {TORII_ALLTOALL}},
      {"a2at_printed", {TORII_ALLTOALL}},
      {"a2at", {TORII_ALLTOALL}},
      {"floyd", {TORII_ALLTOALL}}};
  return all;
}

/// Where an algorithm is forced, mostly a call that it serves.
DrawnCall draw_call(const History& history, Draw& draw) {
  DrawnCall call = random_call(draw.random());
  const auto forced = std::ranges::find(all_forced(), history.job.algorithm, &Forced::algorithm);
  if (forced == all_forced().end()) return call;
  for (int i = 0; i < 20 && std::ranges::find(forced->collectives, call.collective) == forced->collectives.end(); ++i) {
    call = random_call(draw.random());
  }
  call.kind = CallKind::collective;
  return call;
}

}  // namespace

Step draw_step(const History& history, Draw& draw) {
  Step step;
  const auto ranks = static_cast<std::size_t>(history.ranks());
  step.team = draw.below(history.teams);
  const bool is_busy = history.is_busy();
  step.manner = static_cast<Manner>(std::min<std::uint64_t>(draw.below(std::uint64_t{5}), 2));
  if (is_busy) step.manner = Manner::started;
  if (draw.one_in(is_busy ? 4 : 2)) step.manner = Manner::blocking;
  step.call = draw_call(history, draw);
  // Programs repeat calls, and a call is taken most easily for another one that is like it.
  if (!history.steps.empty() && draw.one_in(3)) {
    const std::uint64_t seed = step.call.seed;
    step.call = history.steps.back().call;
    step.call.seed = seed;
    step.team = history.steps.back().team;
    if (draw.one_in(4)) step.call.in_place = !step.call.in_place;
  }
  if (step.call.kind != CallKind::collective) step.manner = Manner::blocking;
  step.deviations.assign(ranks, Deviation::none);
  step.pauses_us.assign(ranks, 0);
  step.memory.assign(ranks, Memory::malloced);
  if (draw.one_in(4)) step.pauses_us[draw.below(ranks)] = static_cast<int>(draw.between(0, kPauseMostUs));
  // Mostly alike on all ranks, as programs have it.
  const auto draw_memory = [&] { return static_cast<Memory>(draw.below(history.job.adopts ? 3 : 2)); };
  const Memory memory = draw_memory();
  for (Memory& one : step.memory) one = draw.one_in(8) ? draw_memory() : memory;
  return step;
}

namespace {

Step draw_split(History& history, bool deviates, Draw& draw) {
  Step step = draw_step(history, draw);
  step.team = 0;
  step.splits = true;
  step.part = history.teams++;
  step.colors = draw.random()();
  // Once it has its part, while others may still wait for theirs.
  if (deviates && draw.one_in(2)) step.deviations[draw.below(step.deviations.size())] = Deviation::aborts;
  return step;
}

void force_algorithm(Job& job, Draw& draw) {
  job.algorithm = all_forced()[draw.below(all_forced().size())].algorithm;
  if (!draw.one_in(4)) job.determinism.clear();  // few of them have a canonical order
  if (draw.one_in(4)) return;
  job.topology = "torus:" + std::to_string(job.ranks);
  if (job.ranks % 2 == 0 && job.ranks > 2 && draw.one_in(2)) {
    job.topology = std::string(draw.one_in(2) ? "torus" : "mesh") + ":2x" + std::to_string(job.ranks / 2);
  }
}

Job draw_job(Draw& draw) {
  Job job;
  job.ranks = 2 + std::min(draw.below(6), draw.below(6));
  // One node, a node for each rank, or nodes of several ranks.
  const int kind = draw.below(3);
  const int nodes = kind == 0 ? 1 : (kind == 1 ? job.ranks : 2 + draw.below(2));
  for (int rank = 0; rank < job.ranks; ++rank) job.nodes.push_back(rank * nodes / job.ranks);
  const auto count = static_cast<std::size_t>(job.nodes.back()) + 1;
  job.clock_offsets.assign(count, 0);
  job.clock_drifts.assign(count, 0);
  if (draw.one_in(2)) {
    for (Time& offset : job.clock_offsets) offset = draw.between(0, 3600 * fibers::kSecond);
    for (double& drift : job.clock_drifts) drift = 1e-6 * static_cast<double>(draw.between(-200, 200));
  }
  job.oversubscribed = !draw.one_in(8);
  job.timeout_s = draw.one_in(2) ? 0.5 : 2;

  fibers::WireModel& wires = job.wires;
  wires.engines = 1 + draw.below(4);
  wires.late_most = draw.one_of(std::array<Time, 3>{2 * kMicrosecond, 20 * kMicrosecond, 500 * kMicrosecond});
  wires.keeps_order = draw.one_in(2);
  wires.stores_by_itself = draw.one_in(2);
  wires.wakes = draw.one_in(2);
  if (draw.one_in(3)) {
    wires.very_late = 0.01;
    wires.very_late_most = draw.one_of(std::array<Time, 3>{kMillisecond, 10 * kMillisecond, 100 * kMillisecond});
  }
  if (draw.one_in(3)) {
    for (int engine = 0; engine < wires.engines; ++engine) wires.slower.push_back(draw.one_in(3) ? 10 : 1);
  }

  job.settings = "ENGINES=" + std::to_string(wires.engines) + "\n";
  job.settings += draw.one_of(std::array<const char*, 4>{"", "", "WAIT=sleep\n", "WAIT=yield\n"});
  job.settings += draw.one_of(std::array<const char*, 3>{"", "CHANNELS=1\n", "CHANNELS=4\n"});
  job.settings += draw.one_of(std::array<const char*, 4>{"", "", "SLOTS=2\n", "SLOTS=8\n"});
  job.settings += draw.one_of(std::array<const char*, 3>{"", "SEGMENT=4K\n", "SEGMENT=16K\n"});
  job.settings += draw.one_of(std::array<const char*, 3>{"", "CROSS_MEMORY=on\n", "CROSS_MEMORY=off\n"});
  job.determinism = draw.one_in(3) ? "canonical" : "";
  job.wire = draw.one_in(4) ? "f32" : "";
  job.adopts = draw.one_in(3);
  if (draw.one_in(4)) force_algorithm(job, draw);
  if (draw.one_in(40)) {
    job.odd_rank = draw.below(job.ranks);
    job.is_odd_for_good = draw.one_in(2);
  }
  return job;
}

/// Draws what goes wrong there.
Fault at_kind(Fault fault, const Job& job, Draw& draw) {
  const int kind = draw.below(job.several_nodes() ? 7 : 5);
  if (kind < 3) return fault;
  if (kind == 4) {
    constexpr std::array kPhasesOfMemory = {Phase::joining, Phase::making_team, Phase::splitting,
                                            Phase::choosing_survivors, Phase::computing};
    fault.kind = FaultKind::lacks_memory;
    fault.phase = draw.one_of(kPhasesOfMemory);
    fault.point = draw.of_any_size(3);
    // A refused request is made once more when unused memory has been given back.
    fault.times = draw.one_in(4) ? 1 : 2;
    return fault;
  }
  if (kind == 3) {
    fault.kind = FaultKind::stops;
    fault.time = draw.between(kMillisecond, 4 * fibers::kSecond);
    return fault;
  }
  fault.kind = draw.one_in(3) ? FaultKind::cut_silently : FaultKind::loses_engine;
  fault.time = static_cast<Time>(draw.of_any_size(16)) * 2 * kMicrosecond;
  fault.engine = draw.below(job.wires.engines);
  if (draw.one_in(2)) fault.peer = draw.below(job.ranks);
  if (fault.peer == fault.rank) fault.peer = -1;
  return fault;
}

/// Those in which faults are worth more than their share of the time.
constexpr std::array kPhasesOfFaults = {Phase::making_team,      Phase::splitting,          Phase::calling,
                                        Phase::starting,         Phase::preparing,          Phase::waiting,
                                        Phase::refusing,         Phase::choosing_survivors, Phase::choosing_survivors,
                                        Phase::calling_survivors};

Fault draw_fault(const Job& job, Draw& draw) {
  Fault fault;
  fault.rank = draw.below(job.ranks);
  fault.point = draw.of_any_size(12);
  if (draw.one_in(4)) return at_kind(fault, job, draw);
  fault.phase = draw.one_of(kPhasesOfFaults);
  fault.point = draw.of_any_size(8);
  fault.visit = std::min(draw.below(4), draw.below(4));
  return at_kind(fault, job, draw);
}

void draw_steps(History& history, std::size_t parts_most, Draw& draw) {
  const bool deviates = draw.one_in(2);
  const std::uint64_t steps = 2 + draw.below(std::uint64_t{12});
  for (std::uint64_t i = 0; i < steps; ++i) {
    if (history.teams <= parts_most && draw.one_in(5)) {
      history.steps.push_back(draw_split(history, deviates, draw));
      continue;
    }
    Step step = draw_step(history, draw);
    if (deviates && draw.one_in(6)) {
      add_deviations(step, history.members(step.team, draw.below(history.ranks())), draw);
      // A send that is left out is missed by nobody but its receiver, who waits for it until the deadline.
      for (Deviation& one : step.deviations) {
        if (step.call.kind == CallKind::sends && one != Deviation::aborts) one = Deviation::none;
      }
    }
    history.steps.push_back(step);
  }
}

}  // namespace

bool Job::several_nodes() const noexcept { return nodes.back() != 0; }

std::vector<int> History::members(std::size_t team, int rank) const {
  std::uint64_t colors = 0;
  for (const Step& step : steps) {
    if (step.splits && step.part == team) colors = step.colors;
  }
  std::vector<int> members;
  for (int other = 0; other < ranks(); ++other) {
    if ((colors >> other & 1) == (colors >> rank & 1)) members.push_back(other);
  }
  return members;
}

bool History::may_time_out() const {
  // Between nodes a member that waits in a call which differs is not heard by those that wait in another team: each may
  // wait for the deadline of the other.
  const auto deviates = [](const Step& step) {
    return !step.is_left_out &&
           std::ranges::any_of(step.deviations, [](Deviation one) { return one != Deviation::none; });
  };
  if (job.several_nodes() && teams > 1 && std::ranges::any_of(steps, deviates)) return true;
  // Ranks that are more calls apart than the library has records of find only by the deadline that their calls differ,
  // and others wait for them in another team meanwhile.
  std::size_t calls = 0;
  for (const Step& step : steps) calls += 1 + static_cast<std::size_t>(step.is_left_out ? 0 : step.streak.calls);
  const auto has_odd_call = [&](const Step& step) { return step.streak.calls != 0 && deviates(step); };
  if (calls >= kSharedRecords && teams > 1 && std::ranges::any_of(steps, has_odd_call)) return true;
  return job.wires.very_late_most * 10 > patience() || has({FaultKind::loses_engine, FaultKind::cut_silently}) ||
         std::ranges::any_of(
             faults, [&](const Fault& fault) { return fault.kind == FaultKind::stops && fault.time > patience(); });
}

bool History::has(std::initializer_list<FaultKind> kinds) const {
  return std::ranges::any_of(faults,
                             [&](const Fault& fault) { return std::ranges::find(kinds, fault.kind) != kinds.end(); });
}

bool History::may_fail(std::size_t team, int rank) const {
  if (may_time_out()) return true;
  const std::vector<int> all = members(team, rank);
  // A rank that lacks memory fails the making of a team, and calls that take memory: redistributions, and groups with
  // their packed copies.
  const auto may_take_memory = [](const DrawnCall& call) { return redistributes(call.kind) || is_made_in_parts(call); };
  const bool takes_memory = std::ranges::any_of(steps, [&](const Step& step) {
    return step.team == team && (may_take_memory(step.call) || may_take_memory(step.other));
  });
  const auto may_harm = [&](const Fault& fault) {
    return std::ranges::find(all, fault.rank) != all.end() && (fault.kind != FaultKind::lacks_memory || takes_memory);
  };
  if (std::ranges::any_of(faults, may_harm)) return true;
  return std::ranges::any_of(steps, [&](const Step& step) {
    if (step.is_left_out || step.team != team) return false;
    const auto count = [&](Deviation kind) {
      return std::ranges::count_if(
          all, [&](int member) { return step.deviations[static_cast<std::size_t>(member)] == kind; });
    };
    const auto refused = count(Deviation::refused);
    const auto differs = count(Deviation::differs) + count(Deviation::leaves_out);
    return count(Deviation::aborts) != 0 || (differs != 0 && all.size() > 1) ||
           (refused != 0 && refused != std::ssize(all));
  });
}

bool History::only_differs(std::size_t team, int rank) const {
  if (job.several_nodes() || teams > 1 || !faults.empty() || may_time_out() || job.odd_rank >= 0) return false;
  const std::vector<int> all = members(team, rank);
  return std::ranges::all_of(steps, [&](const Step& step) {
    return step.is_left_out || step.team != team || std::ranges::all_of(all, [&](int member) {
             const Deviation one = step.deviations[static_cast<std::size_t>(member)];
             return one != Deviation::refused && one != Deviation::aborts;
           });
  });
}

History draw_calls(std::uint64_t seed, const Job& job, std::size_t parts_most) {
  Draw draw(seed);
  History history;
  history.seed = seed;
  history.job = job;
  draw_steps(history, parts_most, draw);
  return history;
}

History draw_history(std::uint64_t seed) {
  constexpr std::size_t kPartsMost = 2;
  Draw draw(seed);
  History history;
  history.seed = seed;
  history.job = draw_job(draw);
  draw_steps(history, kPartsMost, draw);
  const int faults = draw.one_in(4) ? 0 : 1 + std::min(draw.below(4), draw.below(4));
  for (int i = 0; i < faults; ++i) history.faults.push_back(draw_fault(history.job, draw));
  if (draw.one_in(6)) history.asking.refuses = draw.below(history.ranks());
  if (draw.one_in(8)) history.asking.differs = draw.below(history.ranks());
  history.asking.repeats = draw.one_in(2);
  add_rings(history);
  return history;
}

}  // namespace torii::faults
