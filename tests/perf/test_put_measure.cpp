// SPDX-License-Identifier: Apache-2.0
// How puts are timed: loops take turns, every message is waited for, and what arrives damaged or not at all is counted.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "perf/transports/put_measure.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/support/thread_ranks.hpp"

namespace torii::perf {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;

enum class Fault { none, flips_a_byte, loses_answers };

/// Two ranks of one process that store into each other's memory.
struct alignas(kLineBytes) Memory {
  std::array<std::byte, kMemoryBytes> bytes{};
};

class StoreLoop final : public PutLoop {
 public:
  StoreLoop(std::vector<Memory>& memories, int rank, Fault fault)
      : PutLoop(memories[static_cast<std::size_t>(rank)].bytes.data()),
        peer_(memories[static_cast<std::size_t>(1 - rank)].bytes.data()),
        rank_(rank),
        fault_(fault) {}
  void poll() override { ++polls; }
  std::byte* incoming(std::size_t slot, std::size_t) noexcept override {
    return memory() + layout().incoming_offset(slot) + kLineBytes;
  }

  int polls = 0;
  std::vector<std::uint64_t> numbers;  ///< of all messages put

 protected:
  void put_message(std::uint64_t number, std::size_t bytes) override {
    numbers.push_back(number);
    std::byte* const slot = peer_ + layout().incoming_offset(number);
    if (fault_ != Fault::loses_answers || rank_ == 0) {
      std::memcpy(slot + kLineBytes, outgoing(number % layout().slots), bytes);
    }
    if (fault_ == Fault::flips_a_byte && rank_ == 0) slot[kLineBytes + bytes - 1] ^= std::byte{1};
    store_word(slot, number);
  }
  bool has_come(std::uint64_t number, std::size_t) override {
    poll();
    return load_word(memory() + layout().incoming_offset(number)) == number;
  }
  bool is_drained() override { return true; }

 private:
  std::byte* peer_;
  int rank_;
  Fault fault_;
};

struct Outcome {
  PutResult result;
  std::vector<std::uint64_t> numbers;
};

/// What rank 0 got from two loops, the first with the fault, the second right.
Outcome measure(const PutPlan& plan, Fault fault) {
  std::vector<Memory> first(2);
  std::vector<Memory> second(2);
  std::array<Outcome, 2> outcomes;
  tests::run_ranks_as_threads(2, [&](Bootstrap& exchange) {
    StoreLoop faulty(first, exchange.rank(), fault);
    StoreLoop right(second, exchange.rank(), Fault::none);
    Outcome& outcome = outcomes[static_cast<std::size_t>(exchange.rank())];
    outcome.result = measure_puts(exchange, {&faulty, &right}, plan);
    outcome.numbers = faulty.numbers;
  });
  EXPECT_EQ(outcomes[0].result.wrong_bytes, outcomes[1].result.wrong_bytes);
  EXPECT_EQ(outcomes[0].result.iterations, outcomes[1].result.iterations);
  return outcomes[0];
}

TEST(PutMeasure, PutsEveryMessageOfEveryBlock) {
  for (const PutPlan& plan :
       {PutPlan{PutKind::latency, 8, 1, 5, 4, 3}, PutPlan{PutKind::bandwidth, 1000, 16, 2, 0, 4}}) {
    const Outcome outcome = measure(plan, Fault::none);
    EXPECT_EQ(outcome.result.wrong_bytes, 0u);
    const int warm_up = std::max(plan.warm_up, 3);
    const auto messages = static_cast<std::size_t>(warm_up + plan.rounds * plan.iterations) * plan.window;
    ASSERT_EQ(outcome.numbers.size(), messages);
    for (std::size_t i = 0; i < messages; ++i) EXPECT_EQ(outcome.numbers[i], i + 1);
    ASSERT_EQ(outcome.result.times_us.size(), 2u);
    for (const std::vector<double>& times : outcome.result.times_us) {
      EXPECT_EQ(times.size(), static_cast<std::size_t>(plan.rounds));
      for (const double time : times) EXPECT_GT(time, 0);
    }
  }
}

TEST(PutMeasure, ChoosesIterationsAlikeOnBothRanks) {
  EXPECT_GE(measure({PutKind::latency, 64, 1, 0, 0, 1}, Fault::none).result.iterations, 3);
}

TEST(PutMeasure, CountsWhatArrivesDamaged) {
  EXPECT_EQ(measure({PutKind::latency, 100, 1, 5, 0, 3}, Fault::flips_a_byte).result.wrong_bytes, 3u);
  EXPECT_EQ(measure({PutKind::bandwidth, 100, 8, 5, 0, 3}, Fault::flips_a_byte).result.wrong_bytes, 3u * 8);
}

TEST(PutMeasure, CountsWhatNeverArrives) {
  EXPECT_EQ(measure({PutKind::latency, 100, 1, 5, 0, 3}, Fault::loses_answers).result.wrong_bytes, 3u * 100);
  // Five answers of 8 bytes in eight slots.
  EXPECT_EQ(measure({PutKind::bandwidth, 100, 8, 5, 0, 3}, Fault::loses_answers).result.wrong_bytes, 3u * 5 * 8);
}

}  // namespace
}  // namespace torii::perf
