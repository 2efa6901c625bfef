// SPDX-License-Identifier: Apache-2.0
// Sums over leaves as programs use them: in place, with nothing to sum, of small floats, again and again, in groups,
// from several threads, and longer than their team.
#include <torii/torii.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/conformance/leaf_calls.hpp"
#include "tests/conformance/many_callers.hpp"

namespace torii::tests {
namespace {

/// Where the result may be: in the place of the only leaf, in the middle of several, and of none.
TEST(Leaves, AreSummedInPlace) {
  for (const Counts& counts : {Counts{1, 1, 1}, Counts{3, 1, 0}, Counts{2, 2, 2}}) {
    run_as_threads(leaf_team(3), [&](torii_context*, torii_team* team) {
      const Leaves leaves(team, counts);
      const std::size_t all = counts[0] + counts[1] + counts[2];
      for (const std::size_t count : {std::size_t{3}, std::size_t{40'000}}) {
        Bytes input = leaves.vectors(TORII_F32, count, count);
        input.resize(std::max(input.size(), count * sizeof(float)));
        const std::size_t place = leaves.count() > 1 ? count / 2 * sizeof(float) : 0;
        std::byte* const result = input.data() + place;
        ASSERT_EQ(torii_allreduce_leaves(leaves.get(), leaves.count() == 0 ? nullptr : input.data(), 0, result, count,
                                         TORII_F32, TORII_SUM),
                  TORII_OK)
            << torii_last_error();
        EXPECT_TRUE(same_bytes(std::span<const std::byte>(result, count * sizeof(float)),
                               sum_of_leaves(TORII_F32, TORII_SUM, all, count)))
            << text_of(counts) << ", " << count;
      }
    });
  }
}

TEST(Leaves, MayHaveNoElements) {
  run_as_threads(leaf_team(3), [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {2, 0, 3});
    for (const torii_collective collective : {TORII_ALLREDUCE, TORII_REDUCE, TORII_REDUCE_SCATTER}) {
      torii_call call = make_call(collective, nullptr, nullptr, 0, TORII_F32);
      call.leaves = leaves.get();
      EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    }
  });
}

TEST(Leaves, OfSmallFloatsAreRoundedOnce) {
  for (const Counts& counts : {Counts{1, 1, 1}, Counts{4, 4, 4}, Counts{5, 0, 4}}) {
    run_as_threads(leaf_team(3), [&](torii_context*, torii_team* team) {
      const Leaves leaves(team, counts);
      const std::size_t all = counts[0] + counts[1] + counts[2];
      for (const torii_type type : {TORII_FLOAT8_E4M3, TORII_FLOAT8_E5M2}) {
        for (const Form& form : kForms) {
          const Bytes got = sum(team, leaves, make_call(TORII_ALLREDUCE, nullptr, nullptr, 1000, type), form);
          EXPECT_TRUE(same_bytes(got, sum_of_leaves(type, TORII_SUM, all, 1000)))
              << torii_type_name(type) << ", " << text_of(counts) << ", written " << form.is_written;
        }
      }
    });
  }
}

/// The team is a part of a lent one, so that it can be destroyed before its leaves.
TEST(Leaves, MayOutliveTheirTeam) {
  run_as_threads(leaf_team(2), [&](torii_context*, torii_team* team) {
    torii_team* part = nullptr;
    ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK) << torii_last_error();
    const Leaves leaves(part, {2, 1});
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
    ASSERT_EQ(torii_team_split(team, 0, 0, nullptr, &part), TORII_OK) << torii_last_error();
    const Leaves others(part, {2, 1});
    EXPECT_EQ(sum(part, others, make_call(TORII_ALLREDUCE, nullptr, nullptr, 10, TORII_F32), {}),
              sum_of_leaves(TORII_F32, TORII_SUM, 3, 10));
    std::vector<float> input(20);
    std::vector<float> result(10);
    torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), 10, TORII_F32);
    call.leaves = leaves.get();
    EXPECT_EQ(torii_run(part, &call), TORII_INVALID_ARGUMENT) << "the new team may be at the old one's address";
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
  });
}

