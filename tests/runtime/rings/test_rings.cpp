// SPDX-License-Identifier: Apache-2.0
// Standing rings without ranks: where their memory is, and what a receiver counts as taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/plan/crediting.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "runtime/rings/ring_area.hpp"
#include "runtime/rings/ring_ends.hpp"

namespace torii {
namespace {

struct Stretch {
  std::size_t begin;
  std::size_t bytes;
  std::string name;
};

/// The parts of the area of `member`.
std::vector<Stretch> stretches_of(const RingArea& area, int member) {
  const RingSizes& sizes = area.sizes();
  const auto entries = static_cast<std::size_t>(sizes.entries);
  std::vector<Stretch> all;
  for (int channel = 0; channel < sizes.channels; ++channel) {
    const std::string where = " of channel " + std::to_string(channel);
    for (int peer = 0; peer < sizes.ranks; ++peer) {
      if (peer == member) continue;
      const std::string with = where + " with " + std::to_string(peer);
      all.push_back({area.offers(channel, member, peer), kPairOfferLines * kLineBytes, "offer lines" + with});
      for (int ring = 0; ring < sizes.rings; ++ring) {
        const std::string which = with + ", ring " + std::to_string(ring);
        all.push_back({area.count(channel, ring, member, peer), sizeof(std::uint64_t), "count" + which});
        for (const EntryKind kind : {EntryKind::line, EntryKind::cell, EntryKind::wide_cell}) {
          all.push_back(
              {area.entries(kind, channel, ring, member, peer), entries * entry_bytes(kind), "entries" + which});
        }
      }
    }
    for (int peer = 0; peer < sizes.team_ranks; ++peer) {
      for (int ring = 0; ring < sizes.rings; ++ring) {
        const std::string which = where + " to " + std::to_string(peer) + ", ring " + std::to_string(ring);
        all.push_back({area.credits(channel, ring, peer), entries * sizeof(std::uint64_t), "credits" + which});
        for (int size = 0; size < kDistantSizes; ++size) {
          all.push_back({area.grant(channel, ring, peer, size), kLineBytes, "grant" + which});
        }
      }
    }
  }
  return all;
}

TEST(RingArea, NoTwoPartsShareAByte) {
  for (const RingSizes& sizes : {RingSizes{2, 1, 3, 2, 4096}, RingSizes{3, 2, 64, 5, 8192}, RingSizes{5, 3, 8, 1, 4096},
                                 distant_ring_sizes(1, 2, 1, false), distant_ring_sizes(2, 5, 2, true)}) {
    const RingArea area(sizes);
    for (int member = 0; member < sizes.ranks; ++member) {
      std::vector<Stretch> all = stretches_of(area, member);
      std::ranges::sort(all, {}, &Stretch::begin);
      for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        EXPECT_LE(all[i].begin + all[i].bytes, all[i + 1].begin) << all[i].name << " and " << all[i + 1].name;
      }
      EXPECT_LE(all.back().begin + all.back().bytes, area.total_bytes());
    }
  }
  EXPECT_EQ(RingArea({1, 2, 64, 1, 4096}).words_bytes(1), 0u) << "a rank alone has no peers";
}

TEST(RingArea, EntriesOfAKindAreLinesOfTheirOwn) {
  const RingArea area({3, 2, 3, 4, 4096});
  for (int ring = 0; ring < 4; ++ring) {
    for (const EntryKind kind : {EntryKind::line, EntryKind::cell, EntryKind::wide_cell}) {
      EXPECT_EQ(area.entries(kind, 1, ring, 0, 2) % kLineBytes, 0u);
    }
    EXPECT_EQ(area.count(1, ring, 0, 2) / kLineBytes, area.count(1, 0, 0, 2) / kLineBytes)
        << "counts of a pair are together";
  }
}

/// A rank that has used some of the rings clears a part at the beginning.
TEST(RingArea, TheWordsOfTheFirstRingsComeFirst) {
  const RingArea area({3, 2, 8, 6, 4096});
  for (int rings = 1; rings <= 6; ++rings) {
    for (int ring = 0; ring < rings; ++ring) {
      for (int peer = 0; peer < 2; ++peer) {
        EXPECT_LE(area.entries(EntryKind::line, 1, ring, 2, peer) + 8 * kLineBytes, area.words_bytes(rings));
        EXPECT_LT(area.count(1, ring, 2, peer), area.words_bytes(rings));
        EXPECT_LE(area.offers(1, 2, peer) + kPairOfferLines * kLineBytes, area.words_bytes(rings));
      }
    }
  }
  EXPECT_EQ(area.words_bytes(0), 0u);
  EXPECT_LE(area.words_bytes(6), area.total_bytes());
}

TEST(RingArea, TheWordsOfRingsToOtherNodesComeWithTheRings) {
  const RingArea area(distant_ring_sizes(2, 5, 2, false));
  for (int rings = 1; rings <= area.sizes().rings; ++rings) {
    for (int ring = 0; ring < area.sizes().rings; ++ring) {
      const bool is_inside = area.grant(1, ring, 4, kDistantSizes - 1) + kLineBytes <= area.words_bytes(rings);
      EXPECT_EQ(is_inside, ring < rings) << ring << " of " << rings;
    }
  }
}

/// Each stream of a kind has a ring that no other has.
TEST(RingSizes, KindsHaveRingsOfTheirOwn) {
  const RingSizes sizes = distant_ring_sizes(2, 5, 2, false);
  std::set<int> rings;
  for (std::size_t number = 0; number < kRingKinds; ++number) {
    const auto kind = static_cast<RingKind>(number);
    const int streams = kind == RingKind::exchange ? 1 : sizes.streams_most();
    for (int stream = 0; stream < streams; ++stream) {
      const int ring = sizes.ring(kind, stream);
      EXPECT_TRUE(rings.insert(ring).second) << ring;
      EXPECT_LE(sizes.of(kind).entries, sizes.entries);
      EXPECT_EQ(sizes.of(kind).entries % static_cast<int>(sizes.of(kind).credit_group), 0);
    }
  }
  EXPECT_EQ(static_cast<int>(rings.size()), sizes.rings);
  EXPECT_EQ(ring_sizes(5, 2).ring(RingKind::exchange, 0), 0);
  EXPECT_EQ(ring_sizes(5, 2).ring(RingKind::long_flow, 3), 3);
}

/// A part of a team has memory for the ranks of the team. Memory is bounded where a fabric pins it.
TEST(RingSizes, FitWhateverTheTeam) {
  for (const std::size_t memory_bytes : {kUnbounded, std::size_t{64} << 20}) {
    for (int channels = 1; channels <= 8; ++channels) {
      std::size_t bytes = 0;
      for (int ranks = 1; ranks <= 1100; ranks += ranks < 300 ? 1 : 16) {
        const RingSizes sizes = ring_sizes(ranks, channels, memory_bytes);
        bytes = std::max(bytes, RingArea(sizes).total_bytes());
        EXPECT_LE(bytes, rings_bytes_most(ranks, channels, memory_bytes)) << ranks << ", " << channels << " channels";
        EXPECT_GE(sizes.entries, 8);
        EXPECT_LE(sizes.entries, kRingEntriesMax);
        EXPECT_EQ(sizes.entries & (sizes.entries - 1), 0);
        EXPECT_EQ(sizes.rings, ranks == 1 ? 1 : 16);
        EXPECT_GE(sizes.outbox_bytes, std::size_t{1} << 20);
        EXPECT_LE(sizes.outbox_bytes, memory_bytes / 4 / static_cast<std::size_t>(channels));
        EXPECT_EQ(sizes.outbox_bytes % 4096, 0u);
      }
    }
  }
  EXPECT_EQ(ring_sizes(8, 2).entries, 64);
  EXPECT_EQ(ring_sizes(256, 2).entries, 16);
  EXPECT_EQ(ring_sizes(1024, 2).entries, 8);
}

/// Entries of all peers at once take a quarter of bounded memory.
TEST(RingSizes, EntriesFitIntoBoundedMemory) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  for (const int ranks : {2, 3, 8, 64, 1024}) {
    const RingSizes sizes = distant_ring_sizes(1, ranks, 2, false, kBytes);
    const auto peers = static_cast<std::size_t>(ranks - 1);
    const KindSizes exchange = sizes.of(RingKind::exchange);
    EXPECT_LE(2 * peers * static_cast<std::size_t>(exchange.entries) *
                  distant_entry_bytes(sizes.sizes_of(RingKind::exchange) - 1),
              kBytes / 4)
        << ranks;
    EXPECT_GE(sizes.flow_sizes, sizes.exchange_sizes);
    EXPECT_GE(sizes.exchange_sizes, 2) << "more than what fits into a line";
  }
  EXPECT_EQ(distant_ring_sizes(1, 1024, 2, false).flow_sizes, kDistantSizes);
}

