// SPDX-License-Identifier: Apache-2.0
// Teams that their members found by a number, without an exchange: right whoever comes first, again and again, many at
// once; and when one of them differs, refuses, or is late.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

using Members = std::vector<int>;

torii_team_options options_of(const Members& members, std::uint64_t number) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.members = members.data();
  options.member_count = static_cast<int>(members.size());
  options.channels = 1;
  options.number = number;
  return options;
}

/// Makes the team, or says why there is none.
torii_status found(torii_context* context, const torii_team_options& options, torii_team*& team, std::string& why) {
  team = nullptr;
  const torii_status status = torii_team_create(context, &options, &team);
  why = status == TORII_OK ? "" : last_error();
  EXPECT_EQ(team == nullptr, status != TORII_OK);
  return status;
}

torii_team* found(torii_context* context, const torii_team_options& options) {
  torii_team* team = nullptr;
  std::string why;
  EXPECT_EQ(found(context, options, team, why), TORII_OK) << why;
  return team;
}
torii_team* found(torii_context* context, const Members& members, std::uint64_t number) {
  return found(context, options_of(members, number));
}

/// The members are those, in their order.
void expect_members(torii_context* context, torii_team* team, const Members& members) {
  Members gathered(members.size());
  const Members input = {torii_context_rank(context)};
  EXPECT_EQ(torii_all_gather(team, input.data(), gathered.data(), 1, TORII_I32), TORII_OK) << last_error();
  EXPECT_EQ(gathered, members);
}

bool has(const Members& members, int rank) { return std::ranges::find(members, rank) != members.end(); }
void destroy(torii_team* team) { EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error(); }
void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

const ThreadTeam kFour = {4, "ARENA=2G\nTIMEOUT=20", "", "", "", 0};
const ThreadTeam kThree = {3, "ARENA=1G\nTIMEOUT=20", "", "", "", 0};
const ThreadTeam kTwo = {2, "ARENA=1G\nTIMEOUT=20", "", "", "", 0};
/// For members that are missed.
const ThreadTeam kThreeHasty = {3, "ARENA=1G\nTIMEOUT=1", "", "", "", 0};

TEST(Founding, TakesNoExchange) {
  const Members some = {3, 0, 2};  // not in the order of ranks; rank 1 takes no part
  run_as_threads(kFour, [&](torii_context* context, torii_team*) {
    if (!has(some, torii_context_rank(context))) return;
    for (int round = 0; round < 3; ++round) {
      torii_team* const team = found(context, some, 7);
      expect_members(context, team, some);
      std::vector<int> sums(5000), ones(5000, 1);
      EXPECT_EQ(torii_allreduce(team, ones.data(), sums.data(), sums.size(), TORII_I32, TORII_SUM), TORII_OK);
      EXPECT_EQ(sums, std::vector<int>(5000, 3));
      destroy(team);
    }
    destroy(found(context, {torii_context_rank(context)}, 7));
  });
}

/// Nobody waits between the founding of one team and that of the next, so a quick member is ahead: it has destroyed a
/// team of the number while a slow one still founds it.
TEST(Founding, OfANumberThatIsUsedAgainAtOnce) {
  const std::array<Members, 5> groups = {Members{0, 1, 2, 3}, Members{1, 0}, Members{3, 2, 1}, Members{2, 0},
                                         Members{0, 3}};
  const int rounds = is_full() ? 3000 : 300;
  run_as_threads(kFour, [&](torii_context* context, torii_team*) {
    for (int round = 0; round < rounds; ++round) {
      const Members& members = groups[static_cast<std::size_t>((round + round / 5) % 5)];
      if (!has(members, torii_context_rank(context))) continue;
      torii_team* const team = found(context, members, 1);
      EXPECT_EQ(torii_team_ranks(team), static_cast<int>(members.size()));
      if (round % 7 == 0) expect_members(context, team, members);
      destroy(team);
      if (::testing::Test::HasFailure()) break;
    }
  });
}

