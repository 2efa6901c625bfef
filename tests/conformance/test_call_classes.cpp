// SPDX-License-Identifier: Apache-2.0
// Calls whose lengths, types and roots change on one team: blocking ones, and several in flight, of which some ranks
// wait for each and others start ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// One call, the same on all ranks.
struct Drawn {
  torii_collective collective;
  torii_type type;
  torii_op op;
  std::size_t count;
  int root;
};

constexpr torii_collective kChanging[] = {TORII_BROADCAST,  TORII_REDUCE,         TORII_ALLREDUCE,
                                          TORII_ALL_GATHER, TORII_REDUCE_SCATTER, TORII_ALLTOALL,
                                          TORII_SCATTER,    TORII_GATHER,         TORII_SCAN};

Drawn draw(std::mt19937& random, int ranks) {
  Drawn drawn = {};
  drawn.collective = kChanging[random() % std::size(kChanging)];
  drawn.type = random() % 2 == 0 ? TORII_I32 : TORII_I64;
  drawn.op = random() % 4 == 0 ? TORII_MAX : TORII_SUM;
  const std::size_t power = std::size_t{1} << random() % 14;
  drawn.count = power + random() % power;
  drawn.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
  return drawn;
}

/// Element i of what `rank` has for `to`.
std::int64_t value(int rank, int to, std::size_t i, unsigned salt) {
  return (rank + 1) * 1000003LL + to * 7919LL + static_cast<std::int64_t>(i % 1009) + salt % 64;
}

template <class Element>
class Operand {
 public:
  Operand(const Drawn& drawn, int rank, int ranks, unsigned salt) : drawn_(drawn), rank_(rank), ranks_(ranks) {
    const auto blocks = static_cast<std::size_t>(ranks);
    gives_all_ = drawn.collective == TORII_ALLTOALL || drawn.collective == TORII_REDUCE_SCATTER ||
                 drawn.collective == TORII_SCATTER;
    const bool gets_all =
        drawn.collective == TORII_ALLTOALL || drawn.collective == TORII_ALL_GATHER || drawn.collective == TORII_GATHER;
    input.resize(drawn.count * (gives_all_ ? blocks : 1));
    result.assign(drawn.count * (gets_all ? blocks : 1), Element{-1});
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = given(rank, i, salt);
    if (drawn.collective == TORII_BROADCAST && rank == drawn.root) result = input;
    salt_ = salt;
  }
  torii_call call() {
    const bool is_broadcast = drawn_.collective == TORII_BROADCAST;
    return make_call(drawn_.collective, is_broadcast ? nullptr : input.data(), result.data(), drawn_.count, drawn_.type,
                     drawn_.op, drawn_.root);
  }
  /// Elements of the result that are wrong.
  std::size_t wrong() const {
    const bool at_root_only = drawn_.collective == TORII_REDUCE || drawn_.collective == TORII_GATHER;
    if (at_root_only && rank_ != drawn_.root) return 0;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < result.size(); ++i) wrong += result[i] != expected(i) ? 1 : 0;
    return wrong;
  }

 private:
  Element given(int rank, std::size_t i, unsigned salt) const {
    const std::size_t to = gives_all_ ? i / drawn_.count : 0;
    return static_cast<Element>(value(rank, static_cast<int>(to), i % drawn_.count, salt));
  }
  Element folded(std::size_t i, int last) const {
    Element sum = given(0, i, salt_);
    for (int rank = 1; rank <= last; ++rank) {
      const Element next = given(rank, i, salt_);
      sum = drawn_.op == TORII_MAX ? std::max(sum, next) : static_cast<Element>(sum + next);
    }
    return sum;
  }
  Element expected(std::size_t i) const {
    const std::size_t own = static_cast<std::size_t>(rank_) * drawn_.count;
    switch (drawn_.collective) {
      case TORII_BROADCAST:
        return given(drawn_.root, i, salt_);
      case TORII_ALL_GATHER:
      case TORII_GATHER:
        return given(static_cast<int>(i / drawn_.count), i % drawn_.count, salt_);
      case TORII_ALLTOALL:
        return given(static_cast<int>(i / drawn_.count), own + i % drawn_.count, salt_);
      case TORII_SCATTER:
        return given(drawn_.root, own + i, salt_);
      case TORII_REDUCE_SCATTER:
        return folded(own + i, ranks_ - 1);
      case TORII_SCAN:
        return folded(i, rank_);
      default:
        return folded(i, ranks_ - 1);
    }
  }

  Drawn drawn_;
  int rank_, ranks_;
  unsigned salt_ = 0;
  bool gives_all_ = false;

 public:
  std::vector<Element> input, result;
};

/// A call in flight.
template <class Element>
struct Started {
  Operand<Element> operand;
  torii_request* request = nullptr;
};

