// SPDX-License-Identifier: Apache-2.0
// Sums over leaves have the same bits on any number of ranks, with any intervals, by all algorithms that serve them, in
// all forms of calls, and over all transports; one leaf moved changes them.
#include <torii/torii.h>

#include "collectives/selection/catalogue.hpp"
#include "tests/conformance/leaf_calls.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr torii_type kTypes[] = {TORII_F32, TORII_F64, TORII_BF16, TORII_F16, TORII_I32};

/// The thread sanitizer takes its time, and sees no other code with more ranks and intervals.
bool is_slow() {
#if defined(__SANITIZE_THREAD__)
  return !is_full();
#else
  return false;
#endif
}

/// The part of all elements that a rank has as its result.
std::span<const std::byte> part_of(const Bytes& all, torii_collective collective, int rank, std::size_t bytes) {
  if (collective != TORII_REDUCE_SCATTER) return all;
  return std::span(all).subspan(static_cast<std::size_t>(rank) * bytes, bytes);
}

/// Every type and collective over these intervals; returns the number of results compared.
int check(torii_team* team, const Counts& counts, std::size_t all, std::size_t count, Form form) {
  const Leaves leaves(team, counts);
  const int rank = torii_team_rank(team);
  int compared = 0;
  for (const torii_type type : kTypes) {
    for (const torii_collective collective : {TORII_ALLREDUCE, TORII_REDUCE, TORII_REDUCE_SCATTER}) {
      const int ranks = torii_team_ranks(team);
      const int root = static_cast<int>(count) % ranks;
      // About as many elements in all blocks of a reduce_scatter.
      const std::size_t blocks = collective == TORII_REDUCE_SCATTER ? static_cast<std::size_t>(ranks) : 1;
      const std::size_t own = (count + blocks - 1) / blocks;
      const Bytes got = sum(team, leaves, make_call(collective, nullptr, nullptr, own, type, TORII_SUM, root), form);
      if (got.empty()) continue;
      const Bytes expected = sum_of_leaves(type, TORII_SUM, all, own * blocks);
      EXPECT_TRUE(same_bytes(part_of(expected, collective, rank, got.size()), got))
          << torii_collective_name(collective) << " of " << count << ' ' << torii_type_name(type) << ", "
          << text_of(counts) << ", written " << form.is_written << ", started " << form.is_started;
      ++compared;
    }
  }
  return compared;
}

constexpr std::size_t kLeaves = 24;

struct Dealt {
  Counts counts;
  std::string how;  ///< what a failure says
};

/// Some intervals for a number of ranks: aligned ones, as torii_split deals them, and random ones.
std::vector<Dealt> intervals_for(int ranks, std::size_t leaves, std::uint64_t random_ones) {
  Counts even;
  for (int rank = 0; rank < ranks; ++rank) {
    std::size_t first = 0;
    std::size_t count = 0;
    EXPECT_EQ(torii_split(leaves, ranks, rank, &first, &count), TORII_OK);
    even.push_back(count);
  }
  std::vector<Dealt> all = {{even, "as torii_split deals them"}};
  for (const Seed& seed : seeds_of("conformance_leaves", random_ones)) {
    std::mt19937_64 random(seed.value);
    all.push_back({random_counts(random, ranks, leaves), ::testing::PrintToString(seed)});
  }
  return all;
}

void check_on(const ThreadTeam& options, std::size_t leaves, std::uint64_t random_ones,
              const std::vector<std::size_t>& counts) {
  const std::vector<Dealt> all = intervals_for(options.ranks, leaves, random_ones);
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    std::size_t turn = 0;
    int compared = 0;
    for (const Dealt& intervals : all) {
      SCOPED_TRACE(intervals.how);
      for (const std::size_t count : counts) {
        compared += check(team, intervals.counts, leaves, count, kForms[turn++ % std::size(kForms)]);
        if (::testing::Test::HasFailure()) return;
      }
    }
    EXPECT_GT(compared, 0);
  });
}

TEST(Leaves, HaveOneSumOnAnyNumberOfRanks) {
  const std::vector<int> some = is_slow() ? std::vector<int>{2, 3} : std::vector<int>{1, 2, 3, 4, 6, 8};
  std::vector<int> all;
  for (int ranks = 1; ranks <= 16; ++ranks) all.push_back(ranks);
  for (const int ranks : is_full() ? all : some) {
    check_on(leaf_team(ranks), kLeaves, is_full() ? 20 : is_slow() ? 1 : 3, {1, 1000});
    check_on(leaf_team(ranks), kLeaves, is_full() ? 20 : 1, {is_full() ? 1'000'000U : 30'011U});
    if (HasFailure()) return;
  }
}

/// Rank 1 gives 14 values to each other one, which take turns on 12 streams.
TEST(Leaves, MayBeMoreValuesThanStreams) {
  const Counts counts = {1, 254, 1};
  for (const char* const algorithm : {"node", "binomial"}) {
    ThreadTeam options = leaf_team(3);
    options.algorithm = algorithm;
    options.segment_bytes = 4096;
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{9000}}) {
        EXPECT_GT(check(team, counts, 256, count, {.may_be_refused = true}), 0);
        if (::testing::Test::HasFailure()) return;
      }
    });
  }
}

