// SPDX-License-Identifier: Apache-2.0
// A context that takes over the memory of an earlier one: for some ranks first, for more of them later.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torii/torii.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/meeting.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kCount = 40'000;
const char* const kSettings = "ARENA=2G\nTIMEOUT=10";

/// The context of the ranks of a meeting; nullptr, and the reason in `reason`, if it is refused.
torii_context* join(Meeting& meeting, int rank, int ranks, torii_context* memory_of, const char* settings = kSettings,
                    torii_status expected = TORII_OK) {
  Meeting::Seat seat(meeting, rank);
  torii_context_options options = {};
  options.size = sizeof(options);
  options.rank = rank;
  options.ranks = ranks;
  options.exchange = Meeting::exchange;
  options.exchange_data = &seat;
  options.settings = settings;
  options.memory_of = memory_of;
  torii_context* context = nullptr;
  EXPECT_EQ(torii_context_create(&options, &context), expected) << torii_last_error();
  return context;
}

/// The team of all ranks of a context. The meeting stands in for the launcher.
torii_team* team_of(torii_context* context, Meeting& meeting) {
  Meeting::Seat seat(meeting, torii_context_rank(context));
  std::vector<int> all(static_cast<std::size_t>(torii_context_ranks(context)));
  std::iota(all.begin(), all.end(), 0);
  torii_team_options options = {};
  options.size = sizeof(options);
  options.members = all.data();
  options.member_count = static_cast<int>(all.size());
  options.exchange = Meeting::exchange;
  options.exchange_data = &seat;
  torii_team* team = nullptr;
  EXPECT_EQ(torii_team_create(context, &options, &team), TORII_OK) << torii_last_error();
  return team;
}

/// Waits for all: threads share one mapping of each arena, so no context goes before the teams of all have gone.
void meet(Meeting& meeting, int rank) {
  Meeting::Seat seat(meeting, rank);
  const char mine = 0;
  std::vector<char> all(16);
  EXPECT_EQ(Meeting::exchange(&mine, all.data(), 1, &seat), 0);
}

void run_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(body, rank);
}

/// Sums the vector over all ranks, twice: whole, and the first few elements.
void expect_sums(torii_team* team, std::int64_t* input, std::int64_t* result) {
  const std::int64_t ranks = torii_team_ranks(team);
  for (const std::size_t count : {kCount, std::size_t{3}}) {
    for (std::size_t i = 0; i < count; ++i) input[i] = static_cast<std::int64_t>(i) + torii_team_rank(team);
    ASSERT_EQ(torii_allreduce(team, input, result, count, TORII_I64, TORII_SUM), TORII_OK) << torii_last_error();
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(result[i], ranks * static_cast<std::int64_t>(i) + ranks * (ranks - 1) / 2) << i;
    }
  }
}

std::int64_t* numbers(void* address) { return static_cast<std::int64_t*>(address); }

torii_status found(torii_context* context, int channels, torii_team** team) {
  const int both[] = {0, 1};
  torii_team_options options = {};
  options.size = sizeof(options);
  options.members = both;
  options.member_count = 2;
  options.channels = channels;
  options.number = 5;
  return torii_team_create(context, &options, team);
}

/// A founding on the first context has failed, and waits for a rank that never comes.
TEST(Growing, ContextsHaveFoundingsOfTheirOwn) {
  Meeting meeting(2);
  run_threads(2, [&](int rank) {
    torii_context* const first = join(meeting, rank, 2, nullptr);
    ASSERT_NE(first, nullptr);
    torii_team* team = nullptr;
    const bool has_board = torii_context_nodes(first) == 1;
    if (rank == 0) {
      EXPECT_EQ(found(first, 9, &team), has_board ? TORII_INVALID_ARGUMENT : TORII_UNSUPPORTED);
    }
    torii_context* const second = join(meeting, rank, 2, first);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(torii_context_destroy(first), TORII_OK);
    meet(meeting, rank);
    // Rank 1 looks at the board before there is a new founding.
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(found(second, 1, &team), has_board ? TORII_OK : TORII_UNSUPPORTED) << torii_last_error();
    EXPECT_EQ(torii_team_destroy(team), TORII_OK);
    meet(meeting, rank);
    EXPECT_EQ(torii_context_destroy(second), TORII_OK);
  });
}

