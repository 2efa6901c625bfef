// SPDX-License-Identifier: Apache-2.0
// How extents of an outbox come and go.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "runtime/rings/outbox.hpp"

namespace torii {
namespace {

/// A ring of which this test is the receiver.
struct Reader {
  std::uint64_t count = 0;
  std::uint64_t sent = 0;
  SendEnd end;
  Reader() { end.count = reinterpret_cast<const std::byte*>(&count); }
};

TEST(Outbox, ExtentsOfUnreadCallsAreApart) {
  std::mt19937_64 random(3);
  constexpr std::size_t kBytes = 64 * 40;
  std::deque<Reader> readers(3);
  Outbox outbox(kBytes);
  outbox.allow_readers(3);
  struct Call {
    std::size_t begin;
    std::size_t bytes;
    std::vector<std::uint64_t> until;  ///< by reader; 0: does not read it
  };
  std::deque<Call> unread;
  int refused = 0;
  int unrecorded = 0;
  for (int i = 0; i < 20000; ++i) {
    // Now and then readers go on.
    for (Reader& reader : readers) {
      if (random() % 3 == 0) reader.count = std::min(reader.sent, reader.count + random() % 4);
    }
    const std::size_t bytes = 64 * (1 + random() % (random() % 8 == 0 ? 40 : 6));
    const std::size_t first = random() % 3;
    const std::size_t count = random() % (4 - first);
    const auto begin = outbox.claim(bytes, count);
    std::erase_if(unread, [&](const Call& call) {
      for (std::size_t r = 0; r < 3; ++r) {
        if (readers[r].count < call.until[r]) return false;
      }
      return true;
    });
    if (!begin) {
      ++refused;
      ASSERT_FALSE(unread.empty()) << "there was room";
      continue;
    }
    ASSERT_LE(*begin + bytes, kBytes);
    for (const Call& call : unread) {
      ASSERT_TRUE(*begin + bytes <= call.begin || call.begin + call.bytes <= *begin) << "call " << i;
    }
    if (count == 0) {
      ++unrecorded;
      continue;
    }
    Call call{*begin, bytes, {0, 0, 0}};
    for (std::size_t r = first; r < first + count; ++r) {
      call.until[r] = ++readers[r].sent;
      outbox.add_reader(readers[r].end, readers[r].sent);
    }
    unread.push_back(std::move(call));
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(unrecorded, 100);
  EXPECT_LE(outbox.touched_bytes(), kBytes);
}

/// Between nodes nobody reads an outbox once the call has ended.
TEST(Outbox, HasRoomAtOnceForCallsThatNobodyReads) {
  constexpr std::size_t kBytes = 64 * 8;
  Outbox outbox(kBytes);
  outbox.allow_readers(0);
  EXPECT_FALSE(outbox.claim(64, 1)) << "no reader was allowed";
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(outbox.claim(kBytes, 0), 0u) << i;
  EXPECT_EQ(outbox.awaited().ring, nullptr);
  Reader reader;
  outbox.allow_readers(1);
  for (const std::size_t begin : {0, 64}) {
    EXPECT_EQ(outbox.claim(64, 1), begin);
    outbox.add_reader(reader.end, ++reader.sent);
  }
  EXPECT_EQ(outbox.claim(384, 0), 128u);
  EXPECT_EQ(outbox.claim(64, 0), 128u) << "where the last one was";
  reader.count = 1;
  EXPECT_FALSE(outbox.claim(448, 0)) << "the second extent is in between";
  EXPECT_EQ(outbox.claim(384, 1), 128u) << "behind the second extent, which is still read";
  outbox.add_reader(reader.end, ++reader.sent);
  EXPECT_EQ(outbox.claim(64, 0), 0u) << "before it";
  EXPECT_EQ(outbox.claim(64, 1), 0u);
}

TEST(Outbox, StaysLowWhileReadersKeepUp) {
  Reader reader;
  Outbox outbox(std::size_t{8} << 20);
  outbox.allow_readers(1);
  for (int i = 0; i < 10000; ++i) {
    ASSERT_TRUE(outbox.claim(1024, 1));
    outbox.add_reader(reader.end, ++reader.sent);
    reader.count = reader.sent;
  }
  EXPECT_LE(outbox.touched_bytes(), std::size_t{64} << 10);
}

/// More would touch new pages for nothing.
TEST(Outbox, HoldsTwoLongCallsAtATime) {
  Reader reader;
  constexpr std::size_t kLong = std::size_t{1} << 20;
  Outbox outbox(8 * kLong);
  outbox.allow_readers(1);
  const auto claim = [&] {
    const auto begin = outbox.claim(kLong, 1);
    if (begin) outbox.add_reader(reader.end, ++reader.sent);
    return begin;
  };
  EXPECT_EQ(claim(), 0u);
  EXPECT_EQ(claim(), kLong);
  EXPECT_FALSE(claim());
  reader.count = 1;
  EXPECT_EQ(claim(), 0u);
  EXPECT_FALSE(claim());
  reader.count = 2;
  EXPECT_EQ(claim(), kLong);
  reader.count = 4;
  EXPECT_EQ(claim(), 0u);
  EXPECT_EQ(outbox.touched_bytes(), 2 * kLong);
}

TEST(Outbox, NamesWhomItWaitsFor) {
  Reader slow;
  slow.end.peer = 5;
  Outbox outbox(1024);
  outbox.allow_readers(1);
  EXPECT_EQ(outbox.awaited().ring, nullptr);
  ASSERT_EQ(outbox.claim(1024, 1), 0u);
  outbox.add_reader(slow.end, 1);
  EXPECT_FALSE(outbox.claim(64, 1));
  EXPECT_EQ(outbox.awaited().ring->peer, 5);
  slow.count = 1;
  EXPECT_EQ(outbox.claim(64, 1), 0u);
}

/// Calls to one rank after the other, none of which has read: their number is bounded, not their bytes alone.
TEST(Outbox, TakesSoManyCallsAheadAndNoMore) {
  Reader reader;
  Outbox outbox(std::size_t{8} << 20);
  outbox.allow_readers(2);
  int claimed = 0;
  while (outbox.claim(64, 1)) {
    outbox.add_reader(reader.end, ++reader.sent);
    ASSERT_LT(++claimed, 1000);
  }
  EXPECT_GE(claimed, 64);
  outbox.allow_readers(8);  // more room for readers, and the old ones are still known
  while (outbox.claim(64, 1)) {
    outbox.add_reader(reader.end, ++reader.sent);
    ASSERT_LT(++claimed, 1000);
  }
  EXPECT_FALSE(outbox.claim(64, 1));
  reader.count = 1;
  EXPECT_TRUE(outbox.claim(64, 1));
}

}  // namespace
}  // namespace torii
