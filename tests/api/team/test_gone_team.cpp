// SPDX-License-Identifier: Apache-2.0
// When the memory of a team between nodes may be used again, in particular after an engine was closed.
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
  void sleep(int, bool (*)(void*), void*) noexcept override {}
  bool alive(int) noexcept override { return true; }
  void close_engines(std::uint32_t engines) noexcept override { closed_ |= engines; }
  std::uint32_t closed_engines() const noexcept override { return closed_; }
  bool oversubscribed() const noexcept override { return false; }

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  Capabilities capabilities_ = {.name = "alone", .engines = 2};
  std::uint32_t closed_ = 0;
  std::unique_ptr<std::byte[]> memory_ = std::make_unique<std::byte[]>(kBytes + 4096);
  std::byte* arena_ = memory_.get() + (4096 - reinterpret_cast<std::uintptr_t>(memory_.get()) % 4096) % 4096;
};

constexpr std::uint64_t kOffset = 4096;

class GoneBetweenNodes : public testing::Test {
 protected:
  std::unique_ptr<GoneTeam> gone_team(std::uint32_t engines_closed_before) {
    auto memory = std::make_unique<GoneTeam>(transport_, kOffset, agreement_messages_bytes(2), std::vector{0, 1}, true);
    memory->set_engines_closed_before(engines_closed_before);
    return memory;
  }
  void say_last_word(int member, int engine) {
    std::byte* const messages = transport_.mapped(0, kOffset + agreement_messages_offset());
    const std::size_t inbox = sizeof(MessagesMemory) + static_cast<std::size_t>(member) * sizeof(PeerInbox);
    const std::size_t word = offsetof(PeerInbox, last_words) + static_cast<std::size_t>(engine) * sizeof(std::uint64_t);
    store_word(messages + inbox + word, ControlWriter::kDeparted);
  }
  void say_last_words() {
    for (const int member : {0, 1}) {
      for (const int engine : {0, 1}) say_last_word(member, engine);
    }
  }

  Alone transport_;
};

TEST_F(GoneBetweenNodes, IsAtRestWhenLastWordsHaveComeThroughAllEngines) {
  const auto memory = gone_team(0);
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::none);
  for (const int member : {0, 1}) say_last_word(member, 0);
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::none);
  say_last_words();
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::safe);
}

/// What the device of a closed engine still writes comes behind last words that others carried.
TEST_F(GoneBetweenNodes, IsNeverUsedAgainIfAnEngineWasClosedMeanwhile) {
  const auto memory = gone_team(0);
  transport_.close_engines(1);
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::none) << "puts of this rank may be under way";
  say_last_words();
  EXPECT_EQ(memory->rest(), RetiredMemory::Rest::never);
  EXPECT_EQ(gone_team(1)->rest(), RetiredMemory::Rest::safe) << "nothing of it went through that engine";
  transport_.close_engines(2);
  EXPECT_EQ(gone_team(1)->rest(), RetiredMemory::Rest::never);
}

}  // namespace
}  // namespace torii
