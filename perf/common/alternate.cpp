// SPDX-License-Identifier: Apache-2.0
// Blocks of ways.
#include "perf/common/alternate.hpp"

#include <algorithm>
#include <numeric>

namespace torii::perf {
namespace {

constexpr int kCallsMax = 1000;
/// So many that the library has tried its ways to store, and has used, so mapped, all slots of rings with few slots.
constexpr int kWarmCalls = 9;
/// No more calls after this time, so that calls that are always long do not take the time of other cells.
constexpr double kWarmNs = 2e8;
/// What a long vector costs more than a short one, when time is shared out.
constexpr double kWeightBytes = 4 << 20;

}  // namespace

void time_block(const Job& job, Meeting& meeting, Timing timing, double block_ns, Way& way) {
  if (way.calls == 0) {
    std::vector<double> calls_ns;
    double sum_ns = 0;
    while (calls_ns.size() < kWarmCalls && sum_ns < kWarmNs) {
      calls_ns.push_back(run_block(job, meeting, Timing::isolated, 1, way).durations_ns[0]);
      sum_ns += calls_ns.back();
    }
    // The first calls map memory, so the later half says how long a call is.
    const std::vector<double> later_ns(calls_ns.begin() + static_cast<ptrdiff_t>(calls_ns.size() / 2), calls_ns.end());
    way.calls = std::clamp(static_cast<int>(block_ns / std::max(median(later_ns), 1.0)), 1, kCallsMax);
  }
  way.blocks_us.push_back(median(run_block(job, meeting, timing, way.calls, way).durations_ns) / 1e3);
}

Budget::Budget(const Job& job, double seconds, std::span<const size_t> sizes_bytes)
    : job_(job), deadline_ns_(now_ns() + static_cast<int64_t>(seconds * 1e9)) {
  for (const size_t bytes : sizes_bytes) weights_.push_back(1 + static_cast<double>(bytes) / kWeightBytes);
}

bool Budget::next() {
  if (is_over()) return false;
  const double left = std::accumulate(weights_.begin() + static_cast<ptrdiff_t>(at_), weights_.end(), 0.0);
  share_begin_ns_ = now_ns();
  share_end_ns_ = share_begin_ns_ +
                  static_cast<int64_t>(static_cast<double>(deadline_ns_ - share_begin_ns_) * weights_[at_] / left);
  ++at_;
  return true;
}

bool Budget::is_past(int64_t time_ns) const {
  int64_t past = now_ns() > time_ns ? 1 : 0;
  job_.broadcast(&past, sizeof(past));
  return past != 0;
}

}  // namespace torii::perf
