// SPDX-License-Identifier: Apache-2.0
// A barrier that says which ranks have not come, and fails nobody's later operations. Each rank sends rank 0 a byte,
// and rank 0 answers whether all have come.
#include <algorithm>
#include <chrono>

#include "plugins/pytorch/failure.hpp"
#include "plugins/pytorch/group.hpp"

namespace torii_torch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string milliseconds_text(milliseconds time) { return std::to_string(time.count()) + " ms"; }

/// One receive of one byte, with a time of its own.
struct Receive {
  unsigned char byte = 0;
  torii_request* request = nullptr;
  torii_status status = TORII_OK;

  /// True if the byte has come before the time.
  bool take(double seconds) {
    int done = status == TORII_OK ? 0 : 1;
    if (done == 0) status = torii_wait_for(&request, seconds, &done);
    if (done == 0 && status == TORII_OK) {
      int cancelled = 0;
      (void)torii_request_cancel(&request, &cancelled);
      if (cancelled != 0) return false;
      status = torii_wait(&request);
    }
    return status == TORII_OK;
  }
};

double seconds_until(Clock::time_point end) {
  return std::max(0.0, std::chrono::duration<double>(end - Clock::now()).count());
}

std::string join(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

/// One barrier of a group.
class MonitoredBarrier {
 public:
  MonitoredBarrier(const Team& team, milliseconds timeout, int tag)
      : team_(team), timeout_(timeout), tag_(tag), end_(Clock::now() + timeout) {}

  void lead(bool wait_for_all) {
    std::vector<Receive> receives(static_cast<size_t>(team_.ranks()));
    for (int rank = 1; rank < team_.ranks(); ++rank) begin(receives[static_cast<size_t>(rank)], rank);
    std::vector<int> missing;
    for (int rank = 1; rank < team_.ranks(); ++rank) {
      // A rank that has come already counts, even when the time for others is over.
      const bool is_over = !missing.empty() && !wait_for_all;
      if (!receives[static_cast<size_t>(rank)].take(is_over ? 0 : seconds_until(end_))) missing.push_back(rank);
    }
    const unsigned char answer = missing.empty() ? 1 : 0;
    for (int rank = 1; rank < team_.ranks(); ++rank) {
      if (std::find(missing.begin(), missing.end(), rank) != missing.end()) continue;
      (void)torii_send(team_.get(), &answer, 1, TORII_U8, rank, tag_);
    }
    if (missing.empty()) return;
    if (timeout_ == milliseconds::zero() && !wait_for_all) {
      throw_failure(TORII_TIMEOUT, "[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms. No rank but 0 had come");
    }
    const bool is_many = wait_for_all && missing.size() > 1;
    throw_failure(TORII_TIMEOUT, std::string("[Rank 0]: Rank") + (is_many ? "s " : " ") +
                                     (is_many ? join(missing) : std::to_string(missing.front())) +
                                     " failed to pass monitoredBarrier in " + milliseconds_text(timeout_));
  }

  void follow() {
    Receive answer;
    begin(answer, 0);
    const unsigned char here = 1;
    const torii_status status = torii_send(team_.get(), &here, 1, TORII_U8, 0, tag_);
    if (status == TORII_OK && answer.take(seconds_until(end_) + kAnswerSeconds) && answer.byte == 1) return;
    throw_failure(TORII_TIMEOUT, "[Rank " + std::to_string(team_.rank()) + "]: Rank " + std::to_string(team_.rank()) +
                                     " successfully reached monitoredBarrier, but received errors while waiting for"
                                     " send/recv from rank 0. Please check rank 0 logs for faulty rank");
  }

 private:
  /// Rank 0 may have come later than this rank, and waits as long as this one.
  static constexpr double kAnswerSeconds = 0.2;

  void begin(Receive& receive, int from) {
    receive.status = torii_start_recv(team_.get(), &receive.byte, 1, TORII_U8, from, tag_, nullptr, &receive.request);
  }

  const Team& team_;
  milliseconds timeout_;
  int tag_;
  Clock::time_point end_;
};

void Group::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_for_all) {
  team_->check_owner();
  const milliseconds timeout = options.timeout == c10d::kUnsetTimeout ? timeout_ : clamped(options.timeout);
  // Each barrier has a tag, so that a rank that comes too late is not taken for one that is in time for the next.
  const int tag = kFirstOwnTag + static_cast<int>(monitored_barriers_++ % kFirstOwnTag);
  MonitoredBarrier barrier(*team_, timeout, tag);
  if (getRank() == 0) {
    barrier.lead(wait_for_all);
  } else {
    barrier.follow();
  }
}

}  // namespace torii_torch