TEST(Leaves, ServePersistentCallsGroupsAndCallsSideBySide) {
  run_as_threads(leaf_team(3), [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {5, 2, 4});
    const Leaves aligned(team, {4, 4, 4});
    constexpr std::size_t kCount = 3000;
    const Bytes input = leaves.vectors(TORII_F32, kCount, kCount);
    const Bytes others = aligned.vectors(TORII_BF16, kCount, kCount);
    Bytes result(kCount * sizeof(float));
    Bytes second(kCount * 2);
    const Bytes expected = sum_of_leaves(TORII_F32, TORII_SUM, 11, kCount);
    const Bytes expected_second = sum_of_leaves(TORII_BF16, TORII_SUM, 12, kCount);
    torii_call call = make_call(TORII_ALLREDUCE, input.data(), result.data(), kCount, TORII_F32);
    call.leaves = leaves.get();
    torii_call other = make_call(TORII_ALLREDUCE, others.data(), second.data(), kCount, TORII_BF16);
    other.leaves = aligned.get();
    torii_request* requests[2] = {};
    ASSERT_EQ(torii_prepare(team, &call, &requests[0]), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_prepare(team, &other, &requests[1]), TORII_OK) << torii_last_error();
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::fill(result.begin(), result.end(), std::byte{0});
      std::fill(second.begin(), second.end(), std::byte{0});
      ASSERT_EQ(torii_restart(requests[0]), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_restart(requests[1]), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_wait_all(requests, 2), TORII_OK) << torii_last_error();
      EXPECT_TRUE(same_bytes(result, expected));
      EXPECT_TRUE(same_bytes(second, expected_second));
    }
    for (torii_request*& request : requests) EXPECT_EQ(torii_request_free(&request), TORII_OK);
    std::fill(result.begin(), result.end(), std::byte{0});
    std::fill(second.begin(), second.end(), std::byte{0});
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_allreduce_leaves(aligned.get(), others.data(), 0, second.data(), kCount, TORII_BF16, TORII_SUM),
              TORII_OK);
    ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    EXPECT_TRUE(same_bytes(result, expected));
    EXPECT_TRUE(same_bytes(second, expected_second));
  });
}

/// One thread starts calls whose leaves a function writes, while another waits for those before.
TEST(Leaves, AreWrittenWhileOtherThreadsWait) {
  run_shared(leaf_team(3), [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {5, 2, 4});
    constexpr std::size_t kCalls = 20;
    constexpr std::size_t kCount = 5000;
    std::vector<Bytes> results(kCalls, Bytes(kCount * sizeof(float)));
    std::vector<Writing> writings(kCalls, Writing{TORII_F32, kCount, leaves.first()});
    std::vector<torii_request*> requests(kCalls);
    std::atomic<std::size_t> started = 0;
    std::thread waiter([&] {
      for (std::size_t i = 0; i < kCalls; ++i) {
        while (started <= i) std::this_thread::yield();
        EXPECT_EQ(torii_wait(&requests[i]), TORII_OK) << last_error();
      }
    });
    for (std::size_t i = 0; i < kCalls; ++i) {
      torii_call call = make_call(TORII_ALLREDUCE, nullptr, results[i].data(), kCount, TORII_F32);
      call.leaves = leaves.get();
      call.leaf = Writing::write;
      call.leaf_data = &writings[i];
      EXPECT_EQ(torii_start(team, &call, &requests[i]), TORII_OK) << last_error();
      started = i + 1;
    }
    waiter.join();
    for (const Bytes& result : results)
      EXPECT_TRUE(same_bytes(result, sum_of_leaves(TORII_F32, TORII_SUM, 11, kCount)));
  });
}

}  // namespace
}  // namespace torii::tests
