// SPDX-License-Identifier: Apache-2.0
// Keeps puts to other nodes in a bag and takes them out at random.
#include "tests/conformance/distant.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "runtime/fabric/words.hpp"

namespace torii::tests {

Status Distant::put(const Put& put) noexcept {
  if (is_near(put.peer)) return inner_.put(put);
  if (put.bytes != 0 && put.source == nullptr) return Status::transport;  // nobody else can move the payload
  if (put.bytes != 0 && put.signal_offset % kLineBytes != 0) return Status::transport;
  if (put.engine == lost_engine_) return Status::ok;
  Pending& pending = pending_.emplace_back(Pending{put, false, {}, {}});
  // Words are as injected: their owner may go before they do.
  if (put.source == nullptr) pending.put.owner = nullptr;
  pending.hold = PutHold(pending.put.owner);
  if (put.is_in_line()) std::memcpy(pending.in_line.data(), put.source, put.bytes);
  for (const auto& [first, end] : watched_) watched_puts_ += put.source >= first && put.source < end ? 1 : 0;
  count_targets();
  return Status::ok;
}

void Distant::count_targets() {
  std::set<int> targets;
  for (const Pending& pending : pending_) {
    if (pending.put.bytes != 0) targets.insert(pending.put.peer);
  }
  targets_most_ = std::max(targets_most_, static_cast<int>(targets.size()));
}

Status Distant::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  if (is_near(peer)) return inner_.put_word(peer, offset, value);
  Put word;
  word.peer = peer;
  word.signal_offset = offset;
  word.signal = value;
  pending_.push_back({word, true, {}, {}});
  return Status::ok;
}

void Distant::deliver(std::size_t index) noexcept {
  Pending pending = std::move(pending_[index]);
  if (pending.put.is_in_line()) pending.put.source = pending.in_line.data();
  if (index + 1 != pending_.size()) pending_[index] = std::move(pending_.back());
  pending_.pop_back();
  ++distant_puts_;
  if (pending.is_word) {
    (void)inner_.put_word(pending.put.peer, pending.put.signal_offset, pending.put.signal);
    return;
  }
  if (relaxes_signals_) {
    store_relaxed(pending.put);
  } else {
    (void)inner_.put(pending.put);
  }
  if (pending.put.line_before) {
    std::memset(const_cast<std::byte*>(pending.put.source) - kLineBytes, 0xee, kLineBytes);
  }
}

void Distant::store_relaxed(const Put& put) noexcept {
  if (put.source != nullptr) std::memcpy(inner_.mapped(put.peer, put.target_offset), put.source, put.bytes);
  auto& signal = *reinterpret_cast<std::uint64_t*>(inner_.mapped(put.peer, put.signal_offset));
  std::atomic_ref<std::uint64_t>(signal).store(put.signal, std::memory_order_relaxed);
}

Status Distant::progress() noexcept {
  for (std::size_t tries = pending_.size(); tries > 0 && !pending_.empty(); --tries) {
    if (random_() % 4 != 0) deliver(random_() % pending_.size());
  }
  return inner_.progress();
}

bool Distant::drained() noexcept {
  for (const Pending& pending : pending_) {
    if (pending.put.source != nullptr) return false;
  }
  return inner_.drained();
}

void Distant::flush() noexcept {
  while (!pending_.empty()) deliver(pending_.size() - 1);
}

}  // namespace torii::tests
