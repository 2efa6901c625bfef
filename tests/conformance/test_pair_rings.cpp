// SPDX-License-Identifier: Apache-2.0
// Sends and receives on standing rings, below the public interface: how much is on its way, what the receiver tells,
// and where all that is.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/conformance/pair_rank.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kInPlace = 16'000;  // bytes that no line holds, and every place of 3 ranks

int count_done(const PairRank& own) {
  return static_cast<int>(std::ranges::count_if(own.sends, [](const Send& one) { return one.done; }));
}

TEST(PairRings, SoManyShortSendsAreAheadOfTheReceiver) {
  run_pairs(2, [](PairRank& own, int rank) {
    constexpr int kSends = 5000;
    const int entries = pair_sizes(2).entries;
    std::vector<int> values(kSends);
    std::vector<int> got(kSends);
    std::iota(values.begin(), values.end(), 1);
    const auto bytes_of = [](std::vector<int>& all, int number) {
      return reinterpret_cast<std::byte*>(&all[static_cast<std::size_t>(number)]);
    };
    if (rank == 0) {
      for (int i = 0; i < kSends; ++i) own.send(1, 0, bytes_of(values, i), sizeof(int));
      EXPECT_EQ(count_done(own), entries);
      EXPECT_FALSE(own.pairs->progress()) << "nobody has taken one";
      own.meet();
      ASSERT_TRUE(own.finish());
      return own.meet();
    }
    own.meet();
    // Nothing is received yet, but in any wait the rank takes what comes.
    for (int i = 0; i < 10; ++i) own.pairs->progress();
    for (int i = 0; i < kSends; ++i) own.receive(0, 0, bytes_of(got, i), sizeof(int));
    ASSERT_TRUE(own.finish());
    EXPECT_EQ(got, values);
    own.meet();
  });
}

TEST(PairRings, LongPayloadsToOneRankLeaveRoomForThoseToAnother) {
  run_pairs(3, [](PairRank& own, int rank) {
    std::vector<std::byte> bytes(kInPlace, std::byte{3});
    if (rank == 0) {
      for (int i = 0; i < kPairPayloads; ++i) EXPECT_TRUE(own.send(1, 0, bytes.data(), bytes.size()).done) << i;
      EXPECT_FALSE(own.send(1, 0, bytes.data(), bytes.size()).done) << "its places are all in use";
      EXPECT_FALSE(own.send(1, 0, bytes.data(), 1).done) << "sends keep their order";
      for (int i = 0; i < kPairPayloads; ++i) EXPECT_TRUE(own.send(2, 0, bytes.data(), bytes.size()).done) << i;
    }
    own.meet();
    std::vector<std::byte> to(kInPlace);
    for (int i = 0; rank != 0 && i < kPairPayloads + (rank == 1 ? 2 : 0); ++i) {
      const Receive& receive = own.receive(0, 0, to.data(), to.size());
      ASSERT_TRUE(own.go_on_until([&] { return receive.done; }));
      EXPECT_EQ(receive.envelope.bytes, i == kPairPayloads + 1 ? 1 : kInPlace);
      EXPECT_EQ(to, bytes);
    }
    EXPECT_TRUE(own.finish());
  });
}

/// Takes one message too few for the sender to be told, then that one too. Ends with all taken.
void check_telling(PairRank& own, int rank, std::size_t length, int ahead, int every) {
  std::vector<std::byte> bytes(length);
  if (rank == 0) {
    own.sends.clear();
    for (int i = 0; i < ahead + every; ++i) own.send(1, 0, bytes.data(), length);
    EXPECT_EQ(count_done(own), ahead);
  }
  own.meet();
  for (const bool is_told : {false, true}) {
    if (rank == 1) own.take(0, is_told ? 1 : every - 1);
    own.meet();
    while (rank == 0 && own.pairs->progress()) continue;
    if (rank == 0) {
      EXPECT_EQ(count_done(own), is_told ? ahead + every : ahead) << length;
    }
    own.meet();
  }
  if (rank == 1) own.take(0, ahead);
  own.meet();
}

/// A sender of long payloads is told sooner.
TEST(PairRings, TheReceiverTellsInTime) {
  run_pairs(2, [](PairRank& own, int rank) {
    const int entries = pair_sizes(2).entries;
    check_telling(own, rank, 8, entries, entries / 4);
    check_telling(own, rank, kInPlace, kPairPayloads, kPairPayloads / 4);
    check_telling(own, rank, 8, entries, entries / 4);
  });
}

/// No rank receives anything before all its sends are done.
TEST(PairRings, LongSendsInACircleNeedNoReceives) {
  with_ranks(3, [](PairRank& own, int rank) {
    constexpr int kSends = 50;
    std::vector<std::byte> bytes(kInPlace, static_cast<std::byte>(rank));
    for (int i = 0; i < kSends; ++i) own.send((rank + 1) % 3, i, bytes.data(), bytes.size());
    ASSERT_TRUE(own.finish());
    std::vector<std::byte> to(kInPlace);
    for (int i = kSends - 1; i >= 0; --i) {
      own.receive((rank + 2) % 3, i, to.data(), to.size());
      ASSERT_TRUE(own.finish());
      EXPECT_EQ(to, std::vector<std::byte>(kInPlace, static_cast<std::byte>((rank + 2) % 3)));
    }
  });
}

