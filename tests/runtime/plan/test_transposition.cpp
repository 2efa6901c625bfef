// SPDX-License-Identifier: Apache-2.0
// Transposed arrays against a plain one, element by element, over shapes, axes, element sizes and numbers of ranks.
#include "runtime/plan/transposition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"

namespace torii {
namespace {

using Bytes = std::vector<std::byte>;
using Extents = std::vector<std::size_t>;
using Axes = std::vector<int>;

std::size_t product(const Extents& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::size_t{1}, std::multiplies<>());
}

Bytes numbered(std::size_t elements, std::size_t element_bytes) {
  Bytes array(elements * element_bytes);
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = static_cast<std::byte>((i * 2654435761U) >> 11);
  return array;
}

/// The whole result, index by index.
Bytes plain(const Bytes& input, const Extents& extents, const Axes& axes, std::size_t element_bytes) {
  Bytes result(input.size());
  const std::size_t dimensions = extents.size();
  for (std::size_t at = 0; at < product(extents); ++at) {
    Extents index(dimensions);
    std::size_t rest = at;
    for (std::size_t d = dimensions; d-- > 0;) {
      const auto axis = static_cast<std::size_t>(axes[d]);
      index[axis] = rest % extents[axis];
      rest /= extents[axis];
    }
    std::size_t from = 0;
    for (std::size_t d = 0; d < dimensions; ++d) from = from * extents[d] + index[d];
    std::memcpy(&result[at * element_bytes], &input[from * element_bytes], element_bytes);
  }
  return result;
}

/// Packs on every rank, hands the blocks over, unpacks on every rank, and joins the parts.
Bytes in_parts(const Bytes& input, const Extents& extents, const Axes& axes, std::size_t element_bytes, int ranks) {
  std::vector<Bytes> parts;
  std::size_t taken = 0;
  std::vector<Transposition> of_rank;
  for (int rank = 0; rank < ranks; ++rank) of_rank.emplace_back(extents, axes, element_bytes, ranks, rank);
  for (const Transposition& one : of_rank) parts.emplace_back(one.result_bytes());
  for (int from = 0; from < ranks; ++from) {
    const Transposition& sender = of_rank[static_cast<std::size_t>(from)];
    const Bytes part(input.begin() + static_cast<std::ptrdiff_t>(taken),
                     input.begin() + static_cast<std::ptrdiff_t>(taken + sender.input_bytes()));
    taken += sender.input_bytes();
    std::size_t sent = 0;
    for (int to = 0; to < ranks; ++to) {
      const Transposition& receiver = of_rank[static_cast<std::size_t>(to)];
      EXPECT_EQ(sender.send_bytes(to), receiver.take_bytes(from)) << from << " to " << to;
      const bool is_even = sender.is_even() && !sender.is_local();
      EXPECT_TRUE(!is_even || sender.send_bytes(to) == sender.send_bytes(0));
      Bytes block(sender.send_bytes(to));
      sender.pack(part.data(), to, block.data());
      receiver.unpack(block.data(), from, parts[static_cast<std::size_t>(to)].data());
      sent += block.size();
    }
    EXPECT_EQ(sent, sender.input_bytes());
  }
  EXPECT_EQ(taken, input.size());
  Bytes whole;
  for (const Bytes& part : parts) whole.insert(whole.end(), part.begin(), part.end());
  return whole;
}

void expect_right(const Extents& extents, const Axes& axes, std::size_t element_bytes, int ranks) {
  const Bytes input = numbered(product(extents), element_bytes);
  EXPECT_EQ(in_parts(input, extents, axes, element_bytes, ranks), plain(input, extents, axes, element_bytes))
      << ::testing::PrintToString(extents) << " " << ::testing::PrintToString(axes) << " of " << element_bytes
      << " bytes on " << ranks << " ranks";
}

TEST(Transposition, MatricesOfEveryElementSize) {
  for (std::size_t element_bytes = 1; element_bytes <= 16; ++element_bytes) {
    for (const auto& [rows, columns, ranks] : {std::tuple{1, 1, 1}, std::tuple{70, 33, 1}, std::tuple{64, 128, 4},
                                               std::tuple{65, 31, 3}, std::tuple{2, 90, 5}, std::tuple{97, 3, 7}}) {
      expect_right({static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)}, {1, 0}, element_bytes, ranks);
    }
  }
}

