// SPDX-License-Identifier: Apache-2.0
// Groups of collectives: their results and bits, which calls run as one, and what may stand in a group.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/combine.hpp"
#include "tests/conformance/numbered_operation.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

struct Kind {
  torii_collective collective;
  torii_type type;
  torii_op op;
};

constexpr std::array kKinds = {
    Kind{TORII_ALLREDUCE, TORII_I32, TORII_SUM},      Kind{TORII_ALLREDUCE, TORII_I32, TORII_MAX},
    Kind{TORII_REDUCE, TORII_I64, TORII_SUM},         Kind{TORII_BROADCAST, TORII_F32, TORII_SUM},
    Kind{TORII_BROADCAST, TORII_U8, TORII_SUM},       Kind{TORII_ALL_GATHER, TORII_I16, TORII_SUM},
    Kind{TORII_REDUCE_SCATTER, TORII_I32, TORII_SUM}, Kind{TORII_ALLREDUCE, TORII_I32, TORII_AVG},
    Kind{TORII_SCAN, TORII_I32, TORII_SUM},           Kind{TORII_BARRIER, TORII_I32, TORII_SUM},
};

/// A call with operands of its own, which can be made again. Two calls in a row have the same root.
CellCall make(torii_team* team, const Kind& kind, std::size_t count, int number) {
  const int root = number / 2 % torii_team_ranks(team);
  return {team,
          {kind.collective, kind.type, kind.op, count, root, number % 2 == 1},
          {.seed = static_cast<std::uint64_t>(number)}};
}

std::vector<std::byte> result_of(const CellCall& call) { return {call.result().begin(), call.result().end()}; }

void make_all(torii_team* team, std::vector<CellCall>& calls) {
  for (const CellCall& one : calls) ASSERT_EQ(torii_run(team, &one.call()), TORII_OK) << torii_last_error();
}

void make_in_group(torii_team* team, std::vector<CellCall>& calls) {
  ASSERT_EQ(torii_group_begin(team), TORII_OK) << torii_last_error();
  make_all(team, calls);
  ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
}

void expect_same_alone(torii_team* team, std::vector<CellCall>& calls) {
  std::vector<std::vector<std::byte>> alone;
  for (CellCall& one : calls) one.fill();
  make_all(team, calls);
  for (const CellCall& one : calls) alone.push_back(result_of(one));
  for (int round = 0; round < 3; ++round) {
    for (CellCall& one : calls) one.fill();
    make_in_group(team, calls);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const torii_call& call = calls[i].call();
      EXPECT_TRUE(same_bytes(calls[i].result(), alone[i]))
          << "call " << i << ", " << torii_collective_name(call.collective) << " of " << call.count;
      EXPECT_TRUE(calls[i].keeps_input()) << "call " << i;
    }
  }
}

class Groups : public ::testing::TestWithParam<int> {};

