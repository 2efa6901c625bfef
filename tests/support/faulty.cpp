// SPDX-License-Identifier: Apache-2.0
// Draws the fate of each put from its number and the seed.
#include "tests/support/faulty.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "runtime/fabric/waiting.hpp"

namespace torii::faulty {
namespace {

std::uint64_t draw(std::uint64_t seed, std::uint64_t number) noexcept {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + number * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

Status Faulty::before_put(int peer, int engine) noexcept {
  if (faults_.engine >= 0 && faults_.engine != engine) return Status::ok;
  if (faults_.lost_peer >= 0 && faults_.lost_peer != peer) return Status::ok;
  const std::uint64_t number = puts_.fetch_add(1, std::memory_order_relaxed);
  if (faults_.puts_until_fail >= 0 && number >= static_cast<std::uint64_t>(faults_.puts_until_fail)) {
    if (faults_.lost_peer < 0) return Status::transport;
    is_lost_ = true;
    return Status::peer_lost;
  }
  const std::uint64_t fate = draw(faults_.seed, number);
  constexpr double kHalfRange = 4294967296.0;  // the low half of `fate` decides whether, the high half how long
  if (static_cast<double>(fate & 0xffffffffU) >= faults_.delayed * kHalfRange) return Status::ok;
  delays_.fetch_add(1, std::memory_order_relaxed);
  if (faults_.delay_us_max == 0) {
    sched_yield();
  } else {
    const auto delay_us = static_cast<long>((fate >> 32) % (static_cast<std::uint64_t>(faults_.delay_us_max) + 1));
    const timespec delay = {delay_us / 1'000'000, delay_us % 1'000'000 * 1000};
    nanosleep(&delay, nullptr);
  }
  return Status::ok;
}

Status Faulty::put(const Put& put) noexcept {
  const Status status = before_put(put.peer, put.engine);
  if (status != Status::ok) return status;
  return is_held(put.peer, put.engine) ? hold(put) : inner_.put(put);
}

Status Faulty::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  // As transports of engines deal words.
  const auto engines = static_cast<std::uint64_t>(capabilities().engines);
  const int engine = static_cast<int>(offset / sizeof(value) % engines);
  const Status status = before_put(peer, engine);
  if (status != Status::ok) return status;
  if (!is_held(peer, engine)) return inner_.put_word(peer, offset, value);
  Put word;
  word.peer = peer;
  word.engine = engine;
  word.signal_offset = offset;
  word.signal = value;
  return hold(word);
}

Status Faulty::hold(const Put& put) noexcept {
  const std::lock_guard lock(mutex_);
  const bool is_cut = faults_.engine_us == Faults::kNever;
  busy_until_ns_ = is_cut ? INT64_MAX : std::max(busy_until_ns_, now_ns()) + 1000 * faults_.engine_us;
  try {
    Held& held = held_.emplace_back(Held{put, busy_until_ns_, {}, {}});
    // Words are as injected: their owner may go before they do.
    if (put.source == nullptr) held.put.owner = nullptr;
    held.hold = PutHold(held.put.owner);
    if (put.is_in_line()) {
      std::memcpy(held.in_line.data(), put.source, put.bytes);
      held.put.source = held.in_line.data();
    }
  } catch (const std::exception&) {
    return Status::no_resource;
  }
  return Status::ok;
}

Status Faulty::progress() noexcept {
  if (faults_.engine_us != 0) {
    const std::lock_guard lock(mutex_);
    for (; !held_.empty() && held_.front().due_ns <= now_ns(); held_.pop_front()) {
      const Status status = inner_.put(held_.front().put);
      if (status != Status::ok) return status;
    }
  }
  return inner_.progress();
}

bool Faulty::drained() noexcept {
  if (faults_.engine_us != 0) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::any_of(held_, [](const Held& one) { return one.put.source != nullptr; })) return false;
  }
  return inner_.drained();
}

}  // namespace torii::faulty
