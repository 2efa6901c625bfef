// SPDX-License-Identifier: Apache-2.0
// Counters of calls that are not like the calls before, and so cost more: how often each event has happened in a
// context.
#pragma once

#include <atomic>
#include <cstdint>

namespace torii {

/// Counted from any thread, never on the path of a repeated call. Each stands alone, so no order is needed.
struct Counters {
  std::atomic<std::uint64_t> call_plans = 0;       ///< calls of a class that their team did not know
  std::atomic<std::uint64_t> installed_plans = 0;  ///< plans that got rings or memory on a channel
  std::atomic<std::uint64_t> staging_bytes = 0;    ///< staging, words of standing rings and parts of outboxes that were
                                                   ///< assigned to plans and calls for the first time
  std::atomic<std::uint64_t> cold_messages = 0;    ///< stored before it was known which way to store is faster
  std::atomic<std::uint64_t> sleeps = 0;           ///< of waiting threads, until somebody rings or for a short time
  std::atomic<std::uint64_t> hops = 0;             ///< of waiting threads to another CPU, away from another rank

  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t number = 1) noexcept {
    counter.fetch_add(number, std::memory_order_relaxed);
  }
};

/// The name of a counter in JSON, and in the log that a context writes at its end.
struct CounterText {
  const char* key;
  const char* text;
  std::atomic<std::uint64_t> Counters::*counter;
};
inline constexpr CounterText kCounterTexts[] = {
    {"call_plans", "call plans", &Counters::call_plans},
    {"installed_plans", "plans installed", &Counters::installed_plans},
    {"staging_bytes", "bytes of team memory assigned for the first time", &Counters::staging_bytes},
    {"cold_messages", "cold messages", &Counters::cold_messages},
    {"sleeps", "sleeps", &Counters::sleeps},
    {"hops", "hops", &Counters::hops},
};

}  // namespace torii