/// Runs of neighbours that go together, of every kind and of lengths below, at and above the limits.
TEST_P(Groups, GiveWhatTheCallsGiveAlone) {
  run_as_threads(team_of(GetParam()), [](torii_context*, torii_team* team) {
    std::vector<CellCall> calls;
    int number = 0;
    for (const Kind& kind : kKinds) {
      for (const std::size_t count : {1UL, 0UL, 300UL, 7UL, 40'000UL, 5UL, 6UL}) {
        calls.push_back(make(team, kind, kind.collective == TORII_BARRIER ? 0 : count, number++));
      }
    }
    expect_same_alone(team, calls);
  });
}

/// More than one packed call holds.
TEST_P(Groups, TakeAnyNumberOfCalls) {
  run_as_threads(team_of(GetParam()), [](torii_context*, torii_team* team) {
    std::vector<CellCall> calls;
    for (int number = 0; number < 300; ++number) {
      calls.push_back(make(team, kKinds[0], 1000 + static_cast<std::size_t>(number), number));
    }
    expect_same_alone(team, calls);
  });
}

/// Of floats: with "run" the bits are those of one call of the sum of lengths, with "canonical" those of each call.
TEST_P(Groups, HaveTheBitsThatAreDocumented) {
  for (const char* const determinism : {"run", "canonical"}) {
    for (const torii_type type : {TORII_F32, TORII_BF16, TORII_F64}) {
      ThreadTeam options = team_of(GetParam());
      options.determinism = determinism;
      run_as_threads(options, [&](torii_context*, torii_team* team) {
        constexpr int kCalls = 9;
        std::vector<CellCall> calls;
        std::vector<std::byte> sums;
        for (int number = 0; number < kCalls; ++number) {
          const std::size_t count = 500 + 37 * static_cast<std::size_t>(number);
          calls.push_back(make(team, {TORII_ALLREDUCE, type, TORII_SUM}, count, number));
        }
        for (const CellCall& one : calls) {
          const auto* const input = static_cast<const std::byte*>(one.call().input);
          sums.insert(sums.end(), input, input + one.call().count * torii_type_bytes(type));
        }
        ASSERT_EQ(
            torii_allreduce(team, sums.data(), sums.data(), sums.size() / torii_type_bytes(type), type, TORII_SUM),
            TORII_OK);
        make_in_group(team, calls);
        std::vector<std::byte> grouped;
        for (const CellCall& one : calls) {
          grouped.insert(grouped.end(), one.result().begin(), one.result().end());
        }
        EXPECT_TRUE(same_bytes(grouped, sums)) << determinism;
        if (std::string(determinism) == "canonical") expect_same_alone(team, calls);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Groups, ::testing::Values(1, 2, 3, 5));

TEST(Group, IsOneCallWhereNeighboursAreShort) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    // A team that runs calls one by one would leave the plan of 100 elements behind; what runs shows in the records,
    // which a call of another rank is compared with.
    const int rank = torii_team_rank(team);
    std::vector<int> data(300, rank);
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(
          torii_allreduce(team, &data[100 * i], &data[100 * i], rank == 0 ? 100 : 100 + i % 2, TORII_I32, TORII_SUM),
          TORII_OK);
    }
    EXPECT_EQ(torii_group_end(team), TORII_MISMATCH);
    const std::string text = torii_last_error();
    EXPECT_NE(text.find("rank 0 calls allreduce of 300 x i32, op sum (calls of a group in one)"), std::string::npos)
        << text;
    EXPECT_NE(text.find("rank 1 calls allreduce of 301 x i32, op sum (calls of a group in one)"), std::string::npos)
        << text;
  });
}

TEST(Group, OfOtherLengthsWithTheSameSumIsAMismatch) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::vector<int> data(300, rank);
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    ASSERT_EQ(torii_allreduce(team, data.data(), data.data(), rank == 0 ? 100 : 200, TORII_I32, TORII_SUM), TORII_OK);
    ASSERT_EQ(torii_allreduce(team, data.data(), data.data(), rank == 0 ? 200 : 100, TORII_I32, TORII_SUM), TORII_OK);
    EXPECT_EQ(torii_group_end(team), TORII_MISMATCH);
    const std::string text = torii_last_error();
    EXPECT_NE(text.find("calls differ: rank 0 calls allreduce of 300 x i32"), std::string::npos) << text;
    EXPECT_NE(text.find(", with other counts"), std::string::npos) << text;
  });
}

TEST(Group, AndTheSameCallsWithoutOneAreAMismatch) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::vector<int> data(200, rank);
    if (rank == 0) {
      ASSERT_EQ(torii_group_begin(team), TORII_OK);
    }
    torii_status status = TORII_OK;
    for (int i = 0; i < 2 && status == TORII_OK; ++i) {
      status = torii_allreduce(team, &data[100], &data[100], 100, TORII_I32, TORII_SUM);
    }
    if (rank == 0) status = torii_group_end(team);
    EXPECT_EQ(status, TORII_MISMATCH);
    EXPECT_NE(std::string(torii_last_error()).find("(calls of a group in one)"), std::string::npos)
        << torii_last_error();
  });
}

TEST(Group, MayBeEmptyAndDoesNotNest) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_group_end(team), TORII_INVALID_ARGUMENT);
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    int value = torii_team_rank(team);
    ASSERT_EQ(torii_allreduce(team, &value, &value, 1, TORII_I32, TORII_SUM), TORII_OK);
    EXPECT_EQ(torii_group_begin(team), TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("groups do not nest"), std::string::npos) << torii_last_error();
    EXPECT_EQ(torii_team_destroy(team), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(value, torii_team_rank(team)) << "the call has only joined";
    ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    EXPECT_EQ(value, 1);
    ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
  });
}

TEST(Group, HasSendsAndReceivesInAnyOrderWithCollectives) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    const std::vector<int> sent(100'000, 5 + rank);
    std::vector<int> got(sent.size());
    int sum = rank + 1;
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    const auto move = [&](bool sends) {
      if (sends) {
        ASSERT_EQ(torii_send(team, sent.data(), sent.size(), TORII_I32, 1 - rank, 1), TORII_OK);
      } else {
        ASSERT_EQ(torii_recv(team, got.data(), got.size(), TORII_I32, 1 - rank, 1, nullptr), TORII_OK);
      }
    };
    move(rank == 0);
    ASSERT_EQ(torii_allreduce(team, &sum, &sum, 1, TORII_I32, TORII_SUM), TORII_OK);
    move(rank != 0);
    ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    EXPECT_EQ(sum, 3);
    EXPECT_EQ(got, std::vector<int>(sent.size(), 6 - rank));
  });
}

