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

void check_bundles(const StepTable& table, Faults& faults) {
  for (const JoinedStream& joined : table.streams) {
    for (int message = 1; message < joined.stream.messages_per_segment && !faults.full(); ++message) {
      if (message % joined.stream.bundle == 0) continue;
      const StepId before = table.producer(joined, message - 1);
      const StepId producer = table.producer(joined, message);
      const std::string which = "message " + std::to_string(message) + " of " + StepTable::text(joined);
      if (before > producer || table.steps[before].lane != table.steps[producer].lane) {
        faults.add(which + " is not produced after the one before it in its bundle");
      }
      const int end = message / joined.stream.bundle * joined.stream.bundle + joined.stream.bundle - 1;
      const StepId taken = table.consumer(joined, message - 1);
      const StepId last = table.consumer(joined, end);
      if (taken > last || table.steps[taken].lane != table.steps[last].lane) {
        faults.add("message " + std::to_string(end) + " of " + StepTable::text(joined) +
                   " is not consumed last of its bundle");
      }
    }
  }
}

}  // namespace torii::verification
