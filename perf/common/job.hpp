// SPDX-License-Identifier: Apache-2.0
// The ranks of a perf run: how they are started and joined, and the small exchanges that a benchmark needs besides what
// it measures.
#pragma once

#include <torii/torii.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace torii::perf {

/// Replaces this process by `torii-run -n ranks -- this program arguments`. Returns only by throwing Failure.
[[noreturn]] void start_ranks(int ranks, const std::vector<std::string>& arguments);

/// True when a launcher has already started this process as one of many.
bool inside_job();
/// True for rank 0 of torii-run and for a process outside any job: one of many that all have the same to say.
bool speaks();

/// A context with two teams: the one that is measured, made from the settings, and one with automatic choices that
/// carries times, counts and hashes, because a forced algorithm need not know these collectives.
class Job {
 public:
  /// `exchange` is how an embedder joins; nullptr joins through the launcher.
  explicit Job(const std::string& settings, torii_exchange exchange = nullptr, int rank = 0, int ranks = 0);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  torii_context* context() const { return context_; }
  torii_team* team() const { return team_; }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// Every rank's values, ranks * mine.size() of them in rank order. All ranks give as many.
  std::vector<int64_t> gather(std::span<const int64_t> mine) const;
  /// Every rank's `bytes` bytes in rank order.
  void gather_bytes(const void* mine, void* all, size_t bytes) const;
  /// Rank 0's bytes to all.
  void broadcast(void* data, size_t bytes) const;
  int64_t sum(int64_t mine) const;
  int64_t max(int64_t mine) const;
  void barrier() const;

 private:
  torii_context* context_ = nullptr;
  torii_team* team_ = nullptr;
  torii_team* control_ = nullptr;
  int rank_ = 0;
  int ranks_ = 1;
};

}  // namespace torii::perf
