// SPDX-License-Identifier: Apache-2.0
// Rings that outlive plans: which ring a stream uses, and senders that wait for a count.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "collectives/proof/verify_checks.hpp"
#include "collectives/proof/verify_structure.hpp"

namespace torii::verification {

void check_counts(const StepTable& table, int slots, const ExecutorRules& rules, Faults& faults, Verdict& verdict) {
  int& least = verdict.slots_least;
  for (least = 1; least < slots; ++least) {
    const Precedence precedence(table, least);
    if (precedence.zero_cycle().empty()) break;
  }
  // A sender that learns of every - 1 messages too late waits as one with so many slots fewer.
  const int every = rules.published(slots, least);
  if (every >= 1 && slots - (every - 1) >= least) return;
  faults.add("counts are published every " + std::to_string(every) + " messages, which leaves " +
             std::to_string(slots - (every - 1)) + " of " + std::to_string(slots) + " slots; " + std::to_string(least) +
             " are needed");
}

void check_rings(const StepTable& table, const ExecutorRules& rules, Faults& faults, Proofs& proofs) {
  std::map<std::tuple<int, int, int>, int> ring_of_sender;  // by sender, receiver and tag
  std::set<std::tuple<int, int, int>> used;                 // sender, receiver and ring
  std::map<std::pair<int, int>, int> streams;
  for (const Plan& plan : table.plans) {
    for (std::size_t i = 0; i < plan.out.size(); ++i) {
      const Stream& stream = plan.out[i];
      if (stream.peer == plan.rank) continue;
      const int ring = rules.ring(plan.out, i);
      ring_of_sender[{plan.rank, stream.peer, stream.tag}] = ring;
      proofs.rings = std::max(proofs.rings, ++streams[{plan.rank, stream.peer}]);
      if (used.insert({plan.rank, stream.peer, ring}).second) continue;
      faults.add(stream_text(plan.rank, stream.peer, stream.tag) + " shares ring " + std::to_string(ring) +
                 " with another stream of these ranks");
    }
  }
  for (const Plan& plan : table.plans) {
    for (std::size_t i = 0; i < plan.in.size() && !faults.full(); ++i) {
      const Stream& stream = plan.in[i];
      if (stream.peer == plan.rank) continue;
      const int sender = ring_of_sender.at({stream.peer, plan.rank, stream.tag});
      const int receiver = rules.ring(plan.in, i);
      const int count = streams.at({stream.peer, plan.rank});
      if (sender == receiver && sender >= 0 && sender < count) continue;
      faults.add(stream_text(stream.peer, plan.rank, stream.tag) + " uses ring " + std::to_string(sender) +
                 " at the sender and ring " + std::to_string(receiver) + " at the receiver; there are " +
                 std::to_string(count));
    }
  }
}

}  // namespace torii::verification
