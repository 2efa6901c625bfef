// SPDX-License-Identifier: Apache-2.0
// The words of a founding board: who enters which entry, when one is used again, and bytes that no member has written.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "api/context/founding_board.hpp"
#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kPlaces[] = {0, 1, 2};
constexpr std::int64_t kLateNs = 1000;

struct Board {
  explicit Board(int entries) : words(FoundingBoard::bytes(3, entries) / sizeof(Line)), board(memory(), 3, entries) {}
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::byte* memory() { return words.data()->bytes; }
  std::size_t bytes() const { return words.size() * sizeof(Line); }
  std::vector<Line> words;
  FoundingBoard board;
  FoundingOpener opener{board, 0};
};

FoundingTerms terms_of(std::uint64_t number, std::span<const int> members) {
  return {number, 7, "A=1\nB=2\n", members, kPlaces};
}

TEST(FoundingBoard, IsEnteredInTheOrderOfOpenings) {
  Board board(3);
  const std::vector<int> all = {2, 0, 1}, outer = {0, 2};
  auto first = board.opener.open(terms_of(5, all), 64, nullptr, kLateNs);
  auto second = board.opener.open(terms_of(5, outer), 128, nullptr, kLateNs);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(board.board.awaits(6, 1));
  EXPECT_FALSE(board.board.enter(5, 0));  // the opener is there
  auto of_two = board.board.enter(5, 2);
  ASSERT_TRUE(of_two);
  EXPECT_EQ(of_two->offset_of(0), 64U);
  EXPECT_EQ(of_two->text(), "A=1\nB=2\n");
  EXPECT_EQ(of_two->members().size(), 3U);
  of_two = board.board.enter(5, 2);
  ASSERT_TRUE(of_two);
  EXPECT_EQ(of_two->offset_of(0), 128U);
  EXPECT_FALSE(board.board.enter(5, 2));
  EXPECT_TRUE(board.board.enter(5, 1));
  EXPECT_FALSE(board.board.enter(5, 1));
}

TEST(FoundingBoard, UsesAnEntryAgainWhenAllHaveLeft) {
  Board board(1);
  const std::vector<int> both = {0, 1};
  auto opener = board.opener.open(terms_of(5, both), 64, nullptr, kLateNs);
  ASSERT_TRUE(opener);
  auto member = board.board.enter(5, 1);
  ASSERT_TRUE(member);
  opener->leave();
  EXPECT_FALSE(board.opener.open(terms_of(6, both), 64, nullptr, kLateNs));
  member->leave();
  EXPECT_TRUE(board.opener.open(terms_of(6, both), 64, nullptr, kLateNs));
  EXPECT_FALSE(board.board.awaits(5, 1));
}

/// Only those are excused who are late and not inside, or have ended.
TEST(FoundingBoard, MakesRoom) {
  const auto nobody = [](void*, int) { return false; };
  const auto everybody = [](void*, int) { return true; };
  const std::vector<int> all = {0, 1, 2};
  Board board(1);
  auto opener = board.opener.open(terms_of(5, all), 64, nullptr, kLateNs);
  auto member = board.board.enter(5, 1);
  ASSERT_TRUE(opener && member);
  board.opener.make_room(kLateNs, nobody, nullptr);
  EXPECT_TRUE(board.board.awaits(5, 2));  // it has not failed
  EXPECT_TRUE(member->fail({static_cast<std::int32_t>(Status::mismatch), 1, "because"}));
  EXPECT_FALSE(opener->fail({static_cast<std::int32_t>(Status::timeout), 0, "late"}));
  opener->conclude();
  EXPECT_EQ(opener->verdict(), FoundingVerdict::failed);
  EXPECT_STREQ(opener->failure().text, "because");
  opener->leave();
  board.opener.make_room(kLateNs - 1, nobody, nullptr);
  EXPECT_TRUE(board.board.awaits(5, 2));  // it may come, and has to learn why there is no team
  board.opener.make_room(kLateNs, nobody, nullptr);
  EXPECT_FALSE(board.board.awaits(5, 2));
  EXPECT_FALSE(board.opener.open(terms_of(5, all), 64, nullptr, kLateNs));  // one is inside
  board.opener.make_room(0, everybody, nullptr);
  EXPECT_TRUE(board.opener.open(terms_of(5, all), 64, nullptr, kLateNs));
}

TEST(FoundingBoard, BelievesNoLengthOfAPeer) {
  for (const Seed& seed : seeds_of("test_founding_board/garbage", is_full() ? 2000 : 200)) {
    std::mt19937_64 random(seed.value);
    Board board(4);
    const std::vector<int> all = {0, 1, 2};
    auto own = board.opener.open(terms_of(1, all), 64, nullptr, kLateNs);
    ASSERT_TRUE(own);
    for (std::size_t at = 0; at < board.bytes(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = random() >> (random() % 2 == 0 ? 0 : 60);
      std::memcpy(board.memory() + at, &word, sizeof(word));
    }
    std::vector<FoundingSeat> seats = {*own};
    for (std::uint64_t number = 0; number < 16; ++number) {
      for (const int place : kPlaces) {
        if (auto seat = board.board.enter(number, place)) seats.push_back(*seat);
      }
    }
    for (FoundingSeat& seat : seats) {
      EXPECT_LE(seat.members().size(), 3U) << seed;
      EXPECT_LE(seat.text().size(), FoundingEntry::kTextBytes) << seed;
      const FoundingFailure failure = seat.failure();
      EXPECT_LT(std::strlen(failure.text), FoundingFailure::kTextBytes) << seed;
      EXPECT_GT(failure.status, 0) << seed;
      EXPECT_LE(failure.status, static_cast<std::int32_t>(Status::internal)) << seed;
      for (const int place : kPlaces) {
        (void)seat.has_come(place);
        seat.excuse(place, true);
      }
    }
    board.opener.make_room(
        0, [](void*, int) { return true; }, nullptr);
    (void)board.opener.open(terms_of(2, all), 64, nullptr, kLateNs);
  }
}

}  // namespace
}  // namespace torii::tests