/// The same between nodes, of which none has more than 8 or 64 of the members.
TEST(RingSizes, FitWhateverTheTeamOnSeveralNodes) {
  for (const std::size_t memory_bytes : {kUnbounded, std::size_t{64} << 20}) {
    for (const int node : {1, 8, 64}) {
      for (const bool balances : {false, true}) {
        for (int channels = 1; channels <= 8; ++channels) {
          std::size_t bytes = 0;
          for (int ranks = 2; ranks <= 1100; ranks += ranks < 300 ? 1 : 23) {
            const int here = std::min(node, ranks);
            const RingArea area(distant_ring_sizes(here, ranks, channels, balances, memory_bytes));
            bytes = std::max(bytes, area.total_bytes());
            EXPECT_LE(bytes, distant_rings_bytes_most(here, ranks, channels, balances, memory_bytes))
                << ranks << ", " << node << " on a node, " << channels << " channels";
            for (const KindSizes& kind : area.sizes().kinds) EXPECT_EQ(kind.entries & (kind.entries - 1), 0);
            EXPECT_EQ(area.words_bytes(0), 0u);
            EXPECT_EQ(area.words_bytes(-2), 0u) << "a plan without streams";
          }
        }
      }
    }
  }
}

/// The figures of docs/execution.md.
TEST(RingSizes, AreAsLargeAsDocumented) {
  struct Row {
    int ranks;
    std::size_t most_bytes;
    std::size_t first_ring_bytes;
    std::size_t outboxes_bytes;
  };
  for (const Row& row : {Row{2, 233'472, 14'976, 4'194'304}, Row{8, 1'613'824, 104'832, 33'554'432},
                         Row{32, 7'131'136, 464'256, 134'217'728}, Row{256, 16'777'216, 1'077'120, 134'217'728},
                         Row{1024, 29'986'816, 2'487'936, 134'217'728}}) {
    EXPECT_EQ(rings_bytes_most(row.ranks, 2), row.most_bytes) << row.ranks;
    EXPECT_EQ(RingArea(ring_sizes(row.ranks, 2)).words_bytes(1), row.first_ring_bytes) << row.ranks;
    EXPECT_EQ(2 * ring_sizes(row.ranks, 2).outbox_bytes, row.outboxes_bytes) << row.ranks;
  }
  // In the least arena that a fabric pins.
  constexpr std::size_t kPinned = std::size_t{64} << 20;
  EXPECT_EQ(distant_rings_bytes_most(8, 256, 2, false, kPinned), 24'326'144u);
  EXPECT_EQ(distant_rings_bytes_most(8, 256, 8, false, kPinned), 84'713'472u);
}

TEST(RingRules, WhatIsNotPublishedLeavesEntries) {
  for (int entries = 1; entries <= kRingEntriesMax; ++entries) {
    const int every = entry_published_every(entries);
    EXPECT_GE(every, 1);
    EXPECT_GE(entries - (every - 1), (3 * entries) / 4);
  }
}

/// A message waits for the group that contains the message that had its entry, and groups follow one another.
TEST(Credits, OfAGroupFreeAllItsEntries) {
  for (std::uint64_t entries = 1; entries <= kRingEntriesMax; entries *= 2) {
    for (std::uint64_t group = 1; group <= entries; group *= 2) {
      SCOPED_TRACE(std::to_string(entries) + " entries, groups of " + std::to_string(group));
      for (std::uint64_t message = 0; message < 3 * entries; ++message) {
        ASSERT_EQ(credited_group(message, group), message - message % group);
        if (message < entries) continue;
        const std::uint64_t first = awaited_group(message, entries, group);
        ASSERT_EQ(credited_group(first, group), first) << "nobody gives that credit";
        ASSERT_LE(first, message - entries);
        ASSERT_GT(first + group, message - entries);
      }
    }
  }
}

/// Messages in any order that a ring allows: none is a ring's length ahead of one that is missing.
TEST(ReceiveEnd, CountsThePrefixOfWhatWasTaken) {
  for (const std::uint64_t entries : {1U, 2U, 3U, 8U, 64U}) {
    std::mt19937_64 random(entries);
    ReceiveEnd end;
    std::set<std::uint64_t> taken;
    std::uint64_t missing = 0;
    for (int i = 0; i < 5000; ++i) {
      std::vector<std::uint64_t> open;
      for (std::uint64_t n = missing; n < missing + entries; ++n) {
        if (!taken.contains(n)) open.push_back(n);
      }
      // Now and then the oldest last, so that the whole ring is taken ahead of it.
      const std::size_t from = random() % 4 == 0 || open.size() == 1 ? 0 : 1;
      const std::uint64_t message = open[from + random() % (open.size() - from)];
      taken.insert(message);
      end.take(message);
      while (taken.contains(missing)) ++missing;
      ASSERT_EQ(end.taken, missing) << entries << " entries, message " << message;
    }
  }
}

TEST(ReceiveEnd, AMessageThatWasNeverSentCountsToo) {
  ReceiveEnd end;
  end.take(0);
  end.take(2);
  end.take_below(7);
  EXPECT_EQ(end.taken, 7u);
  end.take(8);
  end.take(7);
  EXPECT_EQ(end.taken, 9u);
}

}  // namespace
}  // namespace torii