TEST(PairRings, TakeSoMuchMemory) {
  EXPECT_EQ(pair_sizes(2).entries, 64);
  EXPECT_EQ(pair_sizes(64).entries, 64);
  EXPECT_EQ(pair_sizes(128).entries, 32);
  EXPECT_EQ(pair_sizes(256).entries, 16);
  EXPECT_EQ(pair_sizes(1024).entries, 8);
  for (const auto& [ranks, kib] : {std::pair{1, 0}, {2, 136}, {4, 400}, {8, 928}, {256, 1292}}) {
    EXPECT_EQ(PairArea(pair_sizes(ranks)).total_bytes() / 1024, static_cast<std::size_t>(kib)) << ranks;
  }
}

/// A part of a team has the memory of the whole.
TEST(PairRings, OfAnyPartFitIntoTheMemoryOfTheWhole) {
  for (int whole = 1; whole <= 300; ++whole) {
    PairSizes sizes = pair_sizes(whole);
    const std::size_t bytes = PairArea(sizes).total_bytes();
    for (sizes.ranks = 1; sizes.ranks <= whole; ++sizes.ranks) {
      EXPECT_LE(PairArea(sizes).total_bytes(), bytes) << sizes.ranks << " of " << whole;
    }
  }
  for (const int whole : {2, 3, 16, 100, 1024}) {
    for (const int here : {1, 2, 8}) {
      PairSizes sizes = distant_pair_sizes(std::min(here, whole), whole);
      const std::size_t bytes = PairArea(sizes).total_bytes();
      for (sizes.team_ranks = 2; sizes.team_ranks <= whole; ++sizes.team_ranks) {
        EXPECT_LE(PairArea(sizes).total_bytes(), bytes) << sizes.team_ranks << " of " << whole;
      }
      sizes.team_ranks = 0;
      EXPECT_LE(PairArea(sizes).total_bytes(), bytes) << "on one node, of " << whole;
    }
  }
}

/// How often each line of a member's memory is used.
class LineUses {
 public:
  explicit LineUses(const PairArea& area) : uses_(area.total_bytes() / kLineBytes) {}
  void add(std::size_t offset, std::size_t bytes) {
    ASSERT_LE(offset + bytes, uses_.size() * kLineBytes);
    for (std::size_t at = offset; at < offset + bytes; at += kLineBytes) ++uses_[at / kLineBytes];
  }
  int most() const { return *std::ranges::max_element(uses_); }
  int all() const { return std::accumulate(uses_.begin(), uses_.end(), 0); }

 private:
  std::vector<int> uses_;
};

TEST(PairRings, HaveAPlaceForEachWord) {
  const PairSizes sizes = {4, 8, 4, 128};
  const PairArea area(sizes);
  for (int member = 0; member < sizes.ranks; ++member) {
    LineUses uses(area);
    for (int peer = 0; peer < sizes.ranks; ++peer) {
      if (peer == member) continue;
      EXPECT_LE(area.entries(member, peer) + 8 * kLineBytes, area.words_bytes());
      EXPECT_LE(area.told(member, peer) + kLineBytes, area.words_bytes());
      EXPECT_GE(area.places(member, peer), area.words_bytes());
      uses.add(area.entries(member, peer), 8 * kLineBytes);
      uses.add(area.told(member, peer), kLineBytes);
      uses.add(area.places(member, peer), 4 * sizes.place_bytes);
    }
    EXPECT_EQ(uses.most(), 1) << member;
    EXPECT_EQ(uses.all(), 3 * (8 + 1 + 4 * 2));
  }
}

TEST(PairRings, BetweenNodesEachWordHasAPlaceToo) {
  const PairSizes sizes = {2, 8, 4, 128, 5};
  const PairArea area(sizes);
  for (int member = 0; member < sizes.team_ranks; ++member) {
    LineUses uses(area);
    const int here = member % sizes.ranks;
    uses.add(area.entries(here, 1 - here), 8 * kLineBytes);
    uses.add(area.told(here, 1 - here), kLineBytes);
    uses.add(area.places(here, 1 - here), 4 * sizes.place_bytes);
    for (int peer = 0; peer < sizes.team_ranks; ++peer) {
      if (peer == member) continue;
      uses.add(area.distant_credits(member, peer), kLineBytes);
      uses.add(area.distant_entries(member, peer), 4 * distant_pair_entry_bytes(sizes));
      uses.add(area.distant_leaving(member, peer), 4 * distant_pair_entry_bytes(sizes));
    }
    EXPECT_EQ(uses.most(), 1) << member;
    EXPECT_EQ(uses.all(), 8 + 1 + 4 * 2 + 4 * (1 + 2 * 4 * 3));
  }
}

}  // namespace
}  // namespace torii::tests
