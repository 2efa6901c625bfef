// SPDX-License-Identifier: Apache-2.0
// Makes the contexts of a history's ranks over fibers, and lets the ranks play.
#include "tools/torii-sim/faults/case.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "api/c/c_objects.hpp"
#include "collectives/selection/catalogue.hpp"
#include "runtime/base/settings.hpp"
#include "tools/torii-sim/faults/driver.hpp"
#include "tools/torii-sim/faults/heap.hpp"
#include "tools/torii-sim/faults/leak_check.hpp"
#include "transports/fibers/meeting.hpp"
#include "transports/fibers/opener.hpp"
#include "transports/fibers/wires.hpp"

namespace torii::faults {
namespace {

/// More than the longest history takes.
constexpr std::uint64_t kTurnsMost = 3'000'000;

/// The process waits on fibers while this lives.
class OnFibers {
 public:
  explicit OnFibers(fibers::Fibers& platform) { set_platform(&platform); }
  ~OnFibers() { set_platform(nullptr); }
  OnFibers(const OnFibers&) = delete;
  OnFibers& operator=(const OnFibers&) = delete;
};

Settings settings_of(const Job& job, int rank) {
  const char* const no_environment[] = {nullptr};
  const std::string lines = "NODE=n" + std::to_string(job.nodes[static_cast<std::size_t>(rank)]) +
                            "\nTIMEOUT=" + std::to_string(job.timeout_s) + "\nARENA=2G\n" + job.settings +
                            (job.odd_rank == rank && job.is_odd_for_good ? "SEGMENT=12K\n" : "");
  return Settings::load(lines, no_environment, algorithm_names());
}

fibers::FiberFaults faults_of(const History& history, int rank) {
  const auto node = static_cast<std::size_t>(history.job.nodes[static_cast<std::size_t>(rank)]);
  fibers::FiberFaults faults;
  faults.clock_offset = history.job.clock_offsets[node];
  faults.clock_drift = history.job.clock_drifts[node];
  return faults;
}

/// Ranks of one process map each other's arenas once: no arena may go before all have left their teams.
void wait_for_all(SimulatedJob& job, int rank, Progress progress) {
  job.state(rank).progress = progress;
  const auto all_have = [&] {
    for (int other = 0; other < job.history.ranks(); ++other) {
      if (job.state(other).progress < progress && !job.fibers.is_gone(other)) return false;
    }
    return true;
  };
  while (!all_have()) job.fibers.sleep(fibers::kMillisecond);
}

/// True if all that the ranks took must be free when they have closed it. Memory into which a rank that has died or was
/// lost might still write never is.
bool must_be_empty(const SimulatedJob& job) {
  return !job.has_abandoned && !job.has_left_out && !job.history.may_time_out() && !job.history.has({FaultKind::dies});
}

/// The program of one rank.
void live(SimulatedJob& job, fibers::Meeting& meeting, fibers::Wires& wires, int rank) {
  const History& history = job.history;
  job.enter(rank, Phase::joining);
  const shared_memory::Arena* own_arena = nullptr;
  const TransportOpener open = [&](Bootstrap& bootstrap, const Settings& settings, const shared_memory::Nodes& nodes,
                                   shared_memory::Arena& arena, shared_memory::NodePeers& peers) {
    own_arena = &arena;
    return fibers::open(wires, history.job.oversubscribed, bootstrap, settings, nodes, arena, peers);
  };
  try {
    const auto context = std::unique_ptr<torii_context>(new torii_context{
        {settings_of(history.job, rank), std::make_unique<fibers::MeetingBootstrap>(meeting, rank), open}});
    const std::size_t bytes = own_arena->used_bytes();
    {
      Driver driver(job, context.get(), rank);  // its memory stays as long as a peer may read it
      driver.play();
      job.enter(rank, Phase::leaving);
      wait_for_all(job, rank, Progress::played);
    }
    if (must_be_empty(job)) expect_empty(job, *context, *own_arena, bytes, rank);
    wait_for_all(job, rank, Progress::emptied);
  } catch (const Error& error) {
    const bool lacks_memory = error.status() == Status::no_resource && job.has_refused_memory();
    if (!lacks_memory && !history.may_fail(0, rank)) {
      job.fail(rank, std::string("cannot join without a fault: ") + error.what());
    }
  }
}

Verdict verdict_of(SimulatedJob& job, const fibers::Wires& wires) {
  Verdict verdict;
  verdict.failures = std::move(job.failures);
  verdict.digest = job.fibers.digest();
  Counts& counts = verdict.counts;
  counts.histories = 1;
  counts.turns = job.fibers.turns();
  counts.messages = wires.messages();
  counts.calls = job.calls;
  counts.failed_calls = job.failed_calls;
  counts.refused_calls = job.refused_calls;
  counts.survivors = job.survivors;
  counts.virtual_ns = static_cast<std::uint64_t>(job.fibers.now());
  for (int rank = 0; rank < job.history.ranks(); ++rank) {
    counts.points += job.fibers.points(rank);
    counts.memory_refusals += job.fibers.refusals(rank);
    if (job.fibers.is_dead(rank)) verdict.deaths.emplace_back(text_of(job.state(rank).phase));
  }
  return verdict;
}

/// The notes about something that goes wrong.
bool is_fault(std::string_view note) {
  constexpr std::string_view kBeginnings[] = {"dies", "is stopped", "runs again", "loses an engine", "is refused "};
  return std::ranges::any_of(kBeginnings, [&](std::string_view one) { return note.starts_with(one); });
}

Verdict play(const History& history, const fibers::Fibers::Note& note, EventLog* log) {
  fibers::Fibers fibers(history.seed);
  fibers.set_note(log == nullptr ? note : [&](fibers::Time now, int fiber, std::string_view what) {
    if (is_fault(what)) log->marks.push_back({fiber, now, std::string(what)});
    if (note) note(now, fiber, what);
  });
  const OnFibers on_fibers(fibers);
  fibers::Meeting meeting(fibers, history.ranks(), history.job.timeout_s);
  fibers::Wires wires(fibers, history.ranks(), history.job.wires);
  SimulatedJob job(history, fibers, log);
  if (log != nullptr) {
    wires.on_transfer = [&](const fibers::Transfer& one) {
      log->arrows.push_back({one.from, one.to, one.sent, fibers.now()});
    };
  }
  for (const Fault& fault : history.faults) {
    if (fault.kind != FaultKind::loses_engine && fault.kind != FaultKind::cut_silently) continue;
    wires.add({fault.engine, fault.rank, fault.peer, fault.time, fault.kind == FaultKind::cut_silently});
  }
  for (int rank = 0; rank < history.ranks(); ++rank) {
    fibers.add([&, rank] { live(job, meeting, wires, rank); }, faults_of(history, rank));
  }
  fibers.on_end([&](int rank) { wires.end_rank(rank); });
  switch (fibers.run(kTurnsMost)) {
    case fibers::End::all_ended:
      job.check_parts();
      job.check_survivors();
      break;
    case fibers::End::stuck:
      job.failures.push_back("ranks wait for each other for ever");
      break;
    case fibers::End::endless:
      job.failures.push_back("no end after " + std::to_string(kTurnsMost) + " turns");
      break;
  }
  return verdict_of(job, wires);
}

/// Bytes of the heap that the history leaves behind each time. What the library keeps from call to call, it takes once.
std::int64_t leaked_bytes(const History& history, std::int64_t first_bytes) {
  constexpr int kRounds = 3;
  std::int64_t least = first_bytes;
  for (int round = 0; round < kRounds && least != 0; ++round) {
    const std::int64_t before = heap_bytes();
    (void)play(history, nullptr, nullptr);
    least = std::clamp<std::int64_t>(heap_bytes() - before, 0, least);
  }
  return least;
}

}  // namespace

Verdict run(const History& history, const fibers::Fibers::Note& note, EventLog* log) {
  const Holdings before = holdings();
  Verdict verdict = play(history, note, log);
  // The dead leave behind what they had.
  if (!verdict.failures.empty() || !verdict.deaths.empty() || note != nullptr || log != nullptr) return verdict;
  const Holdings after = holdings();
  const std::string difference = faults::difference(before, after);
  if (!difference.empty()) verdict.failures.push_back(difference);
  if (after.heap_bytes <= before.heap_bytes) return verdict;
  const std::int64_t leaked = leaked_bytes(history, after.heap_bytes - before.heap_bytes);
  if (leaked != 0) verdict.failures.push_back(std::to_string(leaked) + " bytes of the heap are left allocated");
  return verdict;
}

}  // namespace torii::faults
