// SPDX-License-Identifier: Apache-2.0
// Makes the contexts of a history's ranks over fibers, and lets the ranks play.
#include "tools/torii-sim/faults/trial.hpp"

#include <memory>
#include <utility>

#include "api/c/c_objects.hpp"
#include "collectives/selection/catalogue.hpp"
#include "runtime/base/settings.hpp"
#include "tools/torii-sim/faults/player.hpp"
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
                            "\nTIMEOUT=" + std::to_string(job.timeout_s) + "\nARENA=2G\n" + job.settings;
  return Settings::load(lines, no_environment, algorithm_names());
}

fibers::Fate fate_of(const History& history, int rank) {
  const auto node = static_cast<std::size_t>(history.job.nodes[static_cast<std::size_t>(rank)]);
  fibers::Fate fate;
  fate.clock_offset = history.job.clock_offsets[node];
  fate.clock_drift = history.job.clock_drifts[node];
  return fate;
}

/// Ranks of one process map each other's arenas once: no arena may go before all have left their teams.
void wait_for_all(Stage& stage, int rank) {
  stage.has_played[static_cast<std::size_t>(rank)] = true;
  const auto all_have = [&] {
    for (int other = 0; other < stage.history.ranks(); ++other) {
      if (!stage.has_played[static_cast<std::size_t>(other)] && !stage.fibers.is_gone(other)) return false;
    }
    return true;
  };
  while (!all_have()) stage.fibers.sleep(fibers::kMillisecond);
}

/// What the process of one rank does.
void live(Stage& stage, fibers::Meeting& meeting, fibers::Wires& wires, int rank) {
  const History& history = stage.history;
  stage.enter(rank, Phase::joining);
  const TransportOpener open = [&](Bootstrap& bootstrap, const Settings& settings, const shared_memory::Nodes& nodes,
                                   shared_memory::Arena& arena, shared_memory::NodePeers& peers) {
    return fibers::open(wires, history.job.oversubscribed, bootstrap, settings, nodes, arena, peers);
  };
  try {
    const auto context = std::unique_ptr<torii_context>(new torii_context{
        {settings_of(history.job, rank), std::make_unique<fibers::MeetingBootstrap>(meeting, rank), open}});
    Player player(stage, context.get(), rank);  // its memory stays as long as a peer may read it
    player.play();
    stage.enter(rank, Phase::leaving);
    wait_for_all(stage, rank);
  } catch (const Error& error) {
    if (!history.may_fail(0, rank)) stage.fail(rank, std::string("cannot join without a fault: ") + error.what());
  }
}

}  // namespace

Verdict run(const History& history, const fibers::Fibers::Note& note) {
  fibers::Fibers fibers(history.seed);
  fibers.set_note(note);
  const OnFibers on_fibers(fibers);
  fibers::Meeting meeting(fibers, history.ranks(), history.job.timeout_s);
  fibers::Wires wires(fibers, history.ranks(), history.job.wires);
  Stage stage{history, fibers};
  stage.phases.assign(static_cast<std::size_t>(history.ranks()), Phase::joining);
  stage.left.assign(history.teams, 0);
  stage.visits.assign(static_cast<std::size_t>(history.ranks()), {});
  stage.has_played.assign(static_cast<std::size_t>(history.ranks()), false);
  for (const Fault& fault : history.faults) {
    if (fault.kind != FaultKind::loses_engine && fault.kind != FaultKind::cut_silently) continue;
    wires.add({fault.engine, fault.rank, fault.peer, fault.time, fault.kind == FaultKind::cut_silently});
  }
  for (int rank = 0; rank < history.ranks(); ++rank) {
    fibers.add([&, rank] { live(stage, meeting, wires, rank); }, fate_of(history, rank));
  }
  fibers.on_end([&](int rank) { wires.end_rank(rank); });
  Verdict verdict;
  switch (fibers.run(kTurnsMost)) {
    case fibers::End::all_ended:
      break;
    case fibers::End::stuck:
      stage.failures.push_back("ranks wait for each other for ever");
      break;
    case fibers::End::endless:
      stage.failures.push_back("no end after " + std::to_string(kTurnsMost) + " turns");
      break;
  }
  verdict.failures = std::move(stage.failures);
  verdict.digest = fibers.digest();
  verdict.turns = fibers.turns();
  verdict.messages = wires.messages();
  verdict.calls = stage.calls;
  verdict.failed_calls = stage.failed_calls;
  verdict.survivors = stage.survivors;
  verdict.time = fibers.now();
  for (int rank = 0; rank < history.ranks(); ++rank) {
    verdict.points += fibers.points(rank);
    if (fibers.is_dead(rank)) verdict.deaths.emplace_back(text_of(stage.phases[static_cast<std::size_t>(rank)]));
  }
  return verdict;
}

}  // namespace torii::faults