TEST(Transposition, AllOrdersOfUpToFourDimensions) {
  for (const Extents& extents : {Extents{7}, Extents{5, 6}, Extents{4, 3, 5}, Extents{3, 2, 4, 5}}) {
    Axes axes(extents.size());
    std::iota(axes.begin(), axes.end(), 0);
    do {
      for (const int ranks : {1, 2, 3, 8}) expect_right(extents, axes, 4, ranks);
    } while (std::ranges::next_permutation(axes).found);
  }
}

TEST(Transposition, RandomShapes) {
  for (const tests::Seed& seed : tests::seeds_of("shapes_test/transposition", tests::is_full() ? 5000 : 300)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    Extents extents(1 + random() % 6);
    std::size_t left = 4000;
    for (std::size_t& extent : extents) {
      extent = random() % 20 == 0 ? 0 : 1 + random() % std::min<std::size_t>(left, 40);
      left = std::max<std::size_t>(left / std::max<std::size_t>(extent, 1), 1);
    }
    Axes axes(extents.size());
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random);
    expect_right(extents, axes, 1 + random() % 16, 1 + static_cast<int>(random() % 9));
    if (::testing::Test::HasFailure()) return;
  }
}

std::string fault_of(const Extents& extents, const Axes& axes, std::size_t element_bytes) {
  try {
    (void)Transposition(extents, axes, element_bytes, 2, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(Transposition, BadShapesAreNamed) {
  EXPECT_EQ(fault_of({3, 4}, {1, 0}, 0), "element_bytes is 0; it must be from 1 to 16");
  EXPECT_EQ(fault_of({3, 4}, {1, 0}, 17), "element_bytes is 17; it must be from 1 to 16");
  EXPECT_EQ(fault_of({3, 4}, {1, 1}, 8), "axes[1] is 1; axes must hold each number from 0 to 1 once");
  EXPECT_EQ(fault_of({3, 4}, {2, 0}, 8), "axes[0] is 2; axes must hold each number from 0 to 1 once");
  EXPECT_EQ(fault_of({3, 4}, {-1, 0}, 8), "axes[0] is -1; axes must hold each number from 0 to 1 once");
  EXPECT_EQ(fault_of({}, {}, 8), "dimensions is 0; it must be from 1 to 8");
  EXPECT_EQ(fault_of(Extents(9, 1), Axes(9, 0), 8), "dimensions is 9; it must be from 1 to 8");
  const std::size_t large = std::size_t{1} << 40;
  EXPECT_EQ(fault_of({large, large}, {1, 0}, 8).substr(0, 30), "extents[1] is 1099511627776, w");
  EXPECT_EQ(fault_of({large, 0, large}, {1, 0, 2}, 8), "") << "an empty array has no bytes";
}

TEST(Transposition, DigestsTellShapesApart) {
  const auto digest = [](const Extents& extents, const Axes& axes, std::size_t bytes) {
    return Transposition(extents, axes, bytes, 2, 0).digest();
  };
  EXPECT_EQ(digest({10, 20}, {1, 0}, 8), digest({10, 20}, {1, 0}, 8));
  EXPECT_NE(digest({10, 20}, {1, 0}, 8), digest({20, 10}, {1, 0}, 8));
  EXPECT_NE(digest({10, 20}, {1, 0}, 8), digest({10, 20}, {1, 0}, 4));
  EXPECT_NE(digest({4, 4, 4}, {1, 0, 2}, 8), digest({4, 4, 4}, {2, 0, 1}, 8));
}

TEST(BalancedSplit, CoversAllItemsInOrder) {
  for (std::size_t items = 0; items < 50; ++items) {
    for (int ranks = 1; ranks < 12; ++ranks) {
      std::size_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ItemRange range = balanced_split(items, ranks, rank);
        EXPECT_EQ(range.first, next);
        EXPECT_LE(range.count - items / static_cast<std::size_t>(ranks), 1U);
        next += range.count;
      }
      EXPECT_EQ(next, items);
    }
  }
}

}  // namespace
}  // namespace torii
