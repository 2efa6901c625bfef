// SPDX-License-Identifier: Apache-2.0
// Which peers and which engines are lost, and what went wrong first: shared by the engines of a transport.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/execution/transport.hpp"

namespace torii::transports {

/// An engine that breaks has lost its way to a peer, or the peer has ended. So a peer counts as lost when no engine
/// reaches it any more, and an engine when the peer answers through another one. Thread-safe.
class PeerStates {
 public:
  PeerStates(int ranks, int engines)
      : all_((std::uint32_t{1} << std::clamp(engines, 1, kEnginesMax)) - 1), cut_(static_cast<std::size_t>(ranks)) {}

  /// Nothing reaches the peer any more.
  bool is_lost(int peer) const noexcept { return (cut_from(peer) | closed()) == all_; }
  /// The peer is lost, or nothing reaches it through this engine.
  bool is_cut(int engine, int peer) const noexcept {
    return ((cut_from(peer) | closed()) >> engine & 1) != 0 || is_lost(peer);
  }
  /// Some engine has lost the peer, and it is not known yet which of the two is lost.
  bool is_doubted(int peer) const noexcept {
    return (cut_from(peer) & ~closed() & ~failed_.load(std::memory_order_acquire)) != 0 && !is_lost(peer);
  }

  /// `engine` has lost its way to the peer.
  void cut(int engine, int peer, const std::string& why) noexcept { add(peer, std::uint32_t{1} << engine, why); }
  void lose(int peer, const std::string& why) noexcept { add(peer, all_, why); }
  /// A doubted peer has answered a question that was asked after it was cut off. Of one that is lost meanwhile, because
  /// it has left or died, an answer under way says nothing.
  void answered(int peer) noexcept {
    const std::uint32_t cut = cut_from(peer);
    if ((cut | closed()) != all_) failed_.fetch_or(cut, std::memory_order_acq_rel);
  }
  /// The engine will not be used any more: it explains nothing.
  void close(int engine) noexcept {
    closed_.fetch_or(std::uint32_t{1} << engine, std::memory_order_acq_rel);
    changes_.fetch_add(1, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    text_.clear();
  }
  std::uint32_t closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  /// Grows whenever a peer is cut from an engine, or an engine closes. Who sees it grown sees the cut too.
  std::uint32_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }

  void break_down(const std::string& why) noexcept {
    if (broken_.exchange(true, std::memory_order_acq_rel)) return;
    keep(why);
  }
  /// Something failed that concerns no single peer or engine: nothing can be put any more.
  bool is_broken() const noexcept { return broken_.load(std::memory_order_acquire); }
  /// Open ones that were cut from a peer that lives.
  std::uint32_t lost_engines() const noexcept { return failed_.load(std::memory_order_acquire) & ~closed(); }
  /// Something has come that no rank of the job sends, and was dropped.
  void count_stranger() noexcept { strangers_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t strangers() const noexcept { return strangers_.load(std::memory_order_relaxed); }
  /// Status::transport while there are any, and when all is broken.
  Status status() const noexcept { return is_broken() || lost_engines() != 0 ? Status::transport : Status::ok; }
  /// The first cause since an engine was closed.
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::uint32_t cut_from(int peer) const noexcept {
    return cut_[static_cast<std::size_t>(peer)].load(std::memory_order_acquire);
  }
  void add(int peer, std::uint32_t engines, const std::string& why) noexcept {
    const std::uint32_t before =
        cut_[static_cast<std::size_t>(peer)].fetch_or(engines, std::memory_order_acq_rel) | closed();
    changes_.fetch_add(1, std::memory_order_release);
    if ((engines & ~before) != 0) keep(why);
  }
  void keep(const std::string& why) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      if (text_.empty()) text_ = why;
    } catch (const std::exception&) {
      text_.clear();  // out of memory: the status alone has to do
    }
  }

  // Sets of engines, a bit each.
  std::uint32_t all_;
  std::vector<std::atomic<std::uint32_t>> cut_;  ///< by peer: those that do not reach it
  std::atomic<std::uint32_t> failed_ = 0;        ///< those that were cut from a peer that lives
  std::atomic<std::uint32_t> closed_ = 0;
  std::atomic<std::uint32_t> changes_ = 0;
  std::atomic<bool> broken_ = false;
  std::atomic<std::uint64_t> strangers_ = 0;
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace torii::transports
