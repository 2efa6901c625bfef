// SPDX-License-Identifier: Apache-2.0
// Sends and receives below the public interface that fail: what does not fit, peers that break the rules, and ranks
// that give up.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/conformance/pair_rank.hpp"

namespace torii::tests {
namespace {

void expect_mismatch(std::size_t room, std::uint16_t type, std::size_t sent_bytes, bool posted) {
  with_two([&](PairRank& own, int rank) {
    std::vector<std::byte> bytes(std::max(room, sent_bytes));
    if (rank == 0) {
      if (posted) own.meet();
      own.send(1, 3, bytes.data(), sent_bytes);
      if (!posted) own.meet();
      return;
    }
    if (!posted) own.meet();
    const Receive& receive = own.receive(0, 3, bytes.data(), room, type);
    if (posted) own.meet();
    EXPECT_FALSE(own.finish());
    EXPECT_EQ(own.pairs->status(), Status::mismatch);
    EXPECT_EQ(own.pairs->failed_peer(), 0);
    EXPECT_EQ(own.pairs->mismatched().envelope.bytes, sent_bytes);
    EXPECT_EQ(own.pairs->mismatched().room_bytes, room);
    EXPECT_EQ(receive.status, Status::mismatch);
  });
}

TEST(Refusals, ASendThatIsTooLongOrOfAnotherType) {
  for (const bool posted : {false, true}) {
    expect_mismatch(7, 1, 8, posted);
    expect_mismatch(99'999, 1, 100'000, posted);
    expect_mismatch(8, 2, 8, posted);
  }
}

/// On one node or, unless rank 1 receives something there, between two.
void expect_refusal(const Heading& heading, std::size_t forged_bytes, const std::string& text, bool receives = false) {
  for (const bool are_apart : {false, true}) {
    if (are_apart && receives) continue;
    Setting setting;
    if (are_apart) setting.nodes = {0, 1};
    run_pairs(
        2,
        [&](PairRank& own, int rank) {
          if (rank == 0) {
            own.forge(1, heading, forged_bytes);
            return own.meet();
          }
          own.meet();
          std::vector<std::byte> to(1 << 20);
          if (receives) own.receive(0, 0, to.data(), to.size());
          EXPECT_FALSE(own.go_on_until([] { return false; }));
          EXPECT_EQ(own.pairs->status(), Status::transport);
          EXPECT_EQ(own.pairs->failed_peer(), 0);
          EXPECT_NE(own.pairs->refusal().find(text), std::string::npos) << own.pairs->refusal();
          own.pairs->abandon(Status::transport);
          EXPECT_EQ(own.pairs->open(), 0);
          for (const Receive& one : own.receives) EXPECT_EQ(one.status, Status::transport);
        },
        setting);
  }
}

TEST(HostilePeers, MessagesThatNobodySendsAreRefused) {
  Heading heading;
  heading.kind = static_cast<MessageKind>(9);
  expect_refusal(heading, 0, "a message of kind 9");
  heading.kind = MessageKind::receipt;
  heading.bytes = 4;
  expect_refusal(heading, 0, "answers send 4");
  heading.kind = MessageKind::request;
  expect_refusal(heading, 0, "answers send 4");
  heading.kind = MessageKind::part;
  heading.bytes = 8;
  expect_refusal(heading, 8, "nobody has requested");
  heading.kind = MessageKind::whole;
  heading.bytes = 1 << 20;
  expect_refusal(heading, 100, "1048576 bytes at once");
  heading.bytes = 100;
  expect_refusal(heading, 8, "100 bytes at once with tag 0, and there is room for 40");
  heading.bytes = 8;
  heading.tag = -4;
  expect_refusal(heading, 8, "tag -4");
  heading.tag = 0;
  heading.kind = MessageKind::announcement;
  heading.reach = kInArena;
  heading.type = 1;
  heading.bytes = 100'000;
  expect_refusal(heading, sizeof(Announced), "bytes of its send stand at offset", true);
}

TEST(Abandoning, EndsAllThatIsNotDone) {
  with_two([](PairRank& own, int rank) {
    std::vector<std::byte> long_one(100'000);
    if (rank == 0) {
      own.send(1, 1, long_one.data(), long_one.size());
      own.send(0, 2, long_one.data(), long_one.size());
      own.receive(1, 3, long_one.data(), long_one.size());
      EXPECT_EQ(own.pairs->open(), 3);
      own.pairs->abandon(Status::peer_lost);
      EXPECT_EQ(own.pairs->open(), 0);
      for (const Send& one : own.sends) EXPECT_TRUE(one.done && one.status == Status::peer_lost);
      for (const Receive& one : own.receives) EXPECT_TRUE(one.done && one.status == Status::peer_lost);
    }
  });
}

/// Ranks meet in between by other means.
TEST(Abandoning, ASenderThatHasFailedMayChangeItsBytes) {
  for (const Memory memory : {Memory::in_arena, Memory::readable}) {
    const Setting setting = {.memory = memory};
    run_pairs(
        2,
        [](PairRank& own, int rank) {
          constexpr std::size_t kBytes = 3 << 20;
          if (rank == 0) {
            std::byte* const bytes = own.allocate(kBytes);
            std::fill(bytes, bytes + kBytes, std::byte{1});
            own.send(1, 0, bytes, kBytes);
            own.meet();
            own.meet();  // the other one has read a part
            own.pairs->abandon(Status::aborted);
            std::fill(bytes, bytes + kBytes, std::byte{2});
            own.meet();
          } else {
            std::vector<std::byte> to(kBytes);
            const Receive& receive = own.receive(0, 0, to.data(), to.size());
            own.meet();
            EXPECT_TRUE(own.pairs->progress());
            EXPECT_FALSE(receive.done);
            own.meet();
            own.meet();
            for (int i = 0; i < 100; ++i) EXPECT_FALSE(own.pairs->progress());
            EXPECT_FALSE(receive.done) << "its bytes are of two kinds";
            own.pairs->abandon(Status::aborted);
            EXPECT_EQ(receive.status, Status::aborted);
          }
        },
        setting);
  }
}

}  // namespace
}  // namespace torii::tests
