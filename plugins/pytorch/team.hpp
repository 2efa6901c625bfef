// SPDX-License-Identifier: Apache-2.0
// A context and a team of torii that works and a group own together.
#pragma once

#include <torii/torii.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "plugins/pytorch/store_exchange.hpp"
#include "plugins/pytorch/torch_version.hpp"

namespace torii_torch {

/// torii's longest deadline, 11 days. Programs that want none pass more.
inline constexpr std::chrono::seconds kLongestTimeout{1'000'000};
/// For every time that PyTorch gives: later sums with it do not overflow. Python's longest timedelta has overflowed
/// already, to a time far below 0.
inline std::chrono::milliseconds clamped(std::chrono::milliseconds timeout) {
  if (timeout < -kLongestTimeout) return kLongestTimeout;
  return std::min<std::chrono::milliseconds>(timeout, kLongestTimeout);
}

/// The choices of a group's user (pg_options); empty or 0: torii's settings.
struct GroupOptions {
  std::string determinism;
  std::string algorithm;
  std::string settings;  ///< lines "NAME=value"
  int channels = 0;
};

/// A context of torii. Each group has one of its own, so groups come, fail and go without each other.
class Context {
 public:
  Context(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, std::chrono::milliseconds timeout,
          const GroupOptions& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  torii_context* get() const noexcept { return context_; }
  /// Why the store has failed; empty if it has not.
  const std::string& store_failure() const noexcept { return exchange_.failure(); }

 private:
  StoreExchange exchange_;
  torii_context* context_ = nullptr;
};

/// A team that several threads may use, and its context.
class Team {
 public:
  /// The team of all ranks of the store. Collective.
  Team(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, std::chrono::milliseconds timeout,
       const GroupOptions& options);
  /// The team of the living members of a team on which a call has failed, but `without`. Collective over them.
  Team(const Team& failed, std::chrono::milliseconds timeout, const std::vector<int>& without, bool allow_minority);
  ~Team();
  Team& operator=(const Team&) = delete;

  torii_team* get() const noexcept { return team_; }
  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  /// False in a forked child, where nothing of the parent's may be touched.
  bool is_mine() const noexcept;
  /// Throws in a forked child. Before any lock: a thread that the child has not may have held it.
  void check_owner() const;
  /// Moves all operations of the team once, and waits for nothing. Whether one has moved.
  bool move() const;
  /// The ranks in the context of the members, in their order.
  std::vector<int> members() const;
  /// The members that are known to be lost.
  std::vector<int> lost() const;
  /// The members that the last timeout names.
  std::vector<int> absent() const;
  /// The failure of an operation with this status, whose reason is this thread's torii_last_error().
  std::exception_ptr failure(torii_status status, const char* operation) const;

 private:
  std::shared_ptr<Context> context_;
  GroupOptions options_;
  torii_team* team_ = nullptr;
  int rank_ = 0;
  int ranks_ = 0;
  int owner_;
};

}  // namespace torii_torch
