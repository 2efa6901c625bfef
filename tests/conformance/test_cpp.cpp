// SPDX-License-Identifier: Apache-2.0
// The C++ interface in one program with the library's own classes, which have the same names: none takes the other's
// place. (examples/ have it over the library as users link it.)
#include <gtest/gtest.h>
#include <torii/torii.hpp>

#include <complex>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

struct Celsius {
  float degrees;
};

}  // namespace
}  // namespace torii::tests

template <>
struct torii::TypeOf<torii::tests::Celsius> : std::integral_constant<torii_type, TORII_F32> {};

namespace torii::tests {
namespace {

/// Rank r has 1000000 r, 1000000 r + 1, ...
std::vector<std::int64_t> vector_of(int rank, std::size_t count) {
  std::vector<std::int64_t> vector(count);
  std::iota(vector.begin(), vector.end(), std::int64_t{1'000'000} * rank);
  return vector;
}

/// The work of every rank on a team of all of them.
void as_team(int ranks, const std::function<void(Team& team)>& work) {
  ThreadTeam options;
  options.ranks = ranks;
  run_as_threads(options, [&](torii_context*, torii_team* whole) {
    torii_team* all = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, 0, nullptr, &all), TORII_OK) << torii_last_error();
    Team team(all);
    work(team);
  });
}

TEST(Cpp, AlltoallScatterAndGather) {
  as_team(3, [](Team& team) {
    constexpr std::size_t kBlock = 100;
    const auto rank = static_cast<std::size_t>(team.rank());
    const std::vector<std::int64_t> input = vector_of(team.rank(), 3 * kBlock);
    std::vector<std::int64_t> result(3 * kBlock);
    ASSERT_EQ(team.alltoall(input, std::span(result)), TORII_OK) << torii_last_error();
    for (std::size_t from = 0; from < 3; ++from) {
      EXPECT_EQ(result[from * kBlock], static_cast<std::int64_t>(1'000'000 * from + rank * kBlock));
      EXPECT_EQ(result[from * kBlock + kBlock - 1],
                static_cast<std::int64_t>(1'000'000 * from + rank * kBlock + kBlock - 1));
    }
    // Rank 1 scatters what it has, then gathers it again.
    std::vector<std::int64_t> own(kBlock);
    ASSERT_EQ(team.scatter(input, std::span(own), 1), TORII_OK) << torii_last_error();
    EXPECT_EQ(own[0], static_cast<std::int64_t>(1'000'000 + kBlock * rank));
    std::vector<std::int64_t> gathered(team.rank() == 1 ? 3 * kBlock : 0);
    ASSERT_EQ(team.gather(own, std::span(gathered), 1), TORII_OK) << torii_last_error();
    if (team.rank() == 1) {
      EXPECT_EQ(gathered, input);
    }
  });
}

TEST(Cpp, ScanExscanAndReduceScatter) {
  as_team(3, [](Team& team) {
    const int rank = team.rank();
    const std::vector<std::int64_t> input = {rank + 1, 10 * (rank + 1), 100};
    std::vector<std::int64_t> result(3, -1);
    ASSERT_EQ(team.scan(input, std::span(result)), TORII_OK) << torii_last_error();
    const std::int64_t sum = (rank + 1) * (rank + 2) / 2;
    EXPECT_EQ(result, (std::vector<std::int64_t>{sum, 10 * sum, 100 * (rank + 1)}));
    ASSERT_EQ(team.exscan(input, std::span(result), TORII_MAX), TORII_OK) << torii_last_error();
    if (rank != 0) {
      EXPECT_EQ(result, (std::vector<std::int64_t>{rank, 10 * rank, 100}));
    }
    const std::vector<std::size_t> counts = {1, 0, 2};
    std::vector<std::int64_t> own(counts[static_cast<std::size_t>(rank)]);
    ASSERT_EQ(team.reduce_scatter(input, std::span(own), counts), TORII_OK) << torii_last_error();
    if (rank == 0) {
      EXPECT_EQ(own[0], 6);
    } else if (rank == 2) {
      EXPECT_EQ(own, (std::vector<std::int64_t>{60, 300}));
    }
  });
}

