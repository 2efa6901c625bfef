// SPDX-License-Identifier: Apache-2.0
// Stamps, blocks and their statistics.
#include "perf/common/measure.hpp"

#include <algorithm>
#include <cmath>

#include "perf/common/failure.hpp"
#include "tools/collective_shape.hpp"

namespace torii::perf {
namespace {

constexpr int kCallsMin = 3;
constexpr int kCallsMax = 1000;

struct Stamps {
  int64_t start_ns;
  int64_t end_ns;
};

Stamps call_once(Subject& subject) {
  Stamps stamps{now_ns(), 0};
  const torii_status status = subject.call();
  stamps.end_ns = now_ns();
  check(status, "a timed call failed");
  subject.settle();
  return stamps;
}

/// Every rank's stamps become one duration per call: last start to last end.
Block merge(const Job& job, const std::vector<int64_t>& stamps) {
  const std::vector<int64_t> all = job.gather(stamps);
  Block block;
  for (size_t call = 0; call < stamps.size(); call += 2) {
    int64_t last_start = all[call], last_end = all[call + 1], first_end = all[call + 1];
    for (size_t at = call; at < all.size(); at += stamps.size()) {
      last_start = std::max(last_start, all[at]);
      last_end = std::max(last_end, all[at + 1]);
      first_end = std::min(first_end, all[at + 1]);
    }
    block.durations_ns.push_back(static_cast<double>(last_end - last_start));
    if (first_end < last_start) ++block.early_ends;
  }
  return block;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Block run_block(const Job& job, Meeting& meeting, Timing timing, int calls, Subject& subject) {
  std::vector<int64_t> stamps;
  if (timing == Timing::isolated) {
    stamps.reserve(2 * static_cast<size_t>(calls));
    for (int i = 0; i < calls; ++i) {
      subject.prepare(i);
      meeting.wait();
      const Stamps one = call_once(subject);
      stamps.insert(stamps.end(), {one.start_ns, one.end_ns});
    }
    return merge(job, stamps);
  }
  subject.prepare(0);
  meeting.wait();
  stamps = {now_ns(), 0};
  torii_status status = TORII_OK;
  for (int i = 0; i < calls && status == TORII_OK; ++i) status = subject.call();
  stamps[1] = now_ns();
  check(status, "a timed call failed");
  subject.settle();
  Block block = merge(job, stamps);
  block.durations_ns[0] /= calls;
  block.early_ends = 0;
  return block;
}

int warm_up(const Job& job, Meeting& meeting, Timing timing, int warm_up_calls, double block_ns, Subject& subject) {
  // The first call makes plans and maps memory, so it says nothing about the time of the others.
  run_block(job, meeting, timing, 1, subject);
  const int64_t start_ns = now_ns();
  const int calls = std::max(warm_up_calls, kCallsMin);
  run_block(job, meeting, timing, calls, subject);
  const auto slowest_ns = static_cast<double>(job.max(now_ns() - start_ns)) / calls;
  return std::clamp(static_cast<int>(block_ns / std::max(slowest_ns, 1.0)), kCallsMin, kCallsMax);
}

Statistics summarise(std::span<const std::vector<double>> blocks_ns) {
  std::vector<double> medians, all;
  for (const std::vector<double>& block : blocks_ns) {
    medians.push_back(median(block));
    all.insert(all.end(), block.begin(), block.end());
  }
  std::sort(all.begin(), all.end());
  Statistics result;
  const double middle = median(medians);
  for (double& value : medians) value = std::abs(value - middle);
  result.median_us = middle / 1e3;
  result.mad_us = median(medians) / 1e3;
  result.p50_us = median(all) / 1e3;
  if (!all.empty()) {
    const auto rank_of_p99 = static_cast<size_t>(std::ceil(0.99 * static_cast<double>(all.size())));
    result.p99_us = all[rank_of_p99 - 1] / 1e3;
    result.max_us = all.back() / 1e3;
  }
  result.calls = static_cast<int>(all.size());
  return result;
}

double busbw_factor(torii_collective collective, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  if (collective == TORII_ALLREDUCE) return 2 * share;
  return has_blocks(collective) ? share : 1;
}

}  // namespace torii::perf
