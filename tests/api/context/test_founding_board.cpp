// SPDX-License-Identifier: Apache-2.0
// The words of a founding board: who enters which entry, when one is used again, and bytes that no member has written.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "api/agreement/node_founding.hpp"
#include "api/context/founding_board.hpp"
#include "api/context/founding_boards.hpp"
#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kPlaces[] = {0, 1, 2};
constexpr std::int64_t kLateNs = 1000;

struct Board {
  explicit Board(int entries)
      : words(FoundingBoard::bytes(3, entries) / sizeof(Line)), board(memory(), 3, 0, entries) {}
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

/// The next context uses the board, and a rank of the one before is late.
TEST(FoundingBoard, OfAnotherUseIsNotEntered) {
  Board board(2);
  const std::vector<int> both = {0, 1};
  EXPECT_TRUE(board.opener.is_at_rest());
  auto opener = board.opener.open(terms_of(5, both), 64, nullptr, kLateNs);
  auto member = board.board.enter(5, 1);
  ASSERT_TRUE(opener && member);
  opener->leave();
  EXPECT_FALSE(board.opener.is_at_rest());
  member->leave();
  EXPECT_TRUE(board.opener.is_at_rest());
  board.opener.begin_use(2);
  EXPECT_EQ(board.opener.use(), 1U);
  opener = board.opener.open(terms_of(5, both), 64, nullptr, kLateNs);
  ASSERT_TRUE(opener);
  EXPECT_FALSE(board.board.awaits(5, 0));
  EXPECT_FALSE(board.board.enter(5, 0));
  EXPECT_TRUE(FoundingBoard(board.memory(), 3, 1, 2).enter(5, 0));
}

TEST(RestingBoards, AreUsedAgainByAsManyRanks) {
  Board board(1);
  RestingBoards resting;
  const auto opener_of = [](Board& of) { return std::make_unique<FoundingOpener>(of.board, 0); };
  EXPECT_EQ(resting.take(3), nullptr);
  resting.keep(opener_of(board));
  EXPECT_EQ(resting.take(2), nullptr);
  auto opener = resting.take(3);
  ASSERT_NE(opener, nullptr);
  EXPECT_EQ(opener->memory(), board.memory());
  EXPECT_EQ(resting.take(3), nullptr);
  const std::vector<int> both = {0, 1};
  auto seat = opener->open(terms_of(5, both), 64, nullptr, kLateNs);
  ASSERT_TRUE(seat);
  auto member = board.board.enter(5, 1);
  ASSERT_TRUE(member);
  seat->leave();
  resting.keep(std::move(opener));
  EXPECT_EQ(resting.take(3), nullptr) << "rank 1 is inside";
  member->leave();
  EXPECT_NE(resting.take(3), nullptr);
}

TEST(FoundingBoard, HasFewerEntriesForManyRanks) {
  EXPECT_EQ(FoundingBoard::entries_for(2), 64);
  EXPECT_EQ(FoundingBoard::entries_for(1024), 16);
  const int some = FoundingBoard::entries_for(100);
  EXPECT_LE(FoundingBoard::bytes(100, some), (std::size_t{1} << 20) + sizeof(Board::Line));
  EXPECT_GT(some, 16);
}

/// All members live; each failure has a text.
class Living : public NodeFounding::Host {
 public:
  bool lives(int) const override { return true; }
  bool has_ended(int) const override { return false; }
  std::int64_t now_ns() const override { return kLateNs; }
  std::int64_t late_ns() const override { return kLateNs; }
  FoundingFailure lost(int) const override { return {1, -1, "lost"}; }
  FoundingFailure late(const MemberSet&, bool) const override { return {1, -1, "late"}; }
  FoundingFailure no_room() const override { return {1, -1, "no room"}; }
  FoundingFailure refusal(const Trouble&) const override { return {1, -1, "refusal"}; }
  FoundingFailure other_members(std::span<const int>) const override { return {1, -1, "other members"}; }
  FoundingFailure other_text(std::string_view) const override { return {1, -1, "other text"}; }
};

/// Never fails to end, and has a reason for each founding that made no team.
class Hasty final : public Living {
 public:
  void ring(int) override {}
  void begin_wait() override { looks_ = 0; }
  bool pause(bool (*)(void*), void*) override { return ++looks_, true; }
  bool is_over() const override { return looks_ > 3; }