struct Part {
  std::size_t first = 0;
  std::size_t count = 0;
};

Part part_of(std::size_t items, const Team& team) {
  Part part;
  EXPECT_EQ(torii_split(items, team.ranks(), team.rank(), &part.first, &part.count), TORII_OK);
  return part;
}

/// There and back over three dimensions; and an order that keeps the first dimension.
TEST(Cpp, TransposesArraysThereAndBack) {
  as_team(3, [](Team& team) {
    const std::vector<std::size_t> extents = {7, 10, 4};
    const std::vector<std::size_t> turned = {10, 4, 7};
    const Part mine = part_of(7, team);
    const Part wanted = part_of(10, team);
    std::vector<float> input(mine.count * 40);
    std::iota(input.begin(), input.end(), static_cast<float>(mine.first * 40));
    std::vector<float> there(wanted.count * 28);
    const std::vector<int> axes = {1, 2, 0};
    ASSERT_EQ(team.transpose(input, std::span(there), extents, axes), TORII_OK) << torii_last_error();
    for (std::size_t at = 0; at < there.size(); ++at) {
      const std::size_t i = at % 7;
      const std::size_t k = at / 7 % 4;
      const std::size_t j = wanted.first + at / 28;
      ASSERT_EQ(there[at], static_cast<float>((i * 10 + j) * 4 + k));
    }
    std::vector<float> back(input.size());
    const std::vector<int> home = {2, 0, 1};
    ASSERT_EQ(team.transpose(there, std::span(back), turned, home), TORII_OK) << torii_last_error();
    EXPECT_EQ(back, input);
    std::vector<float> local = input;
    const std::vector<int> keeps_first = {0, 2, 1};
    ASSERT_EQ(team.transpose(local, std::span(local), extents, keeps_first), TORII_OK) << torii_last_error();
    for (std::size_t at = 0; at < local.size(); ++at) {
      ASSERT_EQ(local[at], input[at / 40 * 40 + at % 10 * 4 + at / 10 % 4]);
    }
    EXPECT_EQ(team.transpose(input, std::span(there), extents, std::span(axes).first(2)), TORII_INVALID_ARGUMENT);
  });
}

TEST(Cpp, PermutesInPlace) {
  as_team(4, [](Team& team) {
    // Everything is turned round: item i of 40 goes to 39 - i.
    std::vector<double> data(10);
    std::vector<std::uint64_t> destinations(10);
    for (std::size_t i = 0; i < 10; ++i) {
      data[i] = static_cast<double>(static_cast<std::size_t>(team.rank()) * 10 + i);
      destinations[i] = 39 - (static_cast<std::uint64_t>(team.rank()) * 10 + i);
    }
    ASSERT_EQ(team.permute(data, destinations, std::span(data)), TORII_OK) << torii_last_error();
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(data[i], static_cast<double>(39 - (static_cast<std::size_t>(team.rank()) * 10 + i)));
    }
  });
}

static_assert(type_of<float>() == TORII_F32 && type_of<const double>() == TORII_F64);
static_assert(type_of<std::complex<float>>() == TORII_CF32 && type_of<std::complex<double>>() == TORII_CF64);
static_assert(sizeof(bool) == 1 && type_of<bool>() == TORII_BOOL);
static_assert(type_of<float8_e4m3>() == TORII_FLOAT8_E4M3 && type_of<float8_e5m2>() == TORII_FLOAT8_E5M2);
static_assert(type_of<float16>() == TORII_F16 && type_of<bfloat16>() == TORII_BF16);
static_assert(type_of<std::int8_t>() == TORII_I8 && type_of<std::uint64_t>() == TORII_U64);
static_assert(type_of<unsigned short>() == TORII_U16 && type_of<int>() == TORII_I32);
static_assert(type_of<Celsius>() == TORII_F32);