/// The board of a context is that of the next one. If each had its own, the arena would be full before the last.
TEST(Growing, ManyContextsHaveRoomForTheirBoards) {
  Meeting meeting(2);
  run_threads(2, [&](int rank) {
    torii_context* context = join(meeting, rank, 2, nullptr, "ARENA=256M\nTIMEOUT=10");
    ASSERT_NE(context, nullptr);
    const bool has_board = torii_context_nodes(context) == 1;
    for (int i = 0; i < (has_board ? 1000 : 1); ++i) {
      torii_team* team = nullptr;
      EXPECT_EQ(found(context, 1, &team), has_board ? TORII_OK : TORII_UNSUPPORTED) << torii_last_error();
      EXPECT_EQ(torii_team_destroy(team), TORII_OK);
      meet(meeting, rank);
      torii_context* const next = join(meeting, rank, 2, context, "TIMEOUT=10");
      ASSERT_NE(next, nullptr);
      EXPECT_EQ(torii_context_destroy(context), TORII_OK);
      context = next;
    }
    meet(meeting, rank);
    EXPECT_EQ(torii_context_destroy(context), TORII_OK);
  });
}

TEST(Growing, MemoryOfTheFirstContextIsThatOfTheNext) {
  Meeting two(2);
  Meeting three(3);
  Meeting again(3);
  run_threads(3, [&](int rank) {
    torii_context* first = nullptr;
    void* allocated = nullptr;
    void* adopted = nullptr;
    torii_region* region = nullptr;
    const std::size_t bytes = kCount * sizeof(std::int64_t);
    if (rank < 2) {
      first = join(two, rank, 2, nullptr);
      ASSERT_NE(first, nullptr);
      ASSERT_EQ(torii_allocate(first, bytes, &allocated), TORII_OK);
      adopted = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(adopted, MAP_FAILED);
      ASSERT_EQ(torii_register(first, adopted, bytes, TORII_REGISTER_ADOPT, &region), TORII_OK) << torii_last_error();
      torii_team* pair = team_of(first, two);
      ASSERT_NE(pair, nullptr);
      expect_sums(pair, numbers(allocated), numbers(adopted));
      EXPECT_EQ(torii_team_destroy(pair), TORII_OK);
    }
    torii_context* const whole = join(three, rank, 3, first);
    ASSERT_NE(whole, nullptr);
    EXPECT_EQ(torii_context_ranks(whole), 3);
    if (rank == 2) {
      ASSERT_EQ(torii_allocate(whole, bytes, &allocated), TORII_OK);
      ASSERT_EQ(torii_allocate(whole, bytes, &adopted), TORII_OK);
    }
    torii_team* const team = team_of(whole, three);
    ASSERT_NE(team, nullptr);
    expect_sums(team, numbers(allocated), numbers(adopted));
    // The first context goes, its memory stays.
    if (first != nullptr) {
      EXPECT_EQ(torii_context_destroy(first), TORII_OK) << torii_last_error();
    }
    expect_sums(team, numbers(adopted), numbers(allocated));
    // And once more, all three of them.
    torii_context* const third = join(again, rank, 3, whole);
    ASSERT_NE(third, nullptr);
    torii_team* const last = team_of(third, again);
    ASSERT_NE(last, nullptr);
    expect_sums(team, numbers(allocated), numbers(adopted));
    expect_sums(last, numbers(allocated), numbers(adopted));
    EXPECT_EQ(torii_team_destroy(team), TORII_OK);
    EXPECT_EQ(torii_context_destroy(whole), TORII_OK);
    expect_sums(last, numbers(allocated), numbers(adopted));
    EXPECT_EQ(torii_free(third, allocated), TORII_OK) << torii_last_error();
    if (rank == 2) {
      EXPECT_EQ(torii_free(third, adopted), TORII_OK);
    } else {
      EXPECT_EQ(torii_deregister(third, region), TORII_OK) << torii_last_error();
      EXPECT_EQ(munmap(adopted, bytes), 0);
    }
    EXPECT_EQ(torii_team_destroy(last), TORII_OK);
    meet(again, rank);
    EXPECT_EQ(torii_context_destroy(third), TORII_OK);
  });
}