/// If numbers were mixed up, options would differ.
TEST(Founding, InManyThreadsAtTheSameTime) {
  const Members both = {1, 0};
  run_as_threads({2, "ARENA=8G\nTIMEOUT=30", "", "", "", 0}, [&](torii_context* context, torii_team*) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 20; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 5; ++round) {
          torii_team_options options = options_of(both, static_cast<std::uint64_t>(thread) + 1);
          options.segment_bytes = static_cast<std::size_t>(thread + 1) * 4096;
          torii_team* const team = found(context, options);
          if (team == nullptr) break;
          expect_members(context, team, both);
          destroy(team);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

/// One rank has a thread for each team, another founds them one after the other in any order.
TEST(Founding, OfDifferentNumbersInAnyOrder) {
  const Members both = {0, 1};
  constexpr std::uint64_t kTeams = 60;
  for (const int threaded : {0, 1}) {
    run_as_threads({2, "ARENA=8G\nTIMEOUT=30", "", "", "", 0}, [&](torii_context* context, torii_team*) {
      if (torii_context_rank(context) != threaded) {
        for (std::uint64_t number = kTeams; number > 0; --number) destroy(found(context, both, number));
        return;
      }
      std::vector<std::thread> threads;
      for (std::uint64_t number = 1; number <= kTeams; ++number) {
        threads.emplace_back([&, number] { destroy(found(context, both, number)); });
      }
      for (std::thread& thread : threads) thread.join();
    });
  }
}

TEST(Founding, LeavesRoomForTheNextTeams) {
  const int count = is_full() ? 4000 : 400;
  const Members both = {0, 1};
  run_as_threads({2, "ARENA=64G\nTIMEOUT=30", "", "", "", 0}, [&](torii_context* context, torii_team*) {
    std::vector<torii_team*> teams;
    for (int i = 0; i < count; ++i) teams.push_back(found(context, both, static_cast<std::uint64_t>(i) + 1));
    for (torii_team* const team : teams) {
      int sum = 0;
      const int one = 1;
      EXPECT_EQ(torii_allreduce(team, &one, &sum, 1, TORII_I32, TORII_SUM), TORII_OK) << last_error();
      EXPECT_EQ(sum, 2);
    }
    for (torii_team* const team : teams) destroy(team);
  });
}

TEST(Founding, NamesTheFirstDifferenceOnAll) {
  const Members all = {2, 0, 1};
  const Members others = {0, 2, 1};
  const Members fewer = {0, 2};
  run_as_threads(kThree, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    torii_team* team = nullptr;
    std::string why;
    torii_team_options options = options_of(all, 5);
    options.algorithm = rank == 2 ? "ring" : "node";
    EXPECT_EQ(found(context, options, team, why), TORII_MISMATCH) << why;
    EXPECT_EQ(why,
              "rank 0 differs from rank 1: 'team algorithm=ring' against 'team algorithm=node' (settings, topology and "
              "tune data must be equal on all ranks)");
    EXPECT_EQ(found(context, options_of(rank == 2 ? others : all, 5), team, why), TORII_MISMATCH) << why;
    EXPECT_EQ(why,
              "rank 2 of the context names 0 as member 0 of the team of number 5, another rank names 2; all must name "
              "the same, in one order");
    EXPECT_EQ(found(context, options_of(rank == 2 ? fewer : all, 5), team, why), TORII_MISMATCH) << why;
    EXPECT_EQ(why,
              "rank 2 of the context names 2 members of the team of number 5, another rank names 3; all must name the "
              "same, in one order");
    destroy(found(context, all, 5));
  });
}

/// The opener of the founding is rank 0; each rank refuses once.
TEST(Founding, FailsOnAllForTheReasonOfOne) {
  const Members all = {2, 0, 1};
  run_as_threads(kThree, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    for (const int refusing : {0, 1, 2}) {
      torii_team_options options = options_of(all, 6);
      if (rank == refusing) options.channels = 9;
      if (rank == (refusing + 1) % 3) sleep_ms(20);
      torii_team* team = nullptr;
      std::string why;
      EXPECT_EQ(found(context, options, team, why), TORII_INVALID_ARGUMENT) << why;
      const auto member = std::ranges::find(all, refusing) - all.begin();
      EXPECT_EQ(why, "rank " + std::to_string(member) +
                         ": channels is 9; it must be from 1 to 8, or 0 for the setting CHANNELS");
      options = options_of(all, 6);
      if (rank == refusing) options.timeout_seconds = -1;
      EXPECT_EQ(found(context, options, team, why), TORII_INVALID_ARGUMENT) << why;
      EXPECT_NE(why.find("rank " + std::to_string(member) + ": "), std::string::npos) << why;
      options = options_of(all, 6);
      if (rank == refusing) options.algorithm = "fastest";
      EXPECT_EQ(found(context, options, team, why), TORII_MISMATCH) << why;
      options.algorithm = "fastest";
      EXPECT_EQ(found(context, options, team, why), TORII_INVALID_ARGUMENT) << why;
      EXPECT_NE(why.find("algorithm is 'fastest'"), std::string::npos) << why;
    }
    destroy(found(context, all, 6));
  });
}