TEST(Cpp, AllGatherReduceScatterAndComplexNumbers) {
  as_team(3, [](Team& team) {
    using Number = std::complex<double>;
    const std::vector<Number> own = {Number(team.rank(), 1), Number(0, team.rank())};
    std::vector<Number> all(6);
    ASSERT_EQ(team.all_gather(own, std::span(all)), TORII_OK) << torii_last_error();
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(all[2 * static_cast<std::size_t>(rank)], Number(rank, 1));
    std::vector<Number> sum(2);
    ASSERT_EQ(team.reduce_scatter(all, std::span(sum)), TORII_OK) << torii_last_error();
    EXPECT_EQ(sum[0], 3.0 * Number(team.rank(), 1));
    std::vector<Celsius> warm = {{1.5F}};
    ASSERT_EQ(team.allreduce(std::span(warm), TORII_MAX), TORII_OK) << torii_last_error();
    EXPECT_EQ(warm[0].degrees, 1.5F);
  });
}

/// Rank r has r + i + 1 elements for rank i, and all blocks with a gap of one between them.
TEST(Cpp, BlocksOfUnequalLengths) {
  as_team(3, [](Team& team) {
    const auto rank = static_cast<std::size_t>(team.rank());
    const std::vector<std::size_t> counts = {rank + 1, rank + 2, rank + 3};
    const std::vector<std::size_t> places = {0, rank + 2, 2 * rank + 5};
    std::vector<std::int64_t> input(3 * rank + 8, -1);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t at = 0; at < counts[i]; ++at) input[places[i] + at] = static_cast<std::int64_t>(10 * rank + i);
    }
    std::vector<std::int64_t> result(3 * rank + 6);
    const Blocks<const std::int64_t> sent = {input, counts, places};
    const Blocks<std::int64_t> received = {result, counts};
    ASSERT_EQ(team.alltoall(sent, received), TORII_OK) << torii_last_error();
    EXPECT_EQ(result.front(), static_cast<std::int64_t>(rank));
    EXPECT_EQ(result.back(), static_cast<std::int64_t>(20 + rank));

    const std::vector<std::size_t> lengths = {1, 0, 4};
    std::vector<std::int64_t> all(5);
    const std::vector<std::int64_t> own(lengths[rank], static_cast<std::int64_t>(rank));
    ASSERT_EQ(team.all_gather(own, Blocks<std::int64_t>{all, lengths}), TORII_OK) << torii_last_error();
    EXPECT_EQ(all, (std::vector<std::int64_t>{0, 2, 2, 2, 2}));
    std::vector<std::int64_t> part(lengths[rank]);
    const bool is_root = rank == 1;
    const Blocks<const std::int64_t> dealt = {
        is_root ? std::span<const std::int64_t>(all) : std::span<const std::int64_t>(), lengths};
    ASSERT_EQ(team.scatter(dealt, std::span(part), 1), TORII_OK) << torii_last_error();
    EXPECT_EQ(part, own);
    std::vector<std::int64_t> again(is_root ? 5 : 0);
    ASSERT_EQ(team.gather(part, Blocks<std::int64_t>{again, lengths}, 1), TORII_OK) << torii_last_error();
    if (is_root) {
      EXPECT_EQ(again, all);
    }
  });
}

TEST(Cpp, StartedAndPreparedCallsAreTyped) {
  as_team(2, [](Team& team) {
    std::vector<std::int64_t> one(100, team.rank() + 1);
    std::vector<std::int64_t> two(100, 10);
    std::vector<std::int64_t> sum(100);
    Request first = team.start(allreduce(one, std::span(sum)));
    Request second = team.start(broadcast(std::span(two), 1));
    Request none;
    EXPECT_FALSE(none);
    EXPECT_EQ(none.wait(), TORII_OK);
    none = std::move(second);
    EXPECT_TRUE(none);
    EXPECT_EQ(none.wait(), TORII_OK) << torii_last_error();
    EXPECT_FALSE(none);
    EXPECT_EQ(first.wait(), TORII_OK) << torii_last_error();
    EXPECT_EQ(sum[99], 3);
    Request often = team.prepare(reduce(one, std::span(sum), 0, TORII_MAX));
    for (int round = 0; round < 3; ++round) {
      ASSERT_EQ(often.restart(), TORII_OK) << torii_last_error();
      ASSERT_EQ(often.wait(), TORII_OK) << torii_last_error();
    }
    if (team.rank() == 0) {
      EXPECT_EQ(sum[0], 2);
    }
    often = Request();  // frees the operation
    EXPECT_EQ(team.barrier(), TORII_OK);
  });
}