void add_bytes(const void* left, const void* right, void* out, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<std::uint8_t*>(out)[i] = static_cast<std::uint8_t>(static_cast<const std::uint8_t*>(left)[i] +
                                                                   static_cast<const std::uint8_t*>(right)[i]);
  }
}

TEST(Group, HasCallsOfAllOtherKinds) {
  run_as_threads(team_of(3), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    std::array<std::uint8_t, 2> bytes = {1, 2};
    std::array<float, 2> factors = {2, 3};
    std::array<float, 2> products = {1, 1};
    std::vector<int> all(6, -1);
    std::vector<int> own(3, rank);
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    for (std::size_t i = 0; i < 2; ++i) {
      torii_call call = make_call(TORII_ALLREDUCE, &bytes[i], &bytes[i], 1, TORII_U8, TORII_USER);
      call.user = add_bytes;
      call.user_bytes = 1;
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      call = make_call(TORII_ALLREDUCE, &products[i], &products[i], 1, TORII_F32, TORII_PREMUL_SUM);
      call.factor = &factors[i];
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
    }
    {
      // Read when the call joins: the array may be gone when the group ends.
      std::vector<std::size_t> counts = {3, 1, 2};
      ASSERT_EQ(torii_all_gatherv(team, own.data(), counts[static_cast<std::size_t>(rank)], all.data(), counts.data(),
                                  nullptr, TORII_I32),
                TORII_OK);
      counts.assign(3, 99);
    }
    ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    EXPECT_EQ(bytes, (std::array<std::uint8_t, 2>{3, 6}));
    EXPECT_EQ(products, (std::array<float, 2>{6, 9}));
    EXPECT_EQ(all, (std::vector<int>{0, 0, 0, 1, 2, 2}));
  });
}

struct Moved {
  std::vector<std::byte> bytes;
  static void load(void* to, std::size_t offset, std::size_t bytes, void* data) {
    std::memcpy(to, static_cast<Moved*>(data)->bytes.data() + offset, bytes);
  }
  static void store(const void* from, std::size_t offset, std::size_t bytes, void* data) {
    std::memcpy(static_cast<Moved*>(data)->bytes.data() + offset, from, bytes);
  }
};

/// Some ranks have functions in place of a vector, which must not change what runs together.
TEST(Group, BroadcastsWhereSomeRanksHaveFunctions) {
  run_as_threads(team_of(3), [](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (int root = 0; root < 3; ++root) {
      std::vector<Moved> moved(4);
      ASSERT_EQ(torii_group_begin(team), TORII_OK);
      for (std::size_t i = 0; i < moved.size(); ++i) {
        moved[i].bytes.assign(100 + i, static_cast<std::byte>(rank == root ? 10 + i : 0));
        torii_call call = make_call(TORII_BROADCAST, nullptr, moved[i].bytes.data(), 100 + i, TORII_U8);
        call.root = root;
        if ((i + static_cast<std::size_t>(rank)) % 2 == 0) {
          call.result = nullptr;
          call.load = Moved::load;
          call.store = Moved::store;
          call.access_data = &moved[i];
        }
        ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      }
      ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
      for (std::size_t i = 0; i < moved.size(); ++i) {
        EXPECT_EQ(moved[i].bytes, std::vector<std::byte>(100 + i, static_cast<std::byte>(10 + i)));
      }
    }
  });
}

/// Calls that start do not wait for the group.
TEST(Group, DoesNotHoldStartedCalls) {
  run_as_threads(team_of(2), [](torii_context*, torii_team* team) {
    int sum = 1;
    int started = 1;
    ASSERT_EQ(torii_group_begin(team), TORII_OK);
    ASSERT_EQ(torii_allreduce(team, &sum, &sum, 1, TORII_I32, TORII_SUM), TORII_OK);
    const torii_call call = make_call(TORII_ALLREDUCE, &started, &started, 1, TORII_I32);
    torii_request* request = nullptr;
    ASSERT_EQ(torii_start(team, &call, &request), TORII_OK);
    ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
    EXPECT_EQ(started, 2);
    EXPECT_EQ(sum, 1);
    ASSERT_EQ(torii_group_end(team), TORII_OK);
    EXPECT_EQ(sum, 2);
  });
}

}  // namespace
}  // namespace torii::tests
