// SPDX-License-Identifier: Apache-2.0
// Blocks of each loop in turn, the order reversed every other round, because machines change their speed in mid-run.
#include "perf/transports/put_measure.hpp"

#include <algorithm>
#include <cstring>

#include "perf/common/meeting.hpp"
#include "runtime/fabric/words.hpp"

namespace torii::perf {
namespace {

constexpr double kBlockNs = 20e6;
constexpr int kIterationsLeast = 3;
constexpr int kIterationsMost = 20000;
constexpr std::size_t kAnswerBytes = 8;

/// What rank `rank` puts into that slot at that place; never zero.
std::byte pattern(int rank, std::size_t slot, std::size_t at) {
  return static_cast<std::byte>(1 + (at * 7 + slot * 13 + static_cast<std::size_t>(rank) * 101) % 255);
}

class Measurement {
 public:
  Measurement(Bootstrap& bootstrap, const PutPlan& plan)
      : bootstrap_(bootstrap), plan_(plan), rank_(bootstrap.rank()) {}

  /// Nanoseconds of so many iterations.
  double block(PutLoop& loop, int iterations);
  void barrier() { (void)gather_values(bootstrap_, 0); }
  /// Rank 0's number on both ranks.
  int agree(int number) { return gather_values(bootstrap_, number)[0]; }
  std::size_t sum(std::size_t number) {
    const std::vector<std::size_t> both = gather_values(bootstrap_, number);
    return both[0] + both[1];
  }
  void fill(PutLoop& loop);
  void clear(PutLoop& loop);
  /// After a block of so many iterations on a cleared loop.
  std::size_t count_wrong(PutLoop& loop, int iterations);

 private:
  /// What this rank puts at a time, and what comes to it.
  std::size_t own_bytes() const { return is_answer(rank_) ? kAnswerBytes : plan_.bytes; }
  std::size_t peer_bytes() const { return is_answer(1 - rank_) ? kAnswerBytes : plan_.bytes; }
  bool is_answer(int rank) const { return plan_.kind == PutKind::bandwidth && rank == 1; }

  Bootstrap& bootstrap_;
  const PutPlan& plan_;
  int rank_;
};

double Measurement::block(PutLoop& loop, int iterations) {
  const std::int64_t start_ns = now_ns();
  for (int i = 0; i < iterations; ++i) {
    if (rank_ == 0) {
      for (std::size_t n = 0; n < plan_.window; ++n) loop.put(plan_.bytes);
      loop.wait(peer_bytes());
      // The answer says that all has arrived; that the slots may be written again is the local side's to say.
      if (plan_.window > 1) loop.drain();
    } else {
      for (std::size_t n = 0; n < plan_.window; ++n) loop.wait(plan_.bytes);
      loop.put(own_bytes());
    }
  }
  const std::int64_t end_ns = now_ns();
  loop.drain();
  return static_cast<double>(end_ns - start_ns);
}

void Measurement::fill(PutLoop& loop) {
  for (std::size_t slot = 0; slot < loop.layout().slots; ++slot) {
    for (std::size_t at = 0; at < own_bytes(); ++at) loop.outgoing(slot)[at] = pattern(rank_, slot, at);
  }
}

void Measurement::clear(PutLoop& loop) {
  for (std::size_t slot = 0; slot < loop.layout().slots; ++slot) {
    std::memset(loop.incoming(slot, peer_bytes()), 0, peer_bytes());
  }
}

std::size_t Measurement::count_wrong(PutLoop& loop, int iterations) {
  const std::size_t slots = loop.layout().slots;
  const std::size_t messages = static_cast<std::size_t>(iterations) * (is_answer(1 - rank_) ? 1 : plan_.window);
  std::size_t untouched = slots - std::min(slots, messages);
  std::size_t wrong = 0;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const std::byte* const payload = loop.incoming(slot, peer_bytes());
    // The pattern has no zero.
    if (untouched != 0 && payload[0] == std::byte{0}) {
      --untouched;
      continue;
    }
    for (std::size_t at = 0; at < peer_bytes(); ++at) {
      if (payload[at] != pattern(1 - rank_, slot, at)) ++wrong;
    }
  }
  return wrong;
}

}  // namespace

PutResult measure_puts(Bootstrap& bootstrap, const std::vector<PutLoop*>& loops, const PutPlan& plan) {
  Measurement measurement(bootstrap, plan);
  PutResult result;
  result.iterations = plan.iterations;
  result.times_us.resize(loops.size());
  double slowest_ns = 1;
  for (PutLoop* const loop : loops) {
    measurement.barrier();
    loop->begin({plan.window, std::max(round_up(plan.bytes, kLineBytes), kLineBytes)});
    measurement.fill(*loop);
    measurement.barrier();
    const int calls = std::max(plan.warm_up, kIterationsLeast);
    slowest_ns = std::max(slowest_ns, measurement.block(*loop, calls) / calls);
  }
  if (result.iterations == 0) {
    const double fitting = std::clamp<double>(kBlockNs / slowest_ns, kIterationsLeast, kIterationsMost);
    result.iterations = measurement.agree(static_cast<int>(fitting));
  }
  std::size_t wrong = 0;
  for (int round = 0; round < plan.rounds; ++round) {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const std::size_t which = round % 2 == 0 ? i : loops.size() - 1 - i;
      PutLoop& loop = *loops[which];
      measurement.clear(loop);
      measurement.barrier();
      const double took_ns = measurement.block(loop, result.iterations);
      const double parts = plan.kind == PutKind::latency ? 2e3 : 1e3;
      result.times_us[which].push_back(took_ns / result.iterations / parts);
      wrong += measurement.count_wrong(loop, result.iterations);
      measurement.barrier();
    }
  }
  result.wrong_bytes = measurement.sum(wrong);
  return result;
}

}  // namespace torii::perf