TEST(Leaves, MayBeFewerThanRanks) {
  check_on(leaf_team(5), 1, 1, {1, 3000});
  if (!is_slow()) check_on(leaf_team(7), 3, 2, {1, 3000});
}

class LeavesByAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(LeavesByAlgorithm, HaveTheSameSum) {
  for (const int ranks : {3, 4}) {
    ThreadTeam options = leaf_team(ranks);
    options.algorithm = GetParam();
    options.segment_bytes = 4096;
    const std::vector<Dealt> all = intervals_for(ranks, kLeaves, 2);
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      int compared = 0;
      for (const Dealt& intervals : all) {
        SCOPED_TRACE(intervals.how);
        for (const std::size_t count : {std::size_t{5}, std::size_t{9000}}) {
          compared += check(team, intervals.counts, kLeaves, count, {.may_be_refused = GetParam() != "node"});
        }
      }
      // binomial has no reduce_scatter, and only some ranks have the result of a reduce.
      const int allreduces = static_cast<int>(all.size() * 2 * std::size(kTypes));
      if (GetParam() == "binomial" || GetParam() == "node") {
        EXPECT_GE(compared, allreduces);
      }
    });
  }
}

/// In the short test those that serve any intervals, and two of those that serve aligned ones only.
std::vector<std::string> algorithms() {
  if (is_slow()) return {"node", "binomial"};
  if (!is_full()) return {"node", "binomial", "recursive_doubling", "rabenseifner"};
  std::vector<std::string> names;
  for (const Algorithm& algorithm : catalogue()) names.emplace_back(algorithm.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Rows, LeavesByAlgorithm, ::testing::ValuesIn(algorithms()),
                         [](const auto& row) { return row.param; });

class LeavesWith : public ::testing::TestWithParam<std::string> {};

TEST_P(LeavesWith, HaveTheSameSum) { check_on(leaf_team(4, GetParam()), kLeaves, is_slow() ? 1 : 2, {7, 20'011}); }

/// Each instruction set of this build and machine, and other settings that no bit depends on.
std::vector<std::string> all_settings() {
  if (is_slow()) return {"ENGINES=3\nSEGMENT=4K", "SLOTS=1\nWINDOW=1"};
  std::vector<std::string> all = {"ENGINES=1",          "ENGINES=3\nSEGMENT=4K", "SEGMENT=64K\nWAIT=sleep",
                                  "SLOTS=1\nWINDOW=1",  "DETERMINISM=canonical", "WIRE=f32",
                                  "NODE=one\nHELPERS=1"};
  for (const kernels::Isa isa : kernels::available_isas()) all.push_back("ISA=" + std::string(kernels::name(isa)));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Settings, LeavesWith, ::testing::ValuesIn(all_settings()));

class LeavesOver : public ::testing::TestWithParam<std::string> {};

TEST_P(LeavesOver, HaveTheSameSum) { check_on(leaf_team(3, "ENGINES=2\n" + GetParam()), kLeaves, 2, {7, 20'011}); }

std::vector<std::string> fabrics() {
  std::vector<std::string> all = {"TRANSPORT=shared_memory"};
#ifdef TORII_TEST_LIBFABRIC
  all.emplace_back("TRANSPORT=libfabric\nPROVIDER=tcp;ofi_rxm");
  all.emplace_back("TRANSPORT=libfabric\nPROVIDER=shm");
#endif
#ifdef TORII_TEST_UCX
  all.emplace_back("TRANSPORT=ucx\nPROVIDER=tcp");
  all.emplace_back("TRANSPORT=ucx\nPROVIDER=posix");
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fabrics, LeavesOver, ::testing::ValuesIn(fabrics()));

/// The handle of the call itself is of no use: the bits come from where the leaves are.
TEST(Leaves, GiveOtherBitsWhenOneIsMoved) {
  run_as_threads(leaf_team(3), [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {9, 8, 7});
    constexpr std::size_t kCount = 1000;
    Bytes input = leaves.vectors(TORII_F32, kCount, kCount);
    const std::size_t bytes = kCount * sizeof(float);
    if (torii_team_rank(team) == 1) {
      std::swap_ranges(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(bytes),
                       input.begin() + static_cast<std::ptrdiff_t>(bytes * 2));
    }
    Bytes result(bytes);
    ASSERT_EQ(torii_allreduce_leaves(leaves.get(), input.data(), 0, result.data(), kCount, TORII_F32, TORII_SUM),
              TORII_OK);
    EXPECT_FALSE(same_bytes(result, sum_of_leaves(TORII_F32, TORII_SUM, 24, kCount)));
  });
}

/// With a leaf for each rank the call is that of a canonical team without leaves.
TEST(Leaves, OfWhichEachRankHasOneAreOperandsOfRanks) {
  ThreadTeam options = leaf_team(4);
  options.determinism = "canonical";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {1, 1, 1, 1});
    for (const torii_type type : kTypes) {
      for (const std::size_t count : {std::size_t{3}, std::size_t{30'011}}) {
        const Bytes input = leaves.vectors(type, count, count);
        Bytes with(count * torii_type_bytes(type));
        Bytes without(with.size());
        for (int repeat = 0; repeat < 3; ++repeat) {
          ASSERT_EQ(torii_allreduce_leaves(leaves.get(), input.data(), 0, with.data(), count, type, TORII_SUM),
                    TORII_OK);
          ASSERT_EQ(torii_allreduce(team, input.data(), without.data(), count, type, TORII_SUM), TORII_OK);
          EXPECT_TRUE(same_bytes(with, without));
        }
        torii_call call = make_call(TORII_ALLREDUCE, input.data(), with.data(), count, type);
        const std::string plain = algorithm_of(team, call);
        call.leaves = leaves.get();
        EXPECT_EQ(algorithm_of(team, call), plain);
      }
    }
  });
}

TEST(Leaves, AreExpectedToHaveTheirSum) {
  run_as_threads(leaf_team(3), [&](torii_context*, torii_team* team) {
    const Leaves leaves(team, {5, 0, 4});
    for (const torii_type type : kTypes) {
      for (const torii_op op : {TORII_SUM, TORII_MIN, TORII_MAX, TORII_AVG, TORII_PROD}) {
        constexpr std::size_t kCount = 500;
        const torii_call call = make_call(TORII_ALLREDUCE, nullptr, nullptr, kCount, type, op);
        const Bytes got = sum(team, leaves, call, {});
        Bytes expected(got.size());
        torii_type of = type;
        torii_call asked = call;
        asked.leaves = leaves.get();
        asked.input = asked.result = expected.data();
        const auto operand = [](int leaf, std::size_t first, std::size_t count, void* out, void* data) {
          fill_leaf(*static_cast<const torii_type*>(data), static_cast<std::size_t>(leaf), first, count, out);
        };
        ASSERT_EQ(torii_expect(team, &asked, 0, kCount, operand, &of, expected.data()), TORII_OK) << torii_last_error();
        EXPECT_TRUE(same_bytes(expected, got)) << torii_type_name(type) << ' ' << torii_op_name(op);
      }
    }
  });
}

/// Affine maps x -> a x + b of integers: associative, and not commutative.
struct Affine {
  std::uint32_t a;
  std::uint32_t b;
};
void compose(const void* left, const void* right, void* out, std::size_t count, void*) {
  const auto* const first = static_cast<const Affine*>(left);
  const auto* const second = static_cast<const Affine*>(right);
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<Affine*>(out)[i] = {first[i].a * second[i].a, first[i].b * second[i].a + second[i].b};
  }
}

TEST(Leaves, OfAUserOperationStayInOrder) {
  for (const Counts& counts : {Counts{3, 1, 5}, Counts{4, 4, 4}, Counts{0, 9, 2}}) {
    run_as_threads(leaf_team(3), [&](torii_context*, torii_team* team) {
      const Leaves leaves(team, counts);
      const auto leaf_value = [](std::size_t leaf) {
        return Affine{static_cast<std::uint32_t>(2 * leaf + 3), static_cast<std::uint32_t>(leaf + 1)};
      };
      std::vector<Affine> input;
      for (std::size_t i = 0; i < leaves.count(); ++i) input.push_back(leaf_value(leaves.first() + i));
      Affine result = {};
      torii_call call = make_call(TORII_ALLREDUCE, input.data(), &result, 1, TORII_U8, TORII_USER);
      call.user = compose;
      call.user_bytes = sizeof(Affine);
      call.leaves = leaves.get();
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      Affine expected = leaf_value(0);
      for (std::size_t leaf = 1; leaf < counts[0] + counts[1] + counts[2]; ++leaf) {
        const Affine next = leaf_value(leaf);
        compose(&expected, &next, &expected, 1, nullptr);
      }
      EXPECT_EQ(result.a, expected.a);
      EXPECT_EQ(result.b, expected.b);
    });
  }
}

}  // namespace
}  // namespace torii::tests
