// SPDX-License-Identifier: Apache-2.0
// Who hops: the rank that notices. Two ranks on one CPU run one at a time. The first one says before its hop that it is
// nowhere, since it may have to wait for its turn where it comes to, and so the other one stays.
#include "transports/shared_memory/cpu_hints.hpp"

#include <algorithm>

#include "runtime/base/platform.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii::shared_memory {
namespace {

constexpr auto kHopAfterNs = tuned<std::int64_t>("waiting.hop_after");
constexpr auto kHopEveryNs = tuned<std::int64_t>("waiting.hop_every");
constexpr auto kRestMostNs = tuned<std::int64_t>("waiting.hop_rest");
constexpr auto kSeenForNs = tuned<std::int64_t>("waiting.cpu_seen_for");
constexpr auto kTakenForNs = tuned<std::int64_t>("waiting.cpu_taken_for");
constexpr auto kToldForNs = tuned<std::int64_t>("waiting.cpu_told_for");

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

/// Ranks that meet again and again, for a reason that no hop changes, hop less and less often.
void CpuHints::rest(std::int64_t now_ns) noexcept {
  const bool is_soon = now_ns - rested_ns_.load(std::memory_order_relaxed) < kRestMostNs;
  const std::int64_t twice_ns = 2 * rest_ns_.load(std::memory_order_relaxed);
  const std::int64_t rest_ns = is_soon ? std::clamp(twice_ns, kHopEveryNs, kRestMostNs) : kHopEveryNs;
  rest_ns_.store(rest_ns, std::memory_order_relaxed);
  rested_ns_.store(now_ns + rest_ns, std::memory_order_relaxed);
  next_ns_.store(now_ns + rest_ns, std::memory_order_relaxed);
}

void CpuHints::note_wait(std::int64_t waited_ns, std::int64_t now_ns) noexcept {
  const std::uint64_t told = hints_[own_]->load(std::memory_order_relaxed);
  if (waited_ns == 0 && now_ns - CpuHint::seen_ns(told) < kToldForNs) return;
  const int cpu = platform().cpu();
  if (cpu < 0) return;
  tell(cpu, now_ns);
  if (waited_ns < kHopAfterNs || attempts_left_.load(std::memory_order_relaxed) <= 0 || !is_turn(now_ns)) return;
  CpuSet taken;
  bool is_shared = false;
  for (std::size_t rank = 0; rank < hints_.size(); ++rank) {
    if (rank == own_) continue;
    const std::uint64_t hint = hints_[rank]->load(std::memory_order_relaxed);
    const std::int64_t age_ns = now_ns - CpuHint::seen_ns(hint);
    if (age_ns >= kTakenForNs) continue;
    taken.add(CpuHint::cpu(hint));  // which is no CPU for a rank that hops now, and for one that has told nothing
    is_shared = is_shared || (CpuHint::cpu(hint) == cpu && age_ns < kSeenForNs);
  }
  if (is_shared) leave(taken, now_ns);
}

void CpuHints::leave(const CpuSet& taken, std::int64_t now_ns) noexcept {
  tell(CpuHint::kNowhere, now_ns);
  const Hop result = platform().hop(taken);
  const int cpu = platform().cpu();
  tell(cpu, now_ns);
  if (result == Hop::impossible) attempts_left_.store(0, std::memory_order_relaxed);
  if (result != Hop::made) return;
  rest(now_ns);
  if (taken.has(cpu)) {
    attempts_left_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    attempts_left_.store(kMissesMost, std::memory_order_relaxed);
    Counters::add(counters_.hops);
  }
}

}  // namespace torii::shared_memory
