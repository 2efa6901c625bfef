// SPDX-License-Identifier: Apache-2.0
// The memory of teams and their outboxes: what is kept for the next team, and what of it is zero.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "api/context/late_writers.hpp"
#include "api/context/team_memory_pool.hpp"

namespace torii {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMemory = 4096 * kKiB;
constexpr std::size_t kOutbox = 1024 * kKiB;

/// The memory of a team that rests when the test says so.
class Gone final : public RetiredMemory {
 public:
  Gone(std::uint64_t offset, Touched touched, const Rest& rest)
      : RetiredMemory(offset, kMemory), touched_(touched), rest_(rest) {}
  Rest rest() noexcept override { return rest_; }
  bool is_left_to_engines() const noexcept override { return true; }
  void forget() noexcept override {}
  std::optional<Touched> touched() const noexcept override { return touched_; }

 private:
  Touched touched_;
  const Rest& rest_;
};

class TeamMemoryPoolTest : public ::testing::Test {
 protected:
  /// Its memory comes back at once if `rest_` says so, or else with the next call that looks.
  void retire(std::uint64_t offset, Touched touched, std::vector<OutboxMemory> outboxes = {}) {
    auto gone = std::make_unique<Gone>(offset, touched, rest_);
    gone->add_outboxes(std::move(outboxes));
    pool_.retire(std::move(gone));
  }
  std::byte* at(std::uint64_t offset) { return arena_.base() + offset; }
  bool is_zero(std::uint64_t offset, std::size_t bytes) {
    return std::all_of(at(offset), at(offset) + bytes, [](std::byte one) { return one == std::byte{0}; });
  }
  std::size_t bytes_of_pages() {
    struct stat is = {};
    EXPECT_EQ(fstat(arena_.fd(), &is), 0);
    return static_cast<std::size_t>(is.st_blocks) * 512;
  }

