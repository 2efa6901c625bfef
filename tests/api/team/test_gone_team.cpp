// SPDX-License-Identifier: Apache-2.0
// When the memory of a team between nodes may be used again, in particular if a member has closed an engine.
#include "api/team/gone_team.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/agreement/agreement_messages.hpp"
#include "api/agreement/control_writer.hpp"

namespace torii {
namespace {

/// Rank 0 of two on different nodes. Bytes are what the test writes into the arena.
class Alone final : public Transport {
 public:
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return 0; }
  int ranks() const noexcept override { return 2; }
  int node(int rank) const noexcept override { return rank; }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override { return peer == 0 ? arena_ + offset : nullptr; }
  Status put(const Put&) noexcept override { return Status::ok; }
  Status put_word(int, std::uint64_t, std::uint64_t) noexcept override { return Status::ok; }
  Status progress() noexcept override { return Status::ok; }
  bool drained() noexcept override { return true; }
  void sleep(SleepMark&, int, bool (*)(void*), void*) noexcept override {}
  bool alive(int) noexcept override { return true; }
  bool oversubscribed() const noexcept override { return false; }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  Capabilities capabilities_ = {.name = "alone", .engines = 2};
  std::unique_ptr<std::byte[]> memory_ = std::make_unique<std::byte[]>(kBytes + 4096);
  std::byte* arena_ = memory_.get() + (4096 - reinterpret_cast<std::uintptr_t>(memory_.get()) % 4096) % 4096;
};

constexpr std::uint64_t kOffset = 4096;

class GoneBetweenNodes : public testing::Test {
 protected:
  std::unique_ptr<GoneTeam> gone_team() {
    return std::make_unique<GoneTeam>(transport_, kOffset, agreement_messages_bytes(2), std::vector{0, 1}, true);
  }
  void say_last_word(int member, int engine, std::uint64_t said = ControlWriter::kDeparted) {
    std::byte* const messages = transport_.mapped(0, kOffset + agreement_messages_offset());
    const std::size_t inbox = sizeof(MessagesMemory) + static_cast<std::size_t>(member) * sizeof(PeerInbox);
    const std::size_t word = offsetof(PeerInbox, last_words) + static_cast<std::size_t>(engine) * sizeof(std::uint64_t);
    store_word(messages + inbox + word, said);
  }

  Alone transport_;
};

TEST_F(GoneBetweenNodes, IsAtRestWhenLastWordsHaveComeThroughAllEngines) {
  const auto memory = gone_team();
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::none);
  for (const int member : {0, 1}) say_last_word(member, 0);
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::none);
  say_last_word(0, 1);
  say_last_word(1, 1, ControlWriter::kLeft);
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::none);
  say_last_word(1, 1);
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::safe);
}

/// The device of a closed engine may still write behind last words that other engines carried.
TEST_F(GoneBetweenNodes, IsNeverUsedAgainIfAMemberHasClosedAnEngine) {
  const auto memory = gone_team();
  for (const int engine : {0, 1}) say_last_word(1, engine, ControlWriter::kDepartedEarly);
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::none) << "puts of this rank may be under way";
  for (const int engine : {0, 1}) say_last_word(0, engine);
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::never);
}

/// A rank puts to itself without engines.
TEST_F(GoneBetweenNodes, MayBeUsedAgainIfOnlyThisRankHasClosedAnEngine) {
  const auto memory = gone_team();
  for (const int engine : {0, 1}) {
    say_last_word(0, engine, ControlWriter::kDepartedEarly);
    say_last_word(1, engine);
  }
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::safe);
}

}  // namespace
}  // namespace torii
