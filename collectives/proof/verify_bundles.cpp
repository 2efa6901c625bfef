// SPDX-License-Identifier: Apache-2.0
// Checks of plans that forward blocks: bundles, and blocks whose steps do not name an owner.
#include <algorithm>

#include "collectives/proof/verify_steps.hpp"

namespace torii::verification {

void name_passed_on(StepTable& table, Faults& faults) {
  std::vector<StepId> known;
  for (StepId step = 0; step < table.step_count(); ++step) {
    if (table.steps[step].block != kPassedOn) known.push_back(step);
  }
  for (std::size_t next = 0; next < known.size(); ++next) {
    for (const StepPort& target : table.targets(known[next])) {
      const StepId consumer = table.consumer(table.streams[target.stream], target.message);
      if (consumer == kNoStep || table.steps[consumer].block != kPassedOn) continue;
      table.steps[consumer].block = table.steps[known[next]].block;
      known.push_back(consumer);
    }
  }
  for (StepId step = 0; step < table.step_count() && !faults.full(); ++step) {
    const Step& here = table.steps[step];
    if (here.block == kPassedOn) {
      faults.add(table.text(step) + ": passes on what comes from no rank's operand");
      continue;
    }
    const Flow& flow = table.flow_of(step);
    const bool is_own = std::ranges::any_of(table.sources(step), [](StepPort at) { return at.stream == kOwnStream; });
    const int receiver = here.block % static_cast<int>(table.plans.size());
    if (flow.keep || is_own || flow.sources.empty() || flow.walk.block(here.place) == receiver) continue;
    faults.add(table.text(step) + ": passes on a block for rank " + std::to_string(receiver) + " as one for rank " +
               std::to_string(flow.walk.block(here.place)));
  }
}

namespace {

/// The message of the bundle that carries the signal and counts; -1 if it is none, or several do.
int signalling_message(const JoinedStream& joined, int first, const ExecutorRules& rules) {
  int found = -1;
  for (int message = first; message < first + joined.stream.bundle; ++message) {
    if (!rules.ends_bundle(joined.stream, message)) continue;
    if (found >= 0) return -1;
    found = message;
  }
  return found;
}

/// `end` carries the bundle's signal and counts.
void check_bundle(const StepTable& table, const JoinedStream& joined, int first, int end, Faults& faults) {
  const std::string stream = " of " + StepTable::text(joined);
  const auto is_later = [&](StepId step, StepId than) {
    return step > than || table.steps[step].lane != table.steps[than].lane;
  };
  for (int message = first; message < first + joined.stream.bundle && !faults.full(); ++message) {
    const StepId producer = table.producer(joined, message);
    if (message > first && is_later(table.producer(joined, message - 1), producer)) {
      faults.add("message " + std::to_string(message) + stream +
                 " is not produced after the one before it in its bundle");
    }
    if (is_later(producer, table.producer(joined, end))) {
      faults.add("message " + std::to_string(end) + stream + " signals its bundle before message " +
                 std::to_string(message) + " is stored");
    }
    if (is_later(table.consumer(joined, message), table.consumer(joined, end))) {
      faults.add("message " + std::to_string(end) + stream + " is not consumed last of its bundle");
    }
  }
}

}  // namespace

void check_bundles(const StepTable& table, const ExecutorRules& rules, Faults& faults) {
  for (const JoinedStream& joined : table.streams) {
    const int bundle = joined.stream.bundle;
    for (int first = 0; first < joined.stream.messages_per_segment && !faults.full(); first += bundle) {
      const int end = signalling_message(joined, first, rules);
      if (end >= 0) {
        if (bundle > 1) check_bundle(table, joined, first, end, faults);
        continue;
      }
      faults.add("messages " + std::to_string(first) + " to " + std::to_string(first + bundle - 1) + " of " +
                 StepTable::text(joined) + " share a slot that is not signalled once");
    }
  }
}

}  // namespace torii::verification
