// SPDX-License-Identifier: Apache-2.0
// Counts the puts of an owner in flight, so that a call ends when its own puts are done, independently of others; and
// says whether one of them has failed.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

#include "runtime/base/status.hpp"

namespace torii {

/// Shared by a PutOwner and the puts that name it; it lives until both are gone. A call that failed is abandoned while
/// engines still hold its puts, and they end later.
class PutCount {
 public:
  /// A transport has taken a put, or a part of it. Relaxed: the thread that makes the puts is the one that waits for
  /// them, or hands the owner to that one. The end of a put is ordered behind this by the engine's lock.
  void add() noexcept { uses_.fetch_add(1, std::memory_order_relaxed); }
  /// A put of the owner has failed, or was refused. Before remove(), whose release shows it to the owner. The first
  /// failure stays.
  void fail(Status status) noexcept {
    Status none = Status::ok;
    failure_.compare_exchange_strong(none, status, std::memory_order_relaxed);
  }
  /// The transport reads the put's source no more. Release: the transport's reads happen before any store of the owner
  /// there, once the owner has seen the count, with acquire, go down. All changes are read-modify-writes, so the
  /// owner's load is ordered behind the ends of all puts, whichever of them came last.
  void remove() noexcept {
    if (uses_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend class PutOwner;
  PutCount() = default;
  ~PutCount() = default;

  std::atomic<std::size_t> uses_ = 1;  ///< one is the owner's own
  std::atomic<Status> failure_ = Status::ok;
};

/// The owner of puts, which any thread may make. The owner can ask whether all its puts are done.
class PutOwner {
 public:
  PutOwner() : count_(new PutCount) {}
  PutOwner(PutOwner&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  PutOwner& operator=(PutOwner&& other) noexcept {
    std::swap(count_, other.count_);
    return *this;
  }
  ~PutOwner() {
    if (count_ != nullptr) count_->remove();
  }

  /// The value for Put::owner. nullptr after a move.
  PutCount* count() const noexcept { return count_; }
  /// True when no transport holds a put of this owner; puts to lost peers do not count.
  bool drained() const noexcept { return count_ == nullptr || count_->uses_.load(std::memory_order_acquire) == 1; }
  /// The first failure of a put of this owner; ok if there is none yet, and for good once it is drained. peer_lost: the
  /// peer was not reached, and whether the bytes arrived is unknown. invalid_argument: the put was too long for the
  /// transport. transport: the engine has failed, or was closed. ok does not say that bytes have arrived at the peer.
  Status status() const noexcept {
    return count_ == nullptr ? Status::ok : count_->failure_.load(std::memory_order_relaxed);
  }

 private:
  PutCount* count_;
};

/// A transport's hold on a put, in the name of its owner if there is one. Not thread-safe.
class PutHold {
 public:
  PutHold() noexcept = default;
  explicit PutHold(PutCount* count) noexcept : count_(count) {
    if (count != nullptr) count->add();
  }
  PutHold(PutHold&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  PutHold& operator=(PutHold&& other) noexcept {
    std::swap(count_, other.count_);
    other.let_go();
    return *this;
  }
  ~PutHold() { let_go(); }
  void let_go() noexcept {
    if (PutCount* const count = std::exchange(count_, nullptr)) count->remove();
  }
  /// Lets go of a put that has failed.
  void fail(Status status) noexcept {
    if (count_ != nullptr) count_->fail(status);
    let_go();
  }

 private:
  PutCount* count_ = nullptr;
};

}  // namespace torii
