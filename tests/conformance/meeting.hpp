// SPDX-License-Identifier: Apache-2.0
// An embedder's exchange among threads, with a deadline: a rank that does not come makes it fail, and never hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

namespace torii::tests {

/// Where the threads meet. Each call of exchange() is one all-gather, of the size that its ranks give.
class Meeting {
 public:
  explicit Meeting(int ranks, double timeout_s = 5)
      : blobs_(static_cast<std::size_t>(ranks)), calls_(static_cast<std::size_t>(ranks)), timeout_s_(timeout_s) {}

  /// A rank's way to the meeting; `data` of exchange().
  struct Seat {
    Meeting* meeting;
    int rank;
    int fails_at = -1;              ///< the number of the call, from 0, that exchanges and then says 7
    void (*before)(int) = nullptr;  ///< called with the number of the call before it
    void (*after)(int) = nullptr;   ///< and when it has exchanged
    Seat(Meeting& at, int number) : meeting(&at), rank(number) {}
  };

  static int exchange(const void* mine, void* all, std::size_t bytes, void* data) {
    Seat& seat = *static_cast<Seat*>(data);
    const int call = seat.meeting->calls_[static_cast<std::size_t>(seat.rank)];
    if (seat.before != nullptr) seat.before(call);
    const bool came = seat.meeting->gather(seat.rank, mine, all, bytes);
    if (seat.after != nullptr) seat.after(call);
    return !came ? 8 : call == seat.fails_at ? 7 : 0;
  }

  /// How often that rank has exchanged.
  int calls(int rank) {
    const std::lock_guard lock(mutex_);
    return calls_[static_cast<std::size_t>(rank)];
  }

 private:
  /// False when a rank has not come in time, or with another size.
  bool gather(int rank, const void* mine, void* all, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    const auto own = static_cast<std::size_t>(rank);
    ++calls_[own];
    const auto* const from = static_cast<const char*>(mine);
    blobs_[own].assign(from, from + bytes);
    const std::size_t round = round_;
    if (++here_ == blobs_.size()) {
      whole_.clear();
      is_whole_ = true;
      for (const auto& blob : blobs_) {
        is_whole_ = is_whole_ && blob.size() == bytes;
        whole_.insert(whole_.end(), blob.begin(), blob.end());
      }
      here_ = 0;
      ++round_;
      changed_.notify_all();
    } else if (!changed_.wait_for(lock, std::chrono::duration<double>(timeout_s_), [&] { return round_ != round; })) {
      --here_;
      return false;
    }
    // The next round is whole, and overwrites this one, only when every rank has come again.
    if (is_whole_ && bytes != 0) std::memcpy(all, whole_.data(), whole_.size());
    return is_whole_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<char>> blobs_;
  std::vector<char> whole_;
  std::vector<int> calls_;
  bool is_whole_ = true;
  std::size_t here_ = 0;
  std::size_t round_ = 0;
  double timeout_s_;
};

}  // namespace torii::tests
