// SPDX-License-Identifier: Apache-2.0
// Teams whose members the embedder names: made by these alone, in their order, refused with the value; and the function
// that a waiting caller calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// The exchange of some threads: each puts its blob to its place, then all read.
struct Meeting {
  explicit Meeting(int ranks) : barrier(ranks), blobs(static_cast<std::size_t>(ranks)) {}
  std::barrier<> barrier;
  std::vector<std::string> blobs;
  bool fails = false;
};
struct Seat {
  Meeting* meeting;
  std::size_t member;
};

int meet(const void* mine, void* all, std::size_t bytes, void* data) {
  const Seat& seat = *static_cast<const Seat*>(data);
  Meeting& meeting = *seat.meeting;
  meeting.blobs[seat.member].assign(static_cast<const char*>(mine), bytes);
  meeting.barrier.arrive_and_wait();
  auto* place = static_cast<char*>(all);
  for (const std::string& blob : meeting.blobs) {
    std::memcpy(place, blob.data(), bytes);
    place += bytes;
  }
  meeting.barrier.arrive_and_wait();
  return meeting.fails ? 7 : 0;
}

torii_team_options options_of(const std::vector<int>& members, Seat& seat) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.members = members.data();
  options.member_count = static_cast<int>(members.size());
  options.exchange = meet;
  options.exchange_data = &seat;
  return options;
}

const ThreadTeam kFour = {4, "ARENA=2G\nTIMEOUT=10", "", "", "", 0};

TEST(Members, OfNoPartGetNone) {
  run_as_threads(kFour, [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    torii_team* part = nullptr;
    ASSERT_EQ(torii_team_split(team, rank == 1 ? -1 : 0, 0, nullptr, &part), TORII_OK) << torii_last_error();
    EXPECT_EQ(part == nullptr, rank == 1);
    if (part != nullptr) {
      EXPECT_EQ(torii_team_ranks(part), 3);
    }
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
  });
}

TEST(Members, FormTeamsWithoutTheOthers) {
  const std::vector<int> some = {3, 0, 2};  // not in the order of ranks; rank 1 takes no part
  Meeting meeting(3);
  run_as_threads(kFour, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    const auto place = std::find(some.begin(), some.end(), rank);
    if (place == some.end()) return;
    const auto member = static_cast<std::size_t>(place - some.begin());
    Seat seat = {&meeting, member};
    torii_team_options options = options_of(some, seat);
    options.channels = 1;
    for (int round = 0; round < 3; ++round) {
      torii_team* team = nullptr;
      ASSERT_EQ(torii_team_create(context, &options, &team), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_team_rank(team), static_cast<int>(member));
      EXPECT_EQ(torii_team_ranks(team), 3);
      std::vector<int> gathered(3), input = {rank};
      EXPECT_EQ(torii_all_gather(team, input.data(), gathered.data(), 1, TORII_I32), TORII_OK);
      EXPECT_EQ(gathered, some);
      std::vector<int> sums(5000), ones(5000, 1);
      EXPECT_EQ(torii_allreduce(team, ones.data(), sums.data(), sums.size(), TORII_I32, TORII_SUM), TORII_OK);
      EXPECT_EQ(sums, std::vector<int>(5000, 3));
      EXPECT_EQ(torii_team_destroy(team), TORII_OK);
    }
  });
}