/// All ranks refuse the same call, which no rank then waits for.
TEST(Cpp, BuffersOfWrongLengthsAreRefused) {
  as_team(3, [](Team& team) {
    std::vector<float> three(3);
    std::vector<float> four(4);
    std::vector<float> nine(9);
    const std::vector<std::size_t> two_counts = {1, 2};
    const std::vector<std::size_t> counts = {1, 2, 3};
    const std::vector<std::size_t> places = {0, 1, 2};
    const auto expect_refused = [](torii_status status, const std::string& reason) {
      EXPECT_EQ(status, TORII_INVALID_ARGUMENT) << reason;
      EXPECT_EQ(torii_last_error(), reason);
    };
    expect_refused(team.allreduce(four, std::span(three)), "allreduce: the input has 4 elements and needs 3");
    expect_refused(team.scan(four, std::span(three)), "scan: the result has 3 elements and needs 4");
    expect_refused(team.all_gather(four, std::span(nine)), "all_gather: the result has 9 elements and needs 12");
    expect_refused(team.reduce_scatter(nine, std::span(four)), "reduce_scatter: the input has 9 elements and needs 12");
    expect_refused(team.alltoall(four, std::span(nine)), "alltoall: the input has 4 elements and needs 9");
    expect_refused(team.alltoall(four, std::span(four)), "alltoall: the input has 4 elements and needs 3");
    expect_refused(team.all_gather(three, Blocks<float>{nine, two_counts}),
                   "all_gather: the result has 2 counts and 0 displacements for 3 ranks");
    expect_refused(team.alltoall(Blocks<const float>{four, counts, places}, Blocks<float>{nine, counts}),
                   "alltoall: block 2 of the input, 3 elements from 2 on, is not within its 4 elements");
    expect_refused(team.reduce_scatter(four, std::span(three), counts),
                   "reduce_scatter: block 2 of the input, 3 elements from 3 on, is not within its 4 elements");
    expect_refused(team.transpose(four, std::span(nine), 3, 3),
                   "the input of the transpose has 4 elements and needs 3");
    expect_refused(team.permute(four, std::vector<std::uint64_t>{0, 1}, std::span(four)),
                   "the list of destinations has 2 elements and needs 4");
    EXPECT_THROW((void)team.start(allreduce(four, std::span(three))), Failure);
    EXPECT_THROW((void)team.prepare(scan(four, std::span(three))), Failure);
    EXPECT_EQ(torii_refuse(nullptr, "no team"), TORII_INVALID_ARGUMENT);
    // Ranks other than the root need not give the buffers that only the root uses.
    if (team.rank() == 2) {
      EXPECT_EQ(team.gather(three, std::span(nine), 2), TORII_OK) << torii_last_error();
      EXPECT_EQ(team.scatter(nine, std::span(three), 2), TORII_OK) << torii_last_error();
    } else {
      EXPECT_EQ(team.gather(three, std::span<float>(), 2), TORII_OK) << torii_last_error();
      EXPECT_EQ(team.scatter(std::span<const float>(), std::span(three), 2), TORII_OK) << torii_last_error();
    }
  });
}

/// A refusal on one rank alone fails the call of the others, instead of pairing it with this rank's next one.
TEST(Cpp, ARefusalOnOneRankIsToldToTheOthers) {
  as_team(3, [](Team& team) {
    std::vector<float> three(3);
    std::vector<float> four(4);
    if (team.rank() == 1) {
      EXPECT_EQ(team.allreduce(four, std::span(three)), TORII_INVALID_ARGUMENT);
      EXPECT_NE(team.barrier(), TORII_OK);
    } else {
      EXPECT_EQ(team.allreduce(three, std::span(three)), TORII_MISMATCH);
      EXPECT_NE(std::string(torii_last_error()).find("the input has 4 elements and needs 3"), std::string::npos)
          << torii_last_error();
    }
  });
}