TEST(Founding, NamesWhoHasNotCome) {
  const Members all = {2, 0, 1};
  std::barrier<> phase(3);
  for (const int absent : {1, 0}) {
    run_as_threads(kThreeHasty, [&](torii_context* context, torii_team*) {
      const int rank = torii_context_rank(context);
      const auto member = std::ranges::find(all, absent) - all.begin();
      torii_team* team = nullptr;
      std::string why;
      if (rank != absent) {
        EXPECT_EQ(found(context, options_of(all, 8), team, why), TORII_TIMEOUT) << why;
        EXPECT_NE(why.find("no team of number 8 for 1000 ms; not come, or not with the same members: rank " +
                           std::to_string(member) + " on host "),
                  std::string::npos)
            << why;
      }
      phase.arrive_and_wait();
      // Nobody has waited for the late one, so its call belongs to the others' next one.
      destroy(found(context, all, 8));
    });
  }
}

/// A member may be late to a founding that has failed already: it gets the reason, and nobody waits for it.
TEST(Founding, TellsWhoIsLateWhyItHasFailed) {
  const Members all = {0, 1, 2};
  std::barrier<> phase(3);
  run_as_threads(kThree, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    torii_team_options options = options_of(all, 9);
    if (rank == 1) options.channels = -1;
    if (rank == 2) phase.arrive_and_wait();
    torii_team* team = nullptr;
    std::string why;
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(found(context, options, team, why), TORII_INVALID_ARGUMENT) << why;
    EXPECT_EQ(why, "rank 1: channels is -1; it must be from 1 to 8, or 0 for the setting CHANNELS");
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
    if (rank != 2) phase.arrive_and_wait();
    destroy(found(context, all, 9));
  });
}

/// A call with other members is not one that the others have made before, and failed.
TEST(Founding, PassesOverCallsThatARankHasSkipped) {
  const Members all = {0, 1, 2};
  const Members two = {1, 0};
  std::barrier<> phase(3);
  run_as_threads(kThree, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    torii_team_options options = options_of(all, 5);
    options.channels = 9;
    torii_team* team = nullptr;
    std::string why;
    for (int i = 0; i < 3 && rank == 0; ++i) EXPECT_EQ(found(context, options, team, why), TORII_INVALID_ARGUMENT);
    phase.arrive_and_wait();
    if (rank != 2) destroy(found(context, two, 5));
    phase.arrive_and_wait();
    if (rank == 2) {
      options.channels = 1;
      for (int i = 0; i < 3; ++i) EXPECT_EQ(found(context, options, team, why), TORII_INVALID_ARGUMENT);
      EXPECT_EQ(why, "rank 0: channels is 9; it must be from 1 to 8, or 0 for the setting CHANNELS");
    }
    destroy(found(context, all, 5));
  });
}

/// Failed foundings wait for a member that never comes, until the opener's deadline where it has no more entries. For
/// another one, which is only slower than the opener, they wait as well.
TEST(Founding, GoesOnAfterManyThatFailed) {
  const Members all = {0, 1, 2};
  const Members two = {0, 1};
  std::barrier<> phase(3);
  run_as_threads(kThree, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    if (rank == 1) sleep_ms(50);
    for (std::uint64_t round = 1; round <= 72 && rank != 2; ++round) {
      torii_team_options options = options_of(all, round);
      if (rank == 0) options.channels = 9;
      options.timeout_seconds = rank == 0 ? 1 : 20;
      torii_team* team = nullptr;
      std::string why;
      EXPECT_EQ(found(context, options, team, why), TORII_INVALID_ARGUMENT) << why;
    }
    phase.arrive_and_wait();
    if (rank != 2) destroy(found(context, two, 100));
    destroy(found(context, all, 101));
  });
}