 private:
  int looks_ = 0;
};

/// A member whose wait is the next member's turn.
class Next final : public Living {
 public:
  void ring(int rank) override { rung += static_cast<char>('0' + rank); }
  void begin_wait() override {}
  bool pause(bool (*still_idle)(void*), void* data) override {
    EXPECT_TRUE(still_idle(data));
    take_turn();
    EXPECT_FALSE(still_idle(data));
    return false;
  }
  bool is_over() const override { return false; }

  std::string rung;  ///< a digit for each time that a rank was rung
  std::function<void()> take_turn = [] { FAIL() << "nobody to wait for"; };
};

/// A rank that sleeps is rung when it has something to do.
TEST(NodeFounding, RingsTheOthersAtEachStep) {
  Board board(1);
  const std::vector<int> both = {0, 1};
  const FoundingTerms terms = terms_of(5, both);
  for (const bool refuses : {false, true}) {
    Next first, last;
    NodeFounding of_first(first, terms, 0, 0, board.board, &board.opener);
    NodeFounding of_last(last, terms, 1, 0, board.board, nullptr);
    Trouble refusal;
    if (refuses) refusal.status = Status::no_resource;
    first.take_turn = [&] {
      EXPECT_EQ(first.rung, "1") << "it is open";
      EXPECT_EQ(of_last.come(128, refusal), !refuses);
      EXPECT_EQ(last.rung, "0");
    };
    EXPECT_EQ(of_first.come(64, {}), !refuses);
    if (refuses) continue;
    EXPECT_EQ(of_first.offset_of(1), 128U);
    first.take_turn = [&] {
      last.rung.clear();
      EXPECT_TRUE(of_last.settle({}));
      EXPECT_EQ(last.rung, "0");
    };
    EXPECT_TRUE(of_first.settle({}));
  }
}

void fill_with_garbage(Board& board, std::mt19937_64& random) {
  for (std::size_t at = 0; at < board.bytes(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random() >> (random() % 2 == 0 ? 0 : 60);
    std::memcpy(board.memory() + at, &word, sizeof(word));
  }
}

/// The peer that has written them may change them at any time: here, before each step.
TEST(FoundingBoard, EndsEveryFoundingOverGarbage) {
  for (const Seed& seed : seeds_of("test_founding_board/founding", is_full() ? 20'000 : 2000)) {
    std::mt19937_64 random(seed.value);
    Board board(4);
    const std::vector<int> all = {0, 1, 2};
    const FoundingTerms terms = terms_of(random() % 16, all);
    const int rank = static_cast<int>(random() % 3);
    fill_with_garbage(board, random);
    Hasty host;
    NodeFounding founding(host, terms, rank, 0, board.board, rank == 0 ? &board.opener : nullptr);
    const auto expect_reason = [&] {
      EXPECT_GT(founding.failure().status, 0) << seed;
      EXPECT_LE(founding.failure().status, static_cast<std::int32_t>(Status::internal)) << seed;
      EXPECT_NE(founding.failure().text[0], 0) << seed;
    };
    if (!founding.come(64, {})) {
      expect_reason();
      continue;
    }
    for (const int member : all) (void)founding.offset_of(member);
    if (random() % 2 == 0) fill_with_garbage(board, random);
    if (!founding.settle({})) expect_reason();
  }
}

TEST(FoundingBoard, BelievesNoLengthOfAPeer) {
  for (const Seed& seed : seeds_of("test_founding_board/garbage", is_full() ? 2000 : 200)) {
    std::mt19937_64 random(seed.value);
    Board board(4);
    const std::vector<int> all = {0, 1, 2};
    auto own = board.opener.open(terms_of(1, all), 64, nullptr, kLateNs);
    ASSERT_TRUE(own);
    fill_with_garbage(board, random);
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
