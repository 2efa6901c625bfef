// SPDX-License-Identifier: Apache-2.0
// Who hops: the rank that notices. Two ranks on one CPU run one at a time. The first one says before its hop that it is
// nowhere, since it may have to wait for its turn where it comes to, and so the other one stays.
#include "transports/shared_memory/cpu_hints.hpp"

#include "runtime/base/platform.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii::shared_memory {
namespace {

constexpr auto kHopAfterNs = tuned<std::int64_t>("waiting.hop_after");
constexpr auto kHopEveryNs = tuned<std::int64_t>("waiting.hop_every");
constexpr auto kSeenForNs = tuned<std::int64_t>("waiting.cpu_seen_for");

}  // namespace

void CpuHints::tell(int cpu, std::int64_t now_ns) noexcept {
  hints_[own_]->store(CpuHint::made(cpu, now_ns), std::memory_order_relaxed);
}

/// One thread of the rank looks at a time, so that hops are rare whatever the hints say.
bool CpuHints::is_turn(std::int64_t now_ns) noexcept {
  std::int64_t next_ns = next_ns_.load(std::memory_order_relaxed);
  return now_ns >= next_ns &&
         next_ns_.compare_exchange_strong(next_ns, now_ns + kHopEveryNs, std::memory_order_relaxed);
}

void CpuHints::note_wait(std::int64_t waited_ns, std::int64_t now_ns) noexcept {
  const int cpu = platform().cpu();
  if (cpu < 0) return;
  tell(cpu, now_ns);
  if (waited_ns < kHopAfterNs || !can_hop_.load(std::memory_order_relaxed) || !is_turn(now_ns)) return;
  CpuSet taken;
  bool is_shared = false;
  for (std::size_t rank = 0; rank < hints_.size(); ++rank) {
    const std::uint64_t hint = rank == own_ ? 0 : hints_[rank]->load(std::memory_order_relaxed);
    if (hint == 0) continue;
    taken.add(CpuHint::cpu(hint));  // which is no CPU for a rank that hops now
    is_shared = is_shared || (CpuHint::cpu(hint) == cpu && now_ns - CpuHint::seen_ns(hint) < kSeenForNs);
  }
  if (!is_shared) return;
  tell(CpuHint::kNowhere, now_ns);
  const Hop result = platform().hop(taken);
  if (result == Hop::made) Counters::add(counters_.hops);
  if (result == Hop::impossible) can_hop_.store(false, std::memory_order_relaxed);
  tell(platform().cpu(), now_ns);
}

}  // namespace torii::shared_memory
