// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: an in-process exchange, under a deadline so that a missing rank fails and never
// hangs.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace torii::tests {

/// Where the threads of one job meet.
class ThreadJob {
 public:
  ThreadJob(int ranks, double timeout_s) : parts_(static_cast<std::size_t>(ranks)), timeout_s_(timeout_s) {}
  int ranks() const noexcept { return static_cast<int>(parts_.size()); }

  void all_gather(int rank, std::span<const std::byte> mine, std::span<std::byte> all) {
    std::unique_lock lock(mutex_);
    fail_if_someone_left();
    Part& part = parts_[static_cast<std::size_t>(rank)];
    part.bytes.assign(mine.begin(), mine.end());
    part.here = true;
    const std::size_t round = round_;
    if (std::ranges::all_of(parts_, &Part::here)) {
      finish_round();
    } else {
      const auto over = [&] { return round_ != round || left_ >= 0; };
      if (!changed_.wait_for(lock, std::chrono::duration<double>(timeout_s_), over)) {
        const auto missing = std::ranges::find(parts_, false, &Part::here) - parts_.begin();
        throw Error(Status::timeout, "rank " + std::to_string(missing) + " has not joined in time",
                    static_cast<int>(missing));
      }
      if (round_ == round) fail_if_someone_left();
    }
    if (whole_.size() != all.size()) throw Error(Status::mismatch, "ranks exchange blobs of different sizes");
    std::ranges::copy(whole_, all.begin());
  }

  /// The rank takes part in no further round.
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    if (left_ < 0) left_ = rank;
    changed_.notify_all();
  }

 private:
  struct Part {
    std::vector<std::byte> bytes;
    bool here = false;
  };

  void fail_if_someone_left() const {
    if (left_ >= 0) throw Error(Status::peer_lost, "rank " + std::to_string(left_) + " has ended", left_);
  }
  void finish_round() {
    // The next round cannot be complete, and overwrite this, before every rank has copied it and called again.
    whole_.clear();
    for (Part& part : parts_) {
      whole_.insert(whole_.end(), part.bytes.begin(), part.bytes.end());
      part.here = false;
    }
    ++round_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Part> parts_;
  std::vector<std::byte> whole_;
  std::size_t round_ = 0;
  int left_ = -1;
  double timeout_s_;
};

class ThreadBootstrap final : public Bootstrap {
 public:
  ThreadBootstrap(ThreadJob& job, int rank) : job_(job), rank_(rank) {}
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return job_.ranks(); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    job_.all_gather(rank_, mine, all);
  }

 private:
  ThreadJob& job_;
  int rank_;
};

/// Calls body(exchange) on `ranks` threads at once, waits for all, and throws again what the first failing one threw.
template <class Body>
void run_ranks_as_threads(int ranks, Body&& body, double timeout_s = 30) {
  ThreadJob job(ranks, timeout_s);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadBootstrap bootstrap(job, rank);
      try {
        body(static_cast<Bootstrap&>(bootstrap));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
      job.leave(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace torii::tests
