// SPDX-License-Identifier: Apache-2.0
// Sums over leaves have the same bits on any number of ranks, with any intervals, by all algorithms that serve them, in
// all forms of calls, and over all transports; one leaf moved changes them.
#include <torii/torii.h>

#include <cstdlib>
#include <cstring>

#include "collectives/selection/catalogue.hpp"
#include "tests/conformance/leaf_data.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

constexpr torii_type kTypes[] = {TORII_F32, TORII_F64, TORII_BF16, TORII_F16, TORII_I32};

bool is_full() { return std::getenv("TORII_TEST_FULL") != nullptr; }

/// The leaves that a rank writes when it is asked for them.
struct Writing {
  torii_type type;
  std::size_t elements;
  std::size_t next = 0;
  static int write(std::size_t leaf, void* out, void* data) {
    auto& self = *static_cast<Writing*>(data);
    EXPECT_EQ(leaf, self.next++) << "leaves are written in ascending order";
    fill_leaf(self.type, leaf, 0, self.elements, out);
    return 0;
  }
};

/// What is called: the same bits in each form.
struct Form {
  bool is_written = false;      ///< by a function; otherwise an array
  bool is_spread = false;       ///< the array has gaps
  bool is_started = false;      ///< torii_start; otherwise torii_run
  bool may_be_refused = false;  ///< by a forced algorithm that cannot serve the intervals
};
constexpr Form kForms[] = {{},
                           {.is_spread = true},
                           {.is_written = true},
                           {.is_spread = true, .is_started = true},
                           {.is_written = true, .is_started = true}};

torii_status run(torii_team* team, const torii_call& call, bool is_started) {
  if (!is_started) return torii_run(team, &call);
  torii_request* request = nullptr;
  const torii_status status = torii_start(team, &call, &request);
  return status == TORII_OK ? torii_wait(&request) : status;
}

/// The result of this rank; empty where it has none, or where no algorithm of the team serves the call.
Bytes sum(torii_team* team, const Leaves& leaves, torii_call call, Form form) {
  const auto ranks = static_cast<std::size_t>(torii_team_ranks(team));
  const std::size_t elements = call.collective == TORII_REDUCE_SCATTER ? call.count * ranks : call.count;
  const std::size_t stride = form.is_spread ? elements + 13 : elements;
  const Bytes input = leaves.vectors(call.type, elements, stride);
  Bytes result(call.count * torii_type_bytes(call.type));
  Writing writing = {call.type, elements, leaves.first()};
  call.leaves = leaves.get();
  call.input = form.is_written ? nullptr : input.data();
  call.result = result.data();
  call.leaf_stride = form.is_spread ? stride : 0;
  if (form.is_written) call.leaf = Writing::write;
  call.leaf_data = &writing;
  torii_choice choice = {};
  choice.size = sizeof(choice);
  const torii_status chosen = torii_choose(team, &call, &choice);
  if (chosen == TORII_UNSUPPORTED && form.may_be_refused) return {};
  EXPECT_EQ(chosen, TORII_OK) << torii_last_error();
  const Bytes before = input;
  EXPECT_EQ(run(team, call, form.is_started), TORII_OK) << torii_last_error();
  EXPECT_TRUE(same_bytes(before, input)) << "the leaves were written";
  if (form.is_written) {
    EXPECT_EQ(writing.next, leaves.first() + leaves.count());
  }
  if (call.collective == TORII_REDUCE && torii_team_rank(team) != call.root) return {};
  return result;
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

/// Some intervals for a number of ranks: aligned ones, as torii_split deals them, and random ones.
std::vector<Counts> intervals_for(int ranks, std::size_t leaves, int random_ones) {
  Counts even;
  for (int rank = 0; rank < ranks; ++rank) {
    std::size_t first = 0;
    std::size_t count = 0;
    EXPECT_EQ(torii_split(leaves, ranks, rank, &first, &count), TORII_OK);
    even.push_back(count);
  }
  std::vector<Counts> all = {even};
  std::mt19937_64 random(static_cast<std::uint64_t>(ranks) * 1000 + leaves);
  for (int i = 0; i < random_ones; ++i) all.push_back(random_counts(random, ranks, leaves));
  return all;
}

void check_on(const ThreadTeam& options, std::size_t leaves, int random_ones, const std::vector<std::size_t>& counts) {
  const std::vector<Counts> all = intervals_for(options.ranks, leaves, random_ones);
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    std::size_t turn = 0;
    int compared = 0;
    for (const Counts& intervals : all) {
      for (const std::size_t count : counts) {
        compared += check(team, intervals, leaves, count, kForms[turn++ % std::size(kForms)]);
        if (::testing::Test::HasFailure()) return;
      }
    }
    EXPECT_GT(compared, 0);
  });
}

