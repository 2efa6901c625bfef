// SPDX-License-Identifier: Apache-2.0
// A barrier outside the library: what isolated timing starts from, so that what is measured does not time itself.
#pragma once

#include <cstdint>

#include "perf/common/job.hpp"
#include "perf/common/shared_memory.hpp"

namespace torii::perf {

/// Nanoseconds of CLOCK_MONOTONIC, which all processes of one machine share.
int64_t now_ns();

/// True when there are more ranks than CPUs that any of them may use: launchers bind ranks to different CPUs.
/// Collective.
bool oversubscribed(const Job& job);

/// Counter and generation in one page that all ranks map. Waiting spins, and yields when the ranks outnumber the CPUs.
class Meeting {
 public:
  /// Collective. Where the ranks cannot share a page, every rank uses the library's own barrier, and shared() says so.
  explicit Meeting(const Job& job);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Throws Failure(kTimeout) when a rank has not come for 30 s.
  void wait();
  bool shared() const { return page_ != nullptr; }

 private:
  struct Page;

  const Job& job_;
  SharedMemory memory_;
  Page* page_ = nullptr;
  int polls_before_yield_ = 0;
};

}  // namespace torii::perf
