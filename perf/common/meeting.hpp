// SPDX-License-Identifier: Apache-2.0
// A barrier outside the library: what isolated timing starts from, so that what is measured does not time itself.
#pragma once

#include <cstdint>

#include "perf/common/job.hpp"

namespace torii::perf {

/// Nanoseconds of CLOCK_MONOTONIC, which all processes of one machine share.
int64_t now_ns();

/// Counter and generation in one page that all ranks map. Waiting spins, and yields when the ranks outnumber the CPUs.
class Meeting {
 public:
  /// Collective. Rank 0's page is opened by the others through /proc; where that is refused every rank uses the
  /// library's own barrier, and shared() says so.
  explicit Meeting(const Job& job);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Throws Failure(kTimeout) when a rank has not come for 30 s.
  void wait();
  bool shared() const { return page_ != nullptr; }

 private:
  struct Page;
  void open_page();
  bool oversubscribed() const;

  const Job& job_;
  Page* page_ = nullptr;
  int file_ = -1;
  int polls_before_yield_ = 0;
};

}  // namespace torii::perf
