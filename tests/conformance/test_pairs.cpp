// SPDX-License-Identifier: Apache-2.0
// Sends and receives below the public interface: every way that bytes take, on one node and between nodes, and peers
// that break the rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <tuple>

#include "tests/conformance/pair_rank.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

std::byte byte_of(int from, int to, int tag, int number, std::size_t at) {
  return static_cast<std::byte>(from * 131 + to * 71 + tag * 37 + number * 11 + static_cast<int>(at % 251));
}

struct Message {
  int from;
  int to;
  int tag;
  int number;  ///< among those with the same ranks and tag
  std::size_t bytes;
};

std::vector<Message> draw_messages(int ranks, std::uint64_t seed, std::size_t slot_bytes) {
  std::mt19937_64 random(seed);
  const std::array<std::size_t, 14> sizes = {
      0,      1,      24,     40, 41, 48, 100, slot_bytes - 17, slot_bytes - 16, slot_bytes - 15, 3 * 16384 + 5,
      262144, 262145, 600'001};
  std::map<std::tuple<int, int, int>, int> numbers;
  std::vector<Message> messages;
  for (int i = 0; i < 40 * ranks; ++i) {
    Message one{};
    one.from = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
    one.to = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
    one.tag = static_cast<int>(random() % 4);
    one.bytes = sizes[random() % (i % 5 == 0 ? sizes.size() : 10)];
    one.number = numbers[{one.from, one.to, one.tag}]++;
    messages.push_back(one);
  }
  return messages;
}

/// Tag 3 is received from any rank, so there the order of senders is open; everything else from a named one.
bool is_from_any(int tag) { return tag == 3; }

class Traffic : public testing::TestWithParam<std::tuple<int, int, int>> {};

Setting setting_of(int memory, int nodes, int ranks) {
  Setting setting;
  setting.memory = static_cast<Memory>(memory);
  for (int rank = 0; nodes > 1 && rank < ranks; ++rank) setting.nodes.push_back(rank % nodes);
  return setting;
}

void check_traffic(PairRank& own, int rank, const std::vector<Message>& messages, std::uint64_t seed) {
  std::mt19937_64 random(seed * 77 + static_cast<std::uint64_t>(rank));
  struct Expected {
    const Message* message;
    Receive* receive;
    std::vector<std::byte> to;
  };
  std::vector<Expected> expected;
  std::deque<const Message*> sends;
  std::deque<const Message*> receives;
  for (const Message& one : messages) {
    if (one.from == rank) sends.push_back(&one);
    if (one.to == rank) receives.push_back(&one);
  }
  expected.reserve(receives.size());
  // Receives in any order over tags and senders, but in the order of numbers within each.
  std::shuffle(receives.begin(), receives.end(), random);
  std::stable_sort(receives.begin(), receives.end(),
                   [](const Message* a, const Message* b) { return a->number < b->number; });
  while (!sends.empty() || !receives.empty()) {
    const bool sends_now = receives.empty() || (!sends.empty() && random() % 2 == 0);
    if (sends_now) {
      const Message& one = *sends.front();
      sends.pop_front();
      std::byte* const data = own.allocate(one.bytes);
      for (std::size_t i = 0; i < one.bytes; ++i) data[i] = byte_of(one.from, one.to, one.tag, one.number, i);
      own.send(one.to, one.tag, data, one.bytes);
    } else {
      const Message& one = *receives.front();
      receives.pop_front();
      Expected& next = expected.emplace_back();
      next.message = &one;
      next.to.resize(is_from_any(one.tag) ? 700'000 : one.bytes);
      next.receive = &own.receive(is_from_any(one.tag) ? kAnyRank : one.from, one.tag, next.to.data(), next.to.size());
    }
    if (random() % 3 == 0) own.pairs->progress();
  }
  ASSERT_TRUE(own.finish()) << name(own.pairs->status()) << ' ' << own.pairs->refusal() << ", " << own.pairs->open()
                            << " open";
  std::map<std::pair<int, int>, int> from_any;
  for (const Expected& one : expected) {
    const Envelope& envelope = one.receive->envelope;
    const int number = is_from_any(one.message->tag) ? from_any[{envelope.from, envelope.tag}]++ : one.message->number;
    ASSERT_EQ(envelope.tag, one.message->tag);
    ASSERT_EQ(one.receive->status, Status::ok);
    if (!is_from_any(one.message->tag)) {
      ASSERT_EQ(envelope.from, one.message->from);
      ASSERT_EQ(envelope.bytes, one.message->bytes);
    }
    std::size_t right = 0;
    while (right < envelope.bytes && one.to[right] == byte_of(envelope.from, rank, envelope.tag, number, right))
      ++right;
    ASSERT_EQ(right, envelope.bytes) << "from " << envelope.from << " with tag " << envelope.tag;
  }
}

TEST_P(Traffic, AllBytesComeInOrder) {
  const auto [memory, nodes, ranks] = GetParam();
#if defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kSeeds = 1;
#else
  constexpr std::uint64_t kSeeds = 2;
#endif
  for (const Seed& seed : seeds_of("conformance_pairs", is_full() ? 100 : kSeeds)) {
    const Setting setting = setting_of(memory, nodes, ranks);
    const std::vector<Message> messages = draw_messages(ranks, seed.value, pair_place_bytes(ranks));
    run_ranks_as_threads(ranks, [&](Bootstrap& bootstrap) {
      SCOPED_TRACE(seed);
      PairRank own(bootstrap, setting, seed.value);
      check_traffic(own, bootstrap.rank(), messages, seed.value);
      own.leave();
    });
  }
}

std::string way_name(const testing::TestParamInfo<std::tuple<int, int, int>>& way) {
  constexpr auto kMemories = std::to_array({"InArena", "Readable", "Closed"});
  const int nodes = std::get<1>(way.param);
  return std::string(kMemories[static_cast<std::size_t>(std::get<0>(way.param))]) + "Nodes" + std::to_string(nodes) +
         "Ranks" + std::to_string(std::get<2>(way.param));
}

INSTANTIATE_TEST_SUITE_P(Ways, Traffic,
                         testing::Combine(testing::Values(0, 1, 2), testing::Values(1, 2, 3),
                                          testing::Values(1, 2, 3, 5)),
                         way_name);

std::byte* bytes(std::array<int, 2>& values) { return reinterpret_cast<std::byte*>(values.data()); }

TEST(Matching, TagsChooseAmongSendsOfOneRank) {
  with_two([](PairRank& own, int rank) {
    std::array<int, 2> first = {1, 2};
    std::array<int, 2> second = {3, 4};
    std::array<int, 2> third = {5, 6};
    if (rank == 0) {
      own.send(1, 7, bytes(first), 8);
      own.send(1, 9, bytes(second), 8);
      own.send(1, 7, bytes(third), 8);
      EXPECT_TRUE(own.finish());
      return own.meet();
    }
    own.meet();
    std::array<std::array<int, 2>, 3> to{};
    own.receive(0, 9, bytes(to[0]), 8);
    ASSERT_TRUE(own.finish());
    EXPECT_EQ(to[0], second) << "although another came first";
    const Receive& any = own.receive(0, kAnyTag, bytes(to[1]), 8);
    own.receive(kAnyRank, 7, bytes(to[2]), 8);
    ASSERT_TRUE(own.finish());
    EXPECT_EQ(to[1], first);
    EXPECT_EQ(to[2], third);
    EXPECT_EQ(any.envelope.tag, 7);
  });
}

TEST(Matching, APostedReceiveThatIsEarlierTakesTheSend) {
  with_two([](PairRank& own, int rank) {
    std::array<int, 2> value = {1, 2};
    if (rank == 0) {
      own.meet();
      own.send(1, 5, bytes(value), 8);
      EXPECT_TRUE(own.finish());
      return;
    }
    std::array<std::array<int, 2>, 3> to{};
    Receive& other = own.receive(0, 6, bytes(to[0]), 8);
    const Receive& any = own.receive(kAnyRank, kAnyTag, bytes(to[1]), 8);
    Receive& late = own.receive(0, 5, bytes(to[2]), 8);
    own.meet();
    ASSERT_TRUE(own.go_on_until([&] { return any.done; }));
    EXPECT_EQ(to[1], value);
    EXPECT_FALSE(late.done);
    EXPECT_TRUE(own.pairs->withdraw(late));
    EXPECT_TRUE(own.pairs->withdraw(other));
    EXPECT_FALSE(own.pairs->withdraw(other));
    EXPECT_EQ(own.pairs->open(), 0);
  });
}

TEST(Matching, ARankSendsToItself) {
  run_pairs(1, [](PairRank& own, int) {
    std::array<int, 2> from = {8, 9};
    std::array<int, 2> to{};
    EXPECT_TRUE(own.send(0, 1, bytes(from), 8).done) << "a short one is kept";
    const std::array<int, 2> as_sent = from;
    from = {};
    own.receive(0, 1, bytes(to), 8);
    EXPECT_EQ(to, as_sent);
    std::vector<std::byte> long_one(100'000, std::byte{7});
    const Send& send = own.send(0, 2, long_one.data(), long_one.size());
    EXPECT_FALSE(send.done) << "nobody has received it";
    std::vector<std::byte> got(long_one.size());
    own.receive(0, 2, got.data(), got.size());
    EXPECT_TRUE(send.done);
    EXPECT_EQ(got, long_one);
    EXPECT_EQ(own.pairs->open(), 0);
  });
}

TEST(Ways, ALongSendIsReadWhereItIs) {
  const Setting setting = {.memory = Memory::readable};
  run_pairs(
      2,
      [](PairRank& own, int rank) {
        std::vector<std::byte> bytes(1 << 20, std::byte{5});
        if (rank == 0) {
          own.send(1, 0, bytes.data(), bytes.size());
          EXPECT_TRUE(own.finish());
        } else {
          std::vector<std::byte> to(bytes.size());
          own.receive(0, 0, to.data(), to.size());
          EXPECT_TRUE(own.finish());
          EXPECT_EQ(to, bytes);
          EXPECT_EQ(own.reads(), 4U) << "in portions of 256 KiB";
        }
      },
      setting);
}

TEST(Ways, EachPortionThatIsReadMovesTheSender) {
  const Setting setting = {.memory = Memory::in_arena};
  run_pairs(
      2,
      [](PairRank& own, int rank) {
        constexpr std::size_t kBytes = 3 << 18;
        if (rank == 0) {
          const Send& send = own.send(1, 0, own.allocate(kBytes), kBytes);
          own.meet();
          own.meet();
          EXPECT_TRUE(own.pairs->progress());
          EXPECT_FALSE(own.pairs->progress());
          EXPECT_FALSE(send.done);
          own.meet();
          EXPECT_TRUE(own.finish());
        } else {
          std::vector<std::byte> to(kBytes);
          own.receive(0, 0, to.data(), to.size());
          own.meet();
          EXPECT_TRUE(own.pairs->progress());
          own.meet();
          own.meet();
          EXPECT_TRUE(own.finish());
        }
      },
      setting);
}

TEST(Places, ToARankAreFewerThanAMiB) {
  EXPECT_EQ(pair_place_bytes(2), 16384U + 64);
  EXPECT_EQ(pair_place_bytes(16), 8192U);
  EXPECT_EQ(pair_place_bytes(64), 2048U);
  EXPECT_EQ(pair_place_bytes(1024), 128U);
  EXPECT_EQ(pair_place_bytes(100'000), 64U);
}

}  // namespace
}  // namespace torii::tests
