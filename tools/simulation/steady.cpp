// SPDX-License-Identifier: Apache-2.0
// Finds the period of a shorter pipeline and extends it.
#include "tools/simulation/steady.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace torii::simulated {
namespace {

constexpr std::int64_t kPeriodMost = 64;
/// Segments are left out in multiples of this number, which the periods 1, 2, 3, 4, 6, 8, ... divide.
constexpr std::int64_t kLeftOutUnit = 192;
constexpr std::size_t kGranuleBytes = std::size_t{64} << 10;
constexpr std::size_t kGranulesEvenFrom = std::size_t{1} << 20;

/// The number of segments that can be left out so that each block is shorter by exactly those.
std::int64_t unit_of(const Call& call) {
  if (call.plans.front().dealing == Dealing::block) return kLeftOutUnit;
  const std::size_t segment_bytes = call.shape.layout.segment_bytes();
  const std::size_t per_granule = kGranuleBytes / std::gcd(segment_bytes, kGranuleBytes);
  return std::lcm(kLeftOutUnit, static_cast<std::int64_t>(per_granule));
}

CallShape shortened(const Call& call, std::size_t bytes, std::int64_t left_out) {
  const std::size_t blocks = static_cast<std::size_t>(call.plans.front().blocks);
  const std::size_t less = static_cast<std::size_t>(left_out) * call.shape.layout.segment_bytes() * blocks;
  CallShape shorter = call.shape;
  shorter.layout = call_shape(call.request, call.plans.front(), call.shape.type, bytes - less).layout;
  return shorter;
}

/// The time of a period of `period` segments if all ranks have it in [begin, end), otherwise 0.
Time time_of_period(const Outcome& outcome, std::int64_t begin, std::int64_t end, std::int64_t period) {
  Time common = 0;
  for (const std::vector<Time>& times : outcome.progress) {
    if (times.empty()) continue;
    for (std::int64_t segment = begin; segment < end; ++segment) {
      const Time took = times[static_cast<std::size_t>(segment + period)] - times[static_cast<std::size_t>(segment)];
      if (common == 0) common = took;
      if (took != common || took == 0) return 0;
    }
  }
  return common;
}

/// The mean time of a segment in [begin, end) if all ranks have one pace there, otherwise 0.
double time_of_segment(const Outcome& outcome, std::int64_t begin, std::int64_t end) {
  constexpr double kPacesApart = 1.02;
  double least = 0;
  double most = 0;
  double sum = 0;
  double count = 0;
  for (const std::vector<Time>& times : outcome.progress) {
    if (times.empty()) continue;
    const Time took = times[static_cast<std::size_t>(end)] - times[static_cast<std::size_t>(begin)];
    const double pace = static_cast<double>(took) / static_cast<double>(end - begin);
    least = count == 0 ? pace : std::min(least, pace);
    most = std::max(most, pace);
    sum += pace;
    ++count;
  }
  return count > 0 && most <= kPacesApart * least ? sum / count : 0;
}

/// The time of `left_out` more segments, by the third quarter of a run of `left`; 0 if that is not steady.
Time time_of(const Outcome& outcome, std::int64_t left, std::int64_t left_out, Steady& steady) {
  const std::int64_t begin = left / 2;
  const std::int64_t end = 3 * left / 4;
  steady = Steady::periodic;
  for (std::int64_t period = 1; period <= std::min(kPeriodMost, left / 8); ++period) {
    if (left_out % period != 0) continue;
    const Time took = time_of_period(outcome, begin, end - period, period);
    if (took != 0) return left_out / period * took;
  }
  steady = Steady::mean;
  return static_cast<Time>(std::llround(static_cast<double>(left_out) * time_of_segment(outcome, begin, end)));
}

void extend(Outcome& outcome, const Call& call, std::int64_t left_out, Time time) {
  outcome.time += time;
  outcome.messages += static_cast<std::uint64_t>(left_out) * outcome.messages_per_segment;
  const std::size_t segment_bytes = call.shape.layout.segment_bytes();
  for (std::size_t link = 0; link < outcome.link_bytes.size(); ++link) {
    outcome.link_bytes[link] += static_cast<std::uint64_t>(left_out) * segment_bytes * outcome.link_messages[link];
  }
  outcome.uses.clear();
}

}  // namespace

SteadyOutcome run_steady(const Call& call, std::size_t bytes, std::int64_t segments_least) {
  const std::int64_t segments = call.shape.layout.segments();
  const std::int64_t unit = unit_of(call);
  const bool may_be_periodic = !call.fill && call.network.jitter_us == 0 && bytes > 2 * kGranulesEvenFrom &&
                               !is_personalised(call.request.collective);
  for (std::int64_t run_least = segments_least; may_be_periodic && 2 * run_least < segments; run_least *= 2) {
    const std::int64_t left_out = (segments - run_least) / unit * unit;
    if (left_out <= segments / 4) break;
    const CallShape shorter = shortened(call, bytes, left_out);
    const std::int64_t left = shorter.layout.segments();
    if (left + left_out != segments || shorter.layout.total_bytes() < 2 * kGranulesEvenFrom) continue;
    SteadyOutcome result;
    result.outcome = run(call, shorter);
    const Time time = time_of(result.outcome, left, left_out, result.steady);
    if (time == 0) continue;
    result.segments_run = left;
    extend(result.outcome, call, left_out, time);
    return result;
  }
  SteadyOutcome whole;
  whole.segments_run = segments;
  whole.outcome = run(call);
  return whole;
}

}  // namespace torii::simulated