TEST(Founding, NeedsAnExchangeBetweenNodes) {
  ThreadTeam two = kTwo;
  two.nodes = kPlacesOfTwo.back();
  if (two.nodes.empty()) GTEST_SKIP() << "this build has no fabric";
  std::barrier<> met(2);
  struct Place {
    std::barrier<>* met;
    std::array<std::vector<char>, 2>* blobs;
    std::size_t rank;
  };
  std::array<std::vector<char>, 2> blobs;
  run_as_threads(two, [&](torii_context* context, torii_team*) {
    const int rank = torii_context_rank(context);
    const Members both = {0, 1};
    torii_team* team = nullptr;
    std::string why;
    torii_team_options options = options_of(both, 3);
    EXPECT_EQ(found(context, options, team, why), TORII_UNSUPPORTED);
    EXPECT_EQ(why, "number is set and exchange is NULL, but the members are on several nodes; set exchange too");
    Place place = {&met, &blobs, static_cast<std::size_t>(rank)};
    options.exchange = [](const void* mine, void* all, std::size_t bytes, void* data) {
      const Place& at = *static_cast<const Place*>(data);
      const char* const from = static_cast<const char*>(mine);
      (*at.blobs)[at.rank].assign(from, from + bytes);
      at.met->arrive_and_wait();
      for (std::size_t other = 0; other < 2; ++other) {
        std::ranges::copy((*at.blobs)[other], static_cast<char*>(all) + other * bytes);
      }
      at.met->arrive_and_wait();
      return 0;
    };
    options.exchange_data = &place;
    team = found(context, options);
    expect_members(context, team, both);
    destroy(team);
  });
}

TEST(Founding, OnOneNodeLeavesTheExchangeAlone) {
  run_as_threads(kTwo, [&](torii_context* context, torii_team*) {
    const Members both = {0, 1};
    torii_team_options options = options_of(both, 3);
    options.exchange = [](const void*, void*, std::size_t, void*) { return 7; };
    destroy(found(context, options));
    options.members = nullptr;
    torii_team* team = nullptr;
    std::string why;
    EXPECT_EQ(found(context, options, team, why), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(why, "number is set, but members is NULL; it is for teams of named members");
  });
}

std::atomic<int> turns = 0;
thread_local bool is_counted = false;

/// A member that waits for others moves what it has started on other teams, and calls the embedder's function.
TEST(Founding, MovesOtherOperationsAndTheEmbedder) {
  ThreadTeam two = kTwo;
  two.idle = [](void*) { turns += is_counted ? 1 : 0; };
  run_as_threads(two, [&](torii_context* context, torii_team* team) {
    const Members both = {0, 1};
    const int rank = torii_context_rank(context);
    constexpr std::size_t kCount = 300'000;  // many segments: both ranks have to move it
    std::vector<int> sums(kCount), ones(kCount, 1);
    torii_call call = {};
    call.size = sizeof(call);
    call.collective = TORII_ALLREDUCE;
    call.input = ones.data();
    call.result = sums.data();
    call.count = kCount;
    call.type = TORII_I32;
    call.op = TORII_SUM;
    torii_request* request = nullptr;
    ASSERT_EQ(torii_start(team, &call, &request), TORII_OK) << last_error();
    if (rank == 1) {
      EXPECT_EQ(torii_wait(&request), TORII_OK) << last_error();
      const int before = turns;
      const auto begun = std::chrono::steady_clock::now();
      while (turns < before + 50 && std::chrono::steady_clock::now() - begun < std::chrono::seconds(5)) sleep_ms(1);
      EXPECT_GE(turns, before + 50);
    }
    is_counted = rank == 0;
    torii_team* const other = found(context, both, 4);
    is_counted = false;
    if (rank == 0) {
      EXPECT_EQ(torii_wait(&request), TORII_OK) << last_error();
    }
    EXPECT_EQ(sums, std::vector<int>(kCount, 2));
    destroy(other);
  });
}

}  // namespace
}  // namespace torii::tests
