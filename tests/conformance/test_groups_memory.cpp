// SPDX-License-Identifier: Apache-2.0
// Each allocation of a group fails in turn, on one rank: the group ends on all ranks, and nobody waits for the
// deadline. And calls that allocate nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace {

/// Allocations of the calling thread until one fails; 0: none does.
thread_local int allocations_left = 0;
thread_local int allocations_made = 0;

bool fails_now() {
  ++allocations_made;
  return allocations_left != 0 && --allocations_left == 0;
}

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = fails_now() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return fails_now() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept { return operator new(bytes, nothrow); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace torii::tests {
namespace {

/// Two calls that run as one, a long one, and one of unequal blocks.
torii_status make_group(torii_team* team, std::vector<int>& data) {
  const std::size_t counts[2] = {3, 2};
  const std::size_t own = counts[torii_team_rank(team)];
  const torii_status begun = torii_group_begin(team);
  if (begun != TORII_OK) {
    (void)torii_refuse(team, "no group could be begun");
    return begun;
  }
  (void)torii_allreduce(team, &data[0], &data[0], 5, TORII_I32, TORII_SUM);
  (void)torii_allreduce(team, &data[5], &data[5], 7, TORII_I32, TORII_SUM);
  (void)torii_allreduce(team, &data[100], &data[100], 10'000, TORII_I32, TORII_SUM);
  (void)torii_all_gatherv(team, &data[12], own, &data[20], counts, nullptr, TORII_I32);
  return torii_group_end(team);
}

TEST(GroupsMemory, OfWhichOneObjectCannotBeAllocated) {
  std::atomic<bool> is_over = false;
  int failures = 0;
  for (int number = 1; !is_over && number < 500; ++number) {
    std::atomic<int> status_of_one = TORII_OK;
    run_as_threads(team_of(2), [&](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      std::vector<int> data(10'100, rank + 1);
      // Plans and the executor's memory are there before: only the group's own allocations are left.
      for (int round = 0; round < 4; ++round) ASSERT_EQ(make_group(team, data), TORII_OK) << torii_last_error();
      data.assign(data.size(), rank + 1);
      if (rank == 1) allocations_left = number;
      const torii_status status = make_group(team, data);
      if (rank == 1) {
        is_over = allocations_left != 0;
        allocations_left = 0;
        status_of_one = status;
        EXPECT_TRUE(status == TORII_OK || status == TORII_NO_RESOURCE) << number << ": " << torii_last_error();
      } else {
        EXPECT_TRUE(status == TORII_OK || status == TORII_MISMATCH || status == TORII_NO_RESOURCE)
            << number << ": " << torii_status_name(status) << ", " << torii_last_error();
      }
      if (status == TORII_OK) {
        EXPECT_EQ(data[0] + data[11] + data[10'099], 9) << number;
        EXPECT_EQ(data[22] + 10 * data[23], 21) << number;
      }
    });
    if (status_of_one != TORII_OK) ++failures;
  }
  EXPECT_TRUE(is_over) << "a group makes more allocations than have been tried";
  EXPECT_GT(failures, 5) << "so many allocations there are at least";
}

/// A blocking call of unequal blocks whose plan is known. A rank that waits for long may allocate for its slow checks.
TEST(GroupsMemory, IsNotNeededForChangingBlocks) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const auto rank = static_cast<std::size_t>(torii_team_rank(team));
    std::vector<int> data(4000);
    int least = 1000;
    for (std::size_t round = 0; round < 200; ++round) {
      const std::size_t counts[2][2] = {{1, round % 50}, {3 * round, 2}};
      const std::size_t other[2] = {counts[0][rank], counts[1][rank]};
      const int before = allocations_made;
      ASSERT_EQ(torii_alltoallv(team, data.data(), counts[rank], nullptr, &data[2000], other, nullptr, TORII_I32),
                TORII_OK)
          << torii_last_error();
      ASSERT_EQ(torii_all_gatherv(team, data.data(), counts[1][rank], &data[2000], counts[1], nullptr, TORII_I32),
                TORII_OK);
      ASSERT_EQ(torii_gatherv(team, data.data(), counts[0][rank], &data[2000], counts[0], nullptr, TORII_I32, 1),
                TORII_OK);
      least = std::min(least, allocations_made - before);
    }
    EXPECT_EQ(least, 0);
  });
}

}  // namespace
}  // namespace torii::tests