template <class Element>
void end(Started<Element>& started) {
  ASSERT_EQ(torii_wait(&started.request), TORII_OK) << torii_last_error();
  ASSERT_EQ(started.operand.wrong(), 0U);
}

/// `ahead`: so many calls this rank has in flight at the most; 0: all calls block.
void run_calls(torii_team* team, unsigned seed, int calls, std::size_t ahead) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<Started<std::int64_t>>> wide;
  for (int i = 0; i < calls; ++i) {
    const Drawn drawn = draw(random, ranks);
    if (drawn.type == TORII_I32) {
      Operand<std::int32_t> operand(drawn, rank, ranks, seed + static_cast<unsigned>(i));
      const torii_call call = operand.call();
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      ASSERT_EQ(operand.wrong(), 0U) << "call " << i;
      continue;
    }
    auto started = std::make_unique<Started<std::int64_t>>(
        Started<std::int64_t>{Operand<std::int64_t>(drawn, rank, ranks, seed + static_cast<unsigned>(i))});
    const torii_call call = started->operand.call();
    if (ahead == 0) {
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      ASSERT_EQ(started->operand.wrong(), 0U) << "call " << i;
      continue;
    }
    ASSERT_EQ(torii_start(team, &call, &started->request), TORII_OK) << torii_last_error();
    wide.push_back(std::move(started));
    if (wide.size() < ahead) continue;
    end(*wide.front());
    if (testing::Test::HasFatalFailure()) return;
    wide.erase(wide.begin());
  }
  for (auto& started : wide) end(*started);
}

TEST(CallClasses, CallsThatChangeAreRight) {
  std::vector<std::vector<int>> places = {{0, 0}, {0, 0, 0}, {0, 0, 0, 0}};
#if defined(TORII_TEST_LIBFABRIC)
  places.insert(places.end(), {{0, 1}, {0, 0, 1}});
#endif
  for (const std::vector<int>& nodes : places) {
    ThreadTeam options;
    options.ranks = static_cast<int>(nodes.size());
    if (nodes.back() != 0) options.nodes = nodes;
    options.settings = "ARENA=1G\nTIMEOUT=30";
    run_as_threads(options, [](torii_context* context, torii_team* team) {
      for (const unsigned seed : {1U, 2U}) run_calls(team, seed, 150, 0);
      // Every rank starts ahead as far as it likes.
      run_calls(team, 3, 200, 1 + static_cast<std::size_t>(torii_team_rank(team)) * 3);
      run_calls(team, 4, 200, torii_team_rank(team) == 0 ? 0 : 8);
      torii_counters counters = {};
      counters.size = sizeof(counters);
      ASSERT_EQ(torii_context_counters(context, &counters), TORII_OK);
      EXPECT_LT(counters.call_plans, 400U) << "700 calls";
    });
  }
}

/// Prepared operations of one class, restarted in any order, with other calls of the class between them.
TEST(CallClasses, PreparedOperationsOfAClassStayTheirOwn) {
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=1G\nTIMEOUT=30";
  run_as_threads(options, [](torii_context*, torii_team* team) {
    constexpr std::size_t kCounts[] = {100, 117, 150};
    std::vector<std::int64_t> inputs[3], results[3];
    torii_request* requests[3] = {};
    for (int i = 0; i < 3; ++i) {
      inputs[i].assign(kCounts[i], i + torii_team_rank(team));
      results[i].resize(kCounts[i]);
      const torii_call call = make_call(TORII_ALLREDUCE, inputs[i].data(), results[i].data(), kCounts[i], TORII_I64);
      ASSERT_EQ(torii_prepare(team, &call, &requests[i]), TORII_OK) << torii_last_error();
    }
    std::mt19937 random(5);
    for (int round = 0; round < 60; ++round) {
      const int first = static_cast<int>(random() % 3);
      const int second = (first + 1) % 3;
      for (const int i : {first, second}) {
        std::fill(results[i].begin(), results[i].end(), -1);
        ASSERT_EQ(torii_restart(requests[i]), TORII_OK) << torii_last_error();
      }
      std::vector<std::int64_t> vector(90 + random() % 80, 1), sum(vector.size());
      ASSERT_EQ(torii_allreduce(team, vector.data(), sum.data(), sum.size(), TORII_I64, TORII_SUM), TORII_OK);
      ASSERT_EQ(sum, std::vector<std::int64_t>(sum.size(), 3));
      for (const int i : {second, first}) {
        ASSERT_EQ(torii_wait(&requests[i]), TORII_OK) << torii_last_error();
        ASSERT_EQ(results[i], std::vector<std::int64_t>(kCounts[i], 3 * i + 3)) << round;
      }
    }
    for (torii_request*& request : requests) ASSERT_EQ(torii_request_free(&request), TORII_OK);
  });
}

}  // namespace
}  // namespace torii::tests