TEST(Members, MeetInSeveralThreadsAtTheSameTime) {
  constexpr int kThreads = 3;
  std::array<Meeting, kThreads> meetings = {Meeting(2), Meeting(2), Meeting(2)};
  run_as_threads({2, "ARENA=4G\nTIMEOUT=20", "", "", "", 0}, [&](torii_context* context, torii_team*) {
    const std::vector<int> both = {0, 1};
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        Seat seat = {&meetings[thread], static_cast<std::size_t>(torii_context_rank(context))};
        const torii_team_options options = options_of(both, seat);
        for (int round = 0; round < 10; ++round) {
          torii_team* team = nullptr;
          EXPECT_EQ(torii_team_create(context, &options, &team), TORII_OK) << torii_last_error();
          std::vector<int> sums(1000), ones(1000, 1);
          EXPECT_EQ(torii_allreduce(team, ones.data(), sums.data(), sums.size(), TORII_I32, TORII_SUM), TORII_OK);
          EXPECT_EQ(sums, std::vector<int>(1000, 2));
          EXPECT_EQ(torii_team_destroy(team), TORII_OK);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(Members, ThatDifferInOptionsAreNamed) {
  Meeting meeting(2);
  run_as_threads({2, "ARENA=1G\nTIMEOUT=10", "", "", "", 0}, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    const std::vector<int> both = {0, 1};
    Seat seat = {&meeting, static_cast<std::size_t>(rank)};
    torii_team_options options = options_of(both, seat);
    options.algorithm = rank == 0 ? "ring" : "node";
    torii_team* team = nullptr;
    EXPECT_EQ(torii_team_create(context, &options, &team), TORII_MISMATCH);
    EXPECT_EQ(team, nullptr);
    EXPECT_NE(std::string(torii_last_error()).find("'team algorithm=node' against 'team algorithm=ring'"),
              std::string::npos)
        << torii_last_error();
  });
}

TEST(Members, WithoutMemoryFailOnAll) {
  Meeting meeting(2);
  run_as_threads({2, "ARENA=256M\nTIMEOUT=10", "", "", "", 0}, [&](torii_context* context, torii_team*) {
    const std::vector<int> both = {0, 1};
    Seat seat = {&meeting, static_cast<std::size_t>(torii_context_rank(context))};
    const torii_team_options options = options_of(both, seat);
    // Rank 1 alone uses up its arena.
    std::vector<void*> filling;
    const auto fill = [&] {
      void* piece = nullptr;
      for (const int kib : {8 << 10, 64}) {
        while (torii_allocate(context, static_cast<std::size_t>(kib) << 10, &piece) == TORII_OK) {
          filling.push_back(piece);
        }
      }
    };
    const auto empty = [&] {
      for (void* const piece : filling) EXPECT_EQ(torii_free(context, piece), TORII_OK);
      filling.clear();
    };
    if (seat.member == 1) fill();
    torii_team* team = nullptr;
    EXPECT_EQ(torii_team_create(context, &options, &team), TORII_NO_RESOURCE);
    EXPECT_NE(std::string(torii_last_error()).find("rank 1: no memory for the team: "), std::string::npos)
        << torii_last_error();
    const std::size_t pieces = filling.size();
    empty();
    EXPECT_EQ(torii_team_create(context, &options, &team), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_team_destroy(team), TORII_OK);
    // What is kept for the next team does not stand in the way of an allocation.
    meeting.barrier.arrive_and_wait();
    if (seat.member == 1) fill();
    EXPECT_EQ(filling.size(), pieces);
    empty();
  });
}

// The memory of a gone team serves the next one: nothing that was sent in the old one may arrive in the new one, though
// both number their messages alike. Not even what its receiver has never asked for.
TEST(Members, HearNothingOfAnEarlierTeam) {
  Meeting meeting(2);
  run_as_threads({2, "ARENA=1G\nTIMEOUT=10", "", "", "", 0}, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    const std::vector<int> both = {0, 1};
    Seat seat = {&meeting, static_cast<std::size_t>(rank)};
    const torii_team_options options = options_of(both, seat);
    for (int round = 0; round < 6; ++round) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{100}}) {
        torii_team* team = nullptr;
        ASSERT_EQ(torii_team_create(context, &options, &team), TORII_OK) << torii_last_error();
        std::vector<int> value(count, rank == 0 ? 1000 * round : -1);
        // The first call of a plan on each of the two channels waits until all members have come to it.
        for (int channel = 0; channel < 2; ++channel) {
          ASSERT_EQ(torii_broadcast(team, value.data(), count, TORII_I32, 0), TORII_OK) << torii_last_error();
        }
        if (rank != 0) value.assign(count, -1);
        const bool is_unheard = round % 2 == 0;
        // The root of a short broadcast does not wait for its receivers.
        if (rank == 0 && !is_unheard) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (rank == 0 || !is_unheard) {
          EXPECT_EQ(torii_broadcast(team, value.data(), count, TORII_I32, 0), TORII_OK) << torii_last_error();
          EXPECT_EQ(value, std::vector<int>(count, 1000 * round));
        }
        EXPECT_EQ(torii_team_destroy(team), TORII_OK);
        meeting.barrier.arrive_and_wait();
      }
    }
  });
}