TEST(Cpp, SendsAndReceives) {
  as_team(2, [](Team& team) {
    const int peer = 1 - team.rank();
    const std::vector<std::int64_t> own = vector_of(team.rank(), 50'000);
    const std::vector<std::int64_t> theirs = vector_of(peer, own.size());
    std::vector<std::int64_t> got(own.size());
    torii_received received = {.size = sizeof(received), .rank = -1, .tag = -1, .count = 0};
    EXPECT_EQ(team.group([&] {
      EXPECT_EQ(team.send(std::span(own), peer, 4), TORII_OK) << torii_last_error();
      EXPECT_EQ(team.recv(std::span(got), TORII_ANY_RANK, 4, &received), TORII_OK) << torii_last_error();
    }),
              TORII_OK)
        << torii_last_error();
    EXPECT_EQ(got, theirs);
    EXPECT_EQ(received.rank, peer);
    EXPECT_EQ(received.count, own.size());
    EXPECT_THROW((void)team.group([]() { throw std::string("from the body"); }), std::string);
    Request receive = team.start_recv(std::span(got), peer);
    Request in_vain = team.start_recv(std::span(got), peer, 77);
    Request send = team.start_send(std::span(own).first(3), peer);
    EXPECT_EQ(receive.wait(), TORII_OK) << torii_last_error();
    EXPECT_EQ(send.wait(), TORII_OK) << torii_last_error();
    EXPECT_TRUE(in_vain.cancel()) << torii_last_error();
    EXPECT_FALSE(in_vain);
    EXPECT_THROW((void)team.start_send(std::span(own), 9), Failure);
  });
}

/// Inline functions of two classes with one mangled name would be one function in this program.
TEST(Cpp, ClassesInsideHaveOtherNames) {
  EXPECT_NE(std::string_view(typeid(torii::Team).name()), "N5torii4TeamE");
  EXPECT_NE(std::string_view(typeid(torii::Context).name()), "N5torii7ContextE");
  EXPECT_NE(std::string_view(typeid(torii::Request).name()), "N5torii7RequestE");
}

TEST(Cpp, ContainersInMemoryThatPeersReach) {
  ThreadTeam options;
  run_as_threads(options, [](torii_context* context, torii_team* whole) {
    using Numbers = std::vector<std::int64_t, Allocator<std::int64_t>>;
    const Allocator<char> any(borrowed(context));
    Numbers numbers(5000, torii_team_rank(whole), any);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64, 0U);
    numbers.resize(20'000, torii_team_rank(whole));
    EXPECT_EQ(torii_allreduce(whole, numbers.data(), numbers.data(), numbers.size(), TORII_I64, TORII_SUM), TORII_OK);
    EXPECT_EQ(numbers, Numbers(20'000, 1, any));
    EXPECT_TRUE(any == numbers.get_allocator());
    EXPECT_THROW(numbers.reserve(std::size_t{1} << 50), std::bad_alloc);
    EXPECT_THROW((void)Allocator<std::int64_t>(borrowed(context)).allocate(SIZE_MAX), std::bad_alloc);
    // Memory of the arena, which the context takes back.
    void* const address = Allocator<char>(borrowed(context)).allocate(10);
    EXPECT_EQ(torii_free(context, address), TORII_OK);
    EXPECT_EQ(torii_barrier(whole), TORII_OK);
  });
}

TEST(Cpp, AContextMayGoBeforeWhatItHasGiven) {
  torii_context_options options = {};
  options.size = sizeof(options);
  options.ranks = 1;
  Context context(&options);
  Buffer<int> buffer = context.allocate<int>(100);
  std::vector<int, Allocator<int>> numbers(100, 1, Allocator<int>(context.shared()));
  Team team = context.team();
  options.memory_of = context.handle();
  context = Context(&options);
  EXPECT_EQ(team.allreduce(buffer.span()), TORII_OK) << torii_last_error();
  numbers.resize(5000, 1);
  EXPECT_EQ(numbers, (std::vector<int, Allocator<int>>(5000, 1, Allocator<int>(context.shared()))));
  EXPECT_EQ(context.team().allreduce(std::span(numbers)), TORII_OK) << torii_last_error();
}

}  // namespace
}  // namespace torii::tests