TEST(Growing, ManyTimesTakesNoMoreMemory) {
  Meeting meeting(2);
  run_threads(2, [&](int rank) {
    torii_context* context = join(meeting, rank, 2, nullptr, "ARENA=256M\nTIMEOUT=10");
    void* memory = nullptr;
    ASSERT_EQ(torii_allocate(context, std::size_t{100} << 20, &memory), TORII_OK);
    // Staging of a team takes megabytes: without its return 256 MiB would not do for sixty teams.
    for (int round = 0; round < 60; ++round) {
      torii_team* team = team_of(context, meeting);
      ASSERT_NE(team, nullptr) << round;
      expect_sums(team, numbers(memory), numbers(memory) + kCount);
      EXPECT_EQ(torii_team_destroy(team), TORII_OK);
      torii_context* const next = join(meeting, rank, 2, context, "ARENA=256M\nTIMEOUT=10");
      ASSERT_NE(next, nullptr) << round;
      EXPECT_EQ(torii_context_destroy(context), TORII_OK);
      context = next;
    }
    EXPECT_EQ(torii_free(context, memory), TORII_OK);
    meet(meeting, rank);
    EXPECT_EQ(torii_context_destroy(context), TORII_OK);
  });
}

TEST(Growing, RefusesArenasOfDifferentSizes) {
  Meeting meeting(2);
  run_threads(2, [&](int rank) {
    Meeting own(1);
    torii_context* const first = join(own, 0, 1, nullptr, rank == 0 ? "ARENA=2G" : "ARENA=1G");
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(join(meeting, rank, 2, first, kSettings, TORII_MISMATCH), nullptr);
    EXPECT_NE(std::string(torii_last_error()).find("rank 1 brings one of 1073741824"), std::string::npos)
        << torii_last_error();
    EXPECT_EQ(torii_context_destroy(first), TORII_OK);
  });
}

TEST(Growing, ANewRankMayWishForALargerArenaButNotForASmallerOne) {
  for (const char* const wish : {"ARENA=4G", "ARENA=1G"}) {
    Meeting meeting(2);
    const torii_status expected = wish == std::string("ARENA=4G") ? TORII_OK : TORII_NO_RESOURCE;
    run_threads(2, [&](int rank) {
      Meeting own(1);
      torii_context* const first = rank == 0 ? join(own, 0, 1, nullptr, "ARENA=2G") : nullptr;
      torii_context* const both = join(meeting, rank, 2, first, wish, expected);
      if (expected != TORII_OK) {
        EXPECT_NE(std::string(torii_last_error()).find("rank 1 can map arenas of 1073741824"), std::string::npos)
            << torii_last_error();
      }
      EXPECT_EQ(torii_context_destroy(both), TORII_OK);
      EXPECT_EQ(torii_context_destroy(first), TORII_OK);
    });
  }
}

TEST(Growing, NumbersWithoutAMeetingPlaceAreRefused) {
  torii_context_options options = {};
  options.size = sizeof(options);
  options.ranks = 2;
  torii_context* context = nullptr;
  EXPECT_EQ(torii_context_create(&options, &context), TORII_INVALID_ARGUMENT);
  EXPECT_NE(std::string(torii_last_error()).find("nothing says where the ranks meet"), std::string::npos)
      << torii_last_error();
  options.rank = 3;
  EXPECT_EQ(torii_context_create(&options, &context), TORII_INVALID_ARGUMENT);
  EXPECT_NE(std::string(torii_last_error()).find("rank 3 of 2 ranks"), std::string::npos) << torii_last_error();
  options.rank = 0;
  options.ranks = 1;
  ASSERT_EQ(torii_context_create(&options, &context), TORII_OK) << torii_last_error();
  EXPECT_EQ(torii_context_ranks(context), 1);
  EXPECT_EQ(torii_context_destroy(context), TORII_OK);
}

}  // namespace
}  // namespace torii::tests
