// SPDX-License-Identifier: Apache-2.0
// Histories in sentences.
#include <iterator>
#include <string_view>

#include "tools/torii-sim/faults/history.hpp"

namespace torii::faults {
namespace {

std::string deviations_text(const Step& step) {
  constexpr const char* kTexts[] = {"", " is refused", " differs", " aborts", " leaves one out"};
  std::string text;
  for (std::size_t rank = 0; rank < step.deviations.size(); ++rank) {
    if (step.deviations[rank] == Deviation::none) continue;
    text += "; rank " + std::to_string(rank) + kTexts[static_cast<std::size_t>(step.deviations[rank])];
    if (step.deviations[rank] == Deviation::refused && step.refused_calls() != 1) {
      text += " " + std::to_string(step.refused_calls()) + " times";
    }
  }
  return text;
}

std::string streak_text(const Step& step) {
  const Streak& streak = step.streak;
  std::string text = "team " + std::to_string(step.team) + ", " + std::to_string(streak.calls) +
                     (step.manner == Manner::started ? " started" : "") + " calls in a row, " +
                     std::to_string(streak.run) + " alike each time: ";
  for (const DrawnCall& turn : streak.turns) text += (&turn == streak.turns.data() ? "" : " / ") + text_of(turn);
  for (const Lag& lag : streak.lags) {
    text += "; rank " + std::to_string(lag.rank) + " lets others go " + std::to_string(lag.calls) +
            " calls ahead at call " + std::to_string(lag.at);
  }
  const std::string deviations = deviations_text(step);
  if (!deviations.empty()) text += deviations + " (call " + std::to_string(streak.odd_call) + ")";
  return text;
}

std::string step_text(const Step& step) {
  constexpr const char* kManners[] = {"", "started ", "persistent "};
  if (step.splits) return "split into parts " + std::to_string(step.part) + deviations_text(step);
  if (step.streak.calls != 0) return streak_text(step);
  return "team " + std::to_string(step.team) + ", " + kManners[static_cast<std::size_t>(step.manner)] +
         text_of(step.call) + deviations_text(step);
}

std::string visits_text(const Fault& fault) {
  return fault.visit == 0 ? "" : ", the time after " + std::to_string(fault.visit) + " others";
}

std::string place_text(const Fault& fault) {
  return " at point " + std::to_string(fault.point) + " of " + text_of(fault.phase) + visits_text(fault);
}

std::string fault_text(const Fault& fault) {
  std::string text = "rank " + std::to_string(fault.rank) + " " + text_of(fault.kind);
  switch (fault.kind) {
    case FaultKind::dies:
      return text + place_text(fault);
    case FaultKind::stops:
      return text + " for " + std::to_string(fault.time / fibers::kMillisecond) + " ms" + place_text(fault);
    case FaultKind::lacks_memory:
      return text + ", " + std::to_string(fault.times) + " times, at request " + std::to_string(fault.point) +
             " from " + text_of(fault.phase) + visits_text(fault) + " on";
    default:
      return text + " " + std::to_string(fault.engine) + " to " +
             (fault.peer < 0 ? "all" : "rank " + std::to_string(fault.peer)) + " at " +
             std::to_string(fault.time / fibers::kMicrosecond) + " us";
  }
}

}  // namespace

const char* text_of(Phase phase) noexcept {
  constexpr const char* kTexts[] = {"joining",
                                    "making the team",
                                    "splitting",
                                    "calling",
                                    "starting",
                                    "preparing",
                                    "waiting",
                                    "making a wrong call",
                                    "choosing survivors",
                                    "calling with survivors",
                                    "computing",
                                    "leaving"};
  static_assert(std::size(kTexts) == kPhases);
  return kTexts[static_cast<std::size_t>(phase)];
}

const char* text_of(FaultKind kind) noexcept {
  constexpr const char* kTexts[] = {"dies", "stops", "loses engine", "loses, unnoticed, engine", "lacks memory"};
  return kTexts[static_cast<std::size_t>(kind)];
}

std::string text_of(const History& history) {
  const Job& job = history.job;
  std::string text = "history " + std::to_string(history.seed) + ": " + std::to_string(job.ranks) + " ranks on " +
                     std::to_string(job.nodes.back() + 1) + (job.several_nodes() ? " nodes" : " node") + ", deadline " +
                     std::to_string(static_cast<int>(job.timeout_s * 1000)) + " ms";
  std::string_view settings = job.settings;
  for (std::size_t at = 0; (at = settings.find('\n')) != std::string_view::npos; settings.remove_prefix(at + 1)) {
    text += ", " + std::string(settings.substr(0, at));
  }
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string(", ") + name + " " + value;
  };
  option("topology", job.topology);
  option("algorithm", job.algorithm);
  option("determinism", job.determinism);
  option("wire", job.wire);
  if (job.odd_rank >= 0) {
    text += ", rank " + std::to_string(job.odd_rank) + " wants another segment length" +
            (job.is_odd_for_good ? "" : " at first");
  }
  text += "\n";
  for (std::size_t i = 0; i < history.steps.size(); ++i) {
    if (history.steps[i].is_left_out) continue;
    text += "  step " + std::to_string(i) + ": " + step_text(history.steps[i]) + "\n";
  }
  const Asking& asking = history.asking;
  if (asking.refuses >= 0) {
    text += "  rank " + std::to_string(asking.refuses) + " makes a wrong call before it asks for survivors\n";
  }
  if (asking.differs >= 0) {
    text += "  rank " + std::to_string(asking.differs) + " first asks for survivors without a rank that others keep\n";
  }
  if (asking.repeats) text += "  after a timeout ranks ask for survivors without those that have not come\n";
  for (const Fault& fault : history.faults) text += "  fault: " + fault_text(fault) + "\n";
  return text;
}

}  // namespace torii::faults
