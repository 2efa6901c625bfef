// SPDX-License-Identifier: Apache-2.0
// What engines of libfabric hold in memory, without a fabric: notices and what they do, and bounce memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "runtime/fabric/words.hpp"
#include "tests/support/test_run.hpp"
#include "transports/libfabric/arrivals.hpp"
#include "transports/libfabric/bounce_pool.hpp"
#include "transports/libfabric/notice.hpp"

namespace torii::libfabric {
namespace {

constexpr std::size_t kLines = 1000;

struct alignas(kLineBytes) Line {
  std::uint64_t words[8];
};

TEST(Arrivals, PublishesAnInvertedSignal) {
  std::vector<Line> arena(kLines);
  Arrivals arrivals(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes);
  arena[7].words[0] = ~std::uint64_t{42};
  EXPECT_TRUE(arrivals.take(make_notice(NoticeAction::publish, 7 * kLineBytes)));
  EXPECT_EQ(arena[7].words[0], 42u);
  EXPECT_TRUE(arrivals.take(make_notice(NoticeAction::wake, 7 * kLineBytes)));
  EXPECT_EQ(arena[7].words[0], 42u);
}

TEST(Arrivals, PublishesWithTheSecondHalfAndStartsAnew) {
  std::vector<Line> arena(kLines);
  Arrivals arrivals(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes);
  for (std::uint64_t time = 1; time <= 3; ++time) {
    arena[64].words[0] = ~time;
    arena[65].words[0] = ~time;
    EXPECT_TRUE(arrivals.take(make_notice(NoticeAction::join, 64 * kLineBytes)));
    EXPECT_TRUE(arrivals.take(make_notice(NoticeAction::join, 65 * kLineBytes)));
    EXPECT_EQ(arena[64].words[0], ~time);
    EXPECT_TRUE(arrivals.take(make_notice(NoticeAction::join, 64 * kLineBytes)));
    EXPECT_EQ(arena[64].words[0], time);
    EXPECT_EQ(arena[65].words[0], ~time);
    EXPECT_TRUE(arrivals.take(make_notice(NoticeAction::join, 65 * kLineBytes)));
    EXPECT_EQ(arena[65].words[0], time);
  }
}

TEST(Arrivals, ForgetsHalvesInMemoryThatServesAnew) {
  std::vector<Line> arena(kLines);
  Arrivals arrivals(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes);
  const std::uint64_t places[] = {63 * kLineBytes, 64 * kLineBytes, 127 * kLineBytes, 128 * kLineBytes};
  for (const std::uint64_t place : places) EXPECT_TRUE(arrivals.take(make_notice(NoticeAction::join, place)));
  arrivals.forget(64 * kLineBytes, 64 * kLineBytes);
  for (const std::uint64_t place : places) {
    std::uint64_t& word = arena[place / kLineBytes].words[0];
    word = ~std::uint64_t{5};
    EXPECT_TRUE(arrivals.take(make_notice(NoticeAction::join, place)));
    EXPECT_EQ(word == 5, place == places[0] || place == places[3]) << place;
  }
  arrivals.forget(0, kLines * kLineBytes);
  arrivals.forget(0, 0);
}

TEST(Arrivals, SurvivesEveryNotice) {
  for (const tests::Seed& seed : tests::seeds_of("fabric_parts/notices", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    std::vector<Line> arena(kLines);
    Arrivals arrivals(reinterpret_cast<std::byte*>(arena.data()), kLines * kLineBytes);
    for (int i = 0; i < 100'000; ++i) {
      const std::uint64_t notice = random() >> random() % 64;
      const bool exists = line_of(notice) < kLines && action_bits(notice) <= 2;
      EXPECT_EQ(arrivals.take(notice), exists) << notice;
    }
    for (const Line& line : arena) {
      for (int word = 1; word < 8; ++word) ASSERT_EQ(line.words[word], 0u);
    }
  }
}

TEST(Notice, FourBytesNameTheLinesOfTheDefaultArena) {
  EXPECT_EQ(arena_bytes_max(4), std::uint64_t{64} << 30);
  EXPECT_EQ(arena_bytes_max(8), UINT64_MAX);
  const std::uint64_t last = (std::uint64_t{64} << 30) - kLineBytes;
  EXPECT_LE(make_notice(NoticeAction::join, last), UINT32_MAX);
  EXPECT_EQ(line_of(make_notice(NoticeAction::join, last)), last / kLineBytes);
}

TEST(Notice, MarksFillWhatLinesLeaveFree) {
  EXPECT_EQ(mark_bits(std::uint64_t{1} << 30, 4), 0xfc000000U);
  EXPECT_EQ(mark_bits(std::uint64_t{64} << 30, 4), 0U);
  EXPECT_EQ(mark_bits(std::uint64_t{256} << 30, 8), ~std::uint64_t{0} << 34);
  for (const std::uint64_t bytes :
       {std::uint64_t{64}, std::uint64_t{128}, std::uint64_t{96} << 20, std::uint64_t{1} << 40}) {
    const std::uint64_t last = make_notice(NoticeAction::join, bytes - kLineBytes);
    EXPECT_EQ((last | 3) & ~notice_bits(bytes), 0U) << bytes;
    EXPECT_EQ(notice_bits(bytes) ^ mark_bits(bytes, 8), UINT64_MAX) << bytes;
    EXPECT_EQ(mark_bits(bytes, 4) & mark_bits(bytes, 8), mark_bits(bytes, 4)) << bytes;
  }
}

/// Memory of lines, behind which nothing may be given.
struct Lines {
  std::vector<std::byte> memory = std::vector<std::byte>(4 * 4096 + 5 * kLineBytes);
  BouncePool pool{memory.data(), memory.size()};
};

TEST(BouncePool, NeverGivesAPieceTwice) {
  for (const tests::Seed& seed : tests::seeds_of("fabric_parts/bounce_pool", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    Lines lines;
    std::deque<BouncePool::Piece> out;
    std::size_t out_bytes = 0;
    std::size_t given = 0;
    const std::size_t all_bytes = lines.pool.free_bytes();
    EXPECT_EQ(all_bytes, lines.memory.size());
    for (int i = 0; i < 100'000; ++i) {
      const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? lines.pool.bytes() : 2000);
      const BouncePool::Piece piece = lines.pool.take(bytes);
      if (piece.at != nullptr) {
        ++given;
        out_bytes += piece.bytes;
        ASSERT_GE(piece.bytes, bytes);
        ASSERT_GE(piece.at, lines.memory.data());
        ASSERT_LE(piece.at + piece.bytes, lines.memory.data() + lines.memory.size());
        for (const BouncePool::Piece& other : out) {
          ASSERT_TRUE(piece.at + piece.bytes <= other.at || other.at + other.bytes <= piece.at);
        }
        out.push_back(piece);
      } else {
        ASSERT_FALSE(out.empty()) << "an empty pool refuses " << bytes;
      }
      ASSERT_EQ(lines.pool.free_bytes() + out_bytes, all_bytes);
      while (!out.empty() && (piece.at == nullptr ? out.size() > i % 4U : random() % 3 == 0)) {
        const auto which = static_cast<std::ptrdiff_t>(random() % out.size());
        out_bytes -= out[static_cast<std::size_t>(which)].bytes;
        lines.pool.give_back(out[static_cast<std::size_t>(which)]);
        out.erase(out.begin() + which);
      }
    }
    EXPECT_GT(given, 10'000U);
    EXPECT_EQ(lines.pool.take(lines.pool.bytes() + 1).at, nullptr);
  }
}

/// The ring that this once was stood still behind the oldest piece.
TEST(BouncePool, APieceThatStaysHoldsUpNoOther) {
  Lines lines;
  const BouncePool::Piece stays = lines.pool.take(sizeof(std::uint64_t));
  ASSERT_NE(stays.at, nullptr);
  for (std::size_t i = 0; i < 10'000; ++i) {
    const std::size_t bytes = i % 3 == 0 ? 2 * 4096 : 1 + i % 2000;
    const BouncePool::Piece piece = lines.pool.take(bytes);
    ASSERT_NE(piece.at, nullptr) << bytes << " bytes, time " << i;
    lines.pool.give_back(piece);
  }
}

}  // namespace
}  // namespace torii::libfabric
