// SPDX-License-Identifier: Apache-2.0
// Which peers and engines are lost, and the first cause. The engines of a transport share this state.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/fabric/transport.hpp"

namespace torii::transports {

/// If an engine cannot reach a peer, either the engine is lost or the peer is. The peer counts as lost if no engine
/// reaches it; the engine counts as lost if the peer answers through another engine. Thread-safe.
class PeerStates {
 public:
  PeerStates(int ranks, int engines)
      : all_((std::uint32_t{1} << std::clamp(engines, 1, kEnginesMax)) - 1), cut_(static_cast<std::size_t>(ranks)) {}

  /// No engine reaches the peer.
  bool is_lost(int peer) const noexcept { return (cut_from(peer) | closed()) == all_; }
  /// The peer is lost, or this engine does not reach it.
  bool is_cut(int engine, int peer) const noexcept {
    return ((cut_from(peer) | closed()) >> engine & 1) != 0 || is_lost(peer);
  }
  /// The engine has lost the peer: that it was closed does not count.
  bool has_lost(int engine, int peer) const noexcept { return (cut_from(peer) >> engine & 1) != 0; }
  /// An open engine does not reach the peer, and it is not known yet which of the two is lost.
  bool is_doubted(int peer) const noexcept {
    return (cut_from(peer) & ~closed() & ~failed_.load(std::memory_order_acquire)) != 0 && !is_lost(peer);
  }

  /// `engine` no longer reaches the peer.
  void cut(int engine, int peer, const std::string& why) noexcept { add(peer, std::uint32_t{1} << engine, why); }
  void lose(int peer, const std::string& why) noexcept { add(peer, all_, why); }
  /// A doubted peer has answered a question that was asked after the loss: the engine is lost, not the peer. A late
  /// answer of a peer that has left or died meanwhile is ignored.
  void answered(int peer) noexcept {
    const std::uint32_t cut = cut_from(peer);
    if ((cut | closed()) != all_) failed_.fetch_or(cut, std::memory_order_acq_rel);
  }
  /// The engine will not be used any more, so the text of its loss is dropped.
  void close(int engine) noexcept {
    closed_.fetch_or(std::uint32_t{1} << engine, std::memory_order_acq_rel);
    changes_.fetch_add(1, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    text_.clear();
  }
  std::uint32_t closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  /// Grows whenever an engine loses a peer or closes. A thread that sees the new value sees the change too.
  std::uint32_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }

  void break_down(const std::string& why) noexcept {
    if (broken_.exchange(true, std::memory_order_acq_rel)) return;
    keep(why);
  }
  /// A failure concerns no single peer or engine, and nothing can be put any more.
  bool is_broken() const noexcept { return broken_.load(std::memory_order_acquire); }
  /// Open engines that do not reach a peer that lives.
  std::uint32_t lost_engines() const noexcept { return failed_.load(std::memory_order_acquire) & ~closed(); }
  /// Counts a message that no rank of the job sends; the caller drops it.
  void count_stranger() noexcept { strangers_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t strangers() const noexcept { return strangers_.load(std::memory_order_relaxed); }
  /// Status::transport while there are lost engines, and after break_down().
  Status status() const noexcept { return is_broken() || lost_engines() != 0 ? Status::transport : Status::ok; }
  /// The first cause since the last engine was closed.
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
      text_.clear();  // out of memory
    }
  }

  // Sets of engines, one bit each.
  std::uint32_t all_;
  std::vector<std::atomic<std::uint32_t>> cut_;  ///< by peer: engines that do not reach it
  std::atomic<std::uint32_t> failed_ = 0;        ///< engines that do not reach a peer that lives
  std::atomic<std::uint32_t> closed_ = 0;
  std::atomic<std::uint32_t> changes_ = 0;
  std::atomic<bool> broken_ = false;
  std::atomic<std::uint64_t> strangers_ = 0;
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace torii::transports