ThreadTeam team_of(int ranks, const std::string& settings = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=30\n" + settings;
  return options;
}

TEST(Leaves, HaveOneSumOnAnyNumberOfRanks) {
  const std::vector<int> some = {1, 2, 3, 4, 6, 8};
  std::vector<int> all;
  for (int ranks = 1; ranks <= 16; ++ranks) all.push_back(ranks);
  for (const int ranks : is_full() ? all : some) {
    check_on(team_of(ranks), kLeaves, is_full() ? 20 : 3, {1, 1000});
    check_on(team_of(ranks), kLeaves, is_full() ? 2 : 1, {is_full() ? 1'000'000U : 30'011U});
    if (HasFailure()) return;
  }
}

TEST(Leaves, MayBeFewerThanRanks) {
  check_on(team_of(5), 1, 1, {1, 3000});
  check_on(team_of(7), 3, 2, {1, 3000});
}

class LeavesByAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(LeavesByAlgorithm, HaveTheSameSum) {
  for (const int ranks : {3, 4}) {
    ThreadTeam options = team_of(ranks);
    options.algorithm = GetParam();
    options.segment_bytes = 4096;
    const std::vector<Counts> all = intervals_for(ranks, kLeaves, 2);
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      for (const Counts& intervals : all) {
        for (const std::size_t count : {std::size_t{5}, std::size_t{9000}}) {
          (void)check(team, intervals, kLeaves, count, {.may_be_refused = GetParam() != "node"});
        }
      }
    });
  }
}

std::vector<std::string> algorithms() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : catalogue()) names.emplace_back(algorithm.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Rows, LeavesByAlgorithm, ::testing::ValuesIn(algorithms()),
                         [](const auto& row) { return row.param; });

class LeavesWith : public ::testing::TestWithParam<std::string> {};

TEST_P(LeavesWith, HaveTheSameSum) { check_on(team_of(4, GetParam()), kLeaves, 2, {7, 20'011}); }

INSTANTIATE_TEST_SUITE_P(Settings, LeavesWith,
                         ::testing::Values("ENGINES=1\nISA=reference", "ENGINES=3\nISA=sse4\nSEGMENT=4K", "ISA=avx2",
                                           "SEGMENT=64K\nWAIT=sleep", "SLOTS=1\nWINDOW=1", "DETERMINISM=canonical",
                                           "WIRE=f32", "NODE=one\nHELPERS=1"));

class LeavesOver : public ::testing::TestWithParam<std::string> {};

TEST_P(LeavesOver, HaveTheSameSum) { check_on(team_of(3, "ENGINES=2\n" + GetParam()), kLeaves, 2, {7, 20'011}); }

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
  run_as_threads(team_of(3), [&](torii_context*, torii_team* team) {
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
  ThreadTeam options = team_of(4);
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
  run_as_threads(team_of(3), [&](torii_context*, torii_team* team) {
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
    run_as_threads(team_of(3), [&](torii_context*, torii_team* team) {
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

TEST(Leaves, ServePersistentCallsGroupsAndCallsSideBySide) {
  run_as_threads(team_of(3), [&](torii_context*, torii_team* team) {
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

}  // namespace
}  // namespace torii::tests