  shared_memory::Arena arena_{shared_memory::kArenaBytesMin};
  LateWriters late_writers_{arena_};
  TeamMemoryPool pool_{arena_, late_writers_};
  RetiredMemory::Rest rest_ = RetiredMemory::Rest::safe;
};

TEST_F(TeamMemoryPoolTest, ClearsThePartsThatWereTouchedAndNoOthers) {
  const std::uint64_t offset = pool_.allocate(kMemory);
  constexpr std::size_t kPairs = 1024 * kKiB;
  constexpr std::size_t kRings = 2048 * kKiB;
  std::memset(at(offset), 1, 20 * kKiB);
  std::memset(at(offset + kPairs), 1, 12 * kKiB);
  std::memset(at(offset + kRings), 1, 40 * kKiB);
  const std::size_t pages = bytes_of_pages();
  retire(offset, {Stretch{0, 20 * kKiB}, Stretch{kPairs, 12 * kKiB}, Stretch{kRings, 40 * kKiB}});
  EXPECT_EQ(bytes_of_pages(), pages) << "what was not touched has no pages";
  ASSERT_EQ(pool_.allocate(kMemory), offset);
  EXPECT_TRUE(is_zero(offset, kMemory));
}

TEST_F(TeamMemoryPoolTest, DoesNotKeepMemoryOfWhichMuchWasTouched) {
  const std::uint64_t offset = pool_.allocate(kMemory);
  std::memset(at(offset), 1, 3072 * kKiB);
  retire(offset, {Stretch{0, 400 * kKiB}, Stretch{}, Stretch{1024 * kKiB, 2048 * kKiB}});
  EXPECT_EQ(arena_.used_bytes(), 0U);
  EXPECT_EQ(bytes_of_pages(), 0U);
}

/// Payloads stay in a spare outbox.
TEST_F(TeamMemoryPoolTest, NeverTakesAnOutboxForZeroedMemory) {
  for (const std::size_t bytes : {kMemory, kOutbox}) {
    const std::uint64_t offset = pool_.allocate(kMemory);
    OutboxMemory outbox = pool_.take_outbox(bytes);
    outbox.touched_bytes = 100 * kKiB;
    std::memset(at(outbox.offset), 0xab, outbox.touched_bytes);
    retire(offset, {}, {outbox});
    std::vector<std::uint64_t> zeroed;
    for (int i = 0; i < 3; ++i) {
      zeroed.push_back(pool_.allocate(bytes));
      EXPECT_TRUE(is_zero(zeroed.back(), bytes)) << i << " of " << bytes;
      EXPECT_NE(zeroed.back(), outbox.offset);
    }
    const OutboxMemory again = pool_.take_outbox(bytes);
    EXPECT_EQ(again.offset, outbox.offset) << "it was not kept";
    EXPECT_EQ(again.touched_bytes, outbox.touched_bytes);
    for (const std::uint64_t one : zeroed) pool_.free(one);
    pool_.free(again.offset);
    if (bytes == kOutbox) pool_.free(pool_.allocate(kMemory));
  }
  EXPECT_EQ(arena_.used_bytes(), 0U);
}

TEST_F(TeamMemoryPoolTest, GivesAnOutboxBackWithTheMemoryOfItsTeam) {
  const std::uint64_t offset = pool_.allocate(kMemory);
  const OutboxMemory outbox = pool_.take_outbox(kOutbox);
  rest_ = RetiredMemory::Rest::none;
  retire(offset, {}, {outbox});
  const OutboxMemory other = pool_.take_outbox(kOutbox);
  EXPECT_NE(other.offset, outbox.offset) << "somebody may still read it";
  rest_ = RetiredMemory::Rest::safe;
  EXPECT_EQ(pool_.take_outbox(kOutbox).offset, outbox.offset);
}

/// Late writes from another node go into the memory. Nobody writes into an outbox from there.
TEST_F(TeamMemoryPoolTest, GivesAnOutboxBackWhoseTeamHasAWriteUnderWay) {
  const std::uint64_t offset = pool_.allocate(kMemory);
  OutboxMemory outbox = pool_.take_outbox(kOutbox);
  rest_ = RetiredMemory::Rest::never;
  retire(offset, {}, {outbox});
  EXPECT_EQ(pool_.take_outbox(kOutbox).offset, outbox.offset);
  EXPECT_NE(pool_.allocate(kMemory), offset);
}

TEST_F(TeamMemoryPoolTest, FreesOutboxesThatHaveManyPagesOrAreMany) {
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t offset = pool_.allocate(kMemory);
    std::vector<OutboxMemory> outboxes;
    for (int i = 0; i < 20; ++i) outboxes.push_back(pool_.take_outbox(kOutbox));
    for (OutboxMemory& one : outboxes) one.touched_bytes = kOutbox;
    retire(offset, {}, outboxes);
    EXPECT_EQ(arena_.used_bytes(), kMemory);
  }
  std::vector<OutboxMemory> outboxes;
  for (int i = 0; i < 20; ++i) outboxes.push_back(pool_.take_outbox(kOutbox));
  retire(pool_.allocate(kMemory), {}, outboxes);
  EXPECT_LE(arena_.used_bytes(), kMemory + 10 * kOutbox);
}

TEST_F(TeamMemoryPoolTest, FreesSpareOutboxesWhereTheArenaIsFull) {
  const OutboxMemory outbox = pool_.take_outbox(kOutbox);
  retire(pool_.allocate(kMemory), {}, {outbox});
  const std::uint64_t all = pool_.take(arena_.bytes(), shared_memory::Backing::on_touch);
  EXPECT_EQ(arena_.used_bytes(), arena_.bytes());
  pool_.free(all);
}

/// Another context may go on with the arena.
TEST_F(TeamMemoryPoolTest, LeavesNoOutboxBehind) {
  const OutboxMemory spare = pool_.take_outbox(kOutbox);
  retire(pool_.allocate(kMemory), {}, {spare});
  const OutboxMemory held = pool_.take_outbox(2 * kOutbox);
  rest_ = RetiredMemory::Rest::none;
  retire(pool_.allocate(kMemory), {}, {held});
  for (const std::uint64_t offset : pool_.close()) arena_.free(offset);
  EXPECT_EQ(arena_.used_bytes(), 0U);
}

}  // namespace
}  // namespace torii