TEST(Members, AreRefusedWithTheirValue) {
  run_as_threads({1, "ARENA=256M", "", "", "", 0}, [](torii_context* context, torii_team*) {
    Meeting meeting(1);
    Seat seat = {&meeting, 0};
    struct Bad {
      std::vector<int> members;
      int count;
      const char* text;
    };
    const Bad all[] = {{{0}, 0, "member_count is 0; it must be from 1 to 1024"},
                       {{0, 1}, 2, "members go from 0 to 1; they must be ranks of the context, from 0 to 0"},
                       {{-1}, 1, "members go from -1 to -1"},
                       {{0, 0}, 2, "rank 0 is a member twice"}};
    torii_team* team = nullptr;
    for (const Bad& bad : all) {
      torii_team_options options = options_of(bad.members, seat);
      options.member_count = bad.count;
      EXPECT_EQ(torii_team_create(context, &options, &team), TORII_INVALID_ARGUMENT);
      EXPECT_NE(std::string(torii_last_error()).find(bad.text), std::string::npos) << torii_last_error();
    }
    const std::vector<int> own = {0};
    torii_team_options options = options_of(own, seat);
    options.exchange = nullptr;
    EXPECT_EQ(torii_team_create(context, &options, &team), TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("exchange is NULL"), std::string::npos) << torii_last_error();
    options.exchange = meet;
    for (const int channels : {-1, 9}) {
      options.channels = channels;
      EXPECT_EQ(torii_team_create(context, &options, &team), TORII_INVALID_ARGUMENT);
      const std::string wanted = "channels is " + std::to_string(channels) + "; it must be from 1 to 8, or 0";
      EXPECT_NE(std::string(torii_last_error()).find(wanted), std::string::npos) << torii_last_error();
    }
    options.channels = 0;
    meeting.fails = true;
    EXPECT_EQ(torii_team_create(context, &options, &team), TORII_TRANSPORT);
    EXPECT_NE(std::string(torii_last_error()).find("returned 7 on rank 0"), std::string::npos) << torii_last_error();
  });
  run_as_threads({2, "ARENA=256M", "", "", "", 0}, [](torii_context* context, torii_team*) {
    Meeting meeting(1);
    Seat seat = {&meeting, 0};
    const std::vector<int> other = {1 - torii_context_rank(context)};
    const torii_team_options options = options_of(other, seat);
    torii_team* team = nullptr;
    EXPECT_EQ(torii_team_create(context, &options, &team), TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("is not among the members"), std::string::npos);
  });
}

struct Pair {
  Meeting meeting{2};
  std::atomic<int> idled = 0;
};

TEST(Idle, IsCalledByWhoWaits) {
  Pair pair;
  std::barrier<> end(2);
  const auto body = [&](int rank) {
    Seat seat = {&pair.meeting, static_cast<std::size_t>(rank)};
    torii_context_options options = {};
    options.size = sizeof(options);
    options.rank = rank;
    options.ranks = 2;
    options.exchange = meet;
    options.exchange_data = &seat;
    options.settings = "ARENA=1G\nTIMEOUT=10";
    if (rank == 0) {
      options.idle = [](void* data) { ++static_cast<Pair*>(data)->idled; };
      options.idle_data = &pair;
    }
    torii_context* context = nullptr;
    ASSERT_EQ(torii_context_create(&options, &context), TORII_OK) << torii_last_error();
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_create(context, nullptr, &team), TORII_OK) << torii_last_error();
    // Rank 1 comes only when rank 0 has been idle in the call: spinning, yielding and asleep.
    while (rank == 1 && pair.idled < 50) std::this_thread::yield();
    EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    end.arrive_and_wait();
    EXPECT_EQ(torii_team_destroy(team), TORII_OK);
    end.arrive_and_wait();
    EXPECT_EQ(torii_context_destroy(context), TORII_OK);
  };
  std::thread other(body, 1);
  body(0);
  other.join();
  EXPECT_GE(pair.idled, 50);
}

}  // namespace
}  // namespace torii::tests
