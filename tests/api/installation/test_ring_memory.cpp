// SPDX-License-Identifier: Apache-2.0
// The memory of standing rings in teams that come and go: when an outbox is taken, what a refused one does to the team,
// and what is left for the next team.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torii/collectives.h>
#include <torii/torii.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/base/platform.hpp"
#include "runtime/rings/ring_area.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
/// Bytes of an outbox of a team of two and of three ranks with two channels.
constexpr std::size_t kOutbox = 2 * kMiB;
constexpr std::size_t kOutboxOfThree = 8 * kMiB;
/// Elements whose bytes fit into a line, and elements that need an outbox.
constexpr std::size_t kShort = 8;
constexpr std::size_t kJustLong = 15;
constexpr std::size_t kLong = 100;
/// Bytes of the words of 16 rings from each of two ranks on four channels.
const std::size_t kWords = RingArea(ring_sizes(2, 4)).words_bytes(16);

/// Sees what arenas ask of the machine, and has it refused to ranks.
class Machine final : public Platform {
 public:
  Machine() { set_platform(this); }
  ~Machine() override { set_platform(nullptr); }
  bool grants(std::size_t bytes) noexcept override {
    if (bytes == kOutbox) ++outboxes;
    if (bytes > kMiB / 4 && bytes < kMiB / 2) ++teams;
    if (bytes >= kWords && bytes < kWords + 2 * 4096) ++words;
    std::size_t most = most_bytes;
    while (most < bytes && !most_bytes.compare_exchange_weak(most, bytes)) {
    }
    return (bytes != kOutbox && bytes != kOutboxOfThree) || !refuses_rank;
  }
  std::optional<std::size_t> memory_left_bytes() noexcept override { return rank_left_bytes; }

  std::atomic<int> outboxes = 0;  ///< asked for
  std::atomic<int> teams = 0;     ///< of two ranks and channels whose memory was asked for: about 0.4 MiB
  std::atomic<int> words = 0;     ///< pages of all words of two ranks and four channels
  std::atomic<std::size_t> most_bytes = 0;
  // Of this thread's rank:
  static thread_local bool refuses_rank;
  static thread_local std::optional<std::size_t> rank_left_bytes;
};
thread_local bool Machine::refuses_rank = false;
thread_local std::optional<std::size_t> Machine::rank_left_bytes;

ThreadTeam job(int ranks, const std::string& settings = {}) {
  ThreadTeam all;
  all.ranks = ranks;
  all.settings = "TIMEOUT=20\nCHANNELS=2\n" + settings;
  return all;
}

torii_status sum(torii_team* team, std::size_t count, std::int32_t seed = 1) {
  const int ranks = torii_team_ranks(team);
  std::vector<std::int32_t> input(count);
  std::vector<std::int32_t> result(count);
  for (std::size_t i = 0; i < count; ++i)
    input[i] = (torii_team_rank(team) + 1) * (seed + static_cast<std::int32_t>(i));
  const torii_status status = torii_allreduce(team, input.data(), result.data(), count, TORII_I32, TORII_SUM);
  for (std::size_t i = 0; status == TORII_OK && i < count; ++i) {
    const std::int32_t right = ranks * (ranks + 1) / 2 * (seed + static_cast<std::int32_t>(i));
    if (result[i] == right) continue;
    ADD_FAILURE() << "element " << i << " of " << count << " is " << result[i] << ", not " << right;
    break;
  }
  return status;
}

/// So that no rank is in a call when another one looks.
void meet(torii_team* team) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
}

TEST(RingMemory, AnOutboxIsTakenAtAChannelsFirstLongCall) {
  Machine machine;
  run_as_threads(job(2), [&](torii_context*, torii_team* team) {
    // Several lengths of a class: a plan that was installed for another one is filled in for the long call.
    for (std::size_t count = 1; count < kJustLong; ++count) {
      for (int i = 0; i < 2; ++i) ASSERT_EQ(sum(team, count), TORII_OK) << torii_last_error();
    }
    meet(team);
    EXPECT_EQ(machine.outboxes, 0);
    meet(team);
    ASSERT_EQ(sum(team, kJustLong), TORII_OK) << torii_last_error();
    meet(team);
    EXPECT_EQ(machine.outboxes, 2) << "one for each rank";
    meet(team);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(sum(team, kLong * static_cast<std::size_t>(i)), TORII_OK);
    meet(team);
    EXPECT_EQ(machine.outboxes, 4) << "one for each channel";
  });
}

/// Where the root tells the lengths of blocks, they are not known when the call's plan is installed.
TEST(RingMemory, LengthsThatAreToldMayBeLong) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("torii_test_told_" + std::to_string(getpid()));
  std::ofstream(path) << sites_tree({2, 2}).text();
  ThreadTeam all = job(4);
  all.topology = "tree:" + path.string();
  all.algorithm = "multilane";
  run_as_threads(all, [&](torii_context*, torii_team* team) {
    if (torii_team_rank(team) == 0) std::filesystem::remove(path);
    const auto rank = static_cast<std::size_t>(torii_team_rank(team));
    const std::vector<std::size_t> counts = {3, 500, 1, 200};
    const std::vector<std::size_t> places = {0, 3, 503, 504};
    std::vector<std::int32_t> input(704);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::int32_t>(i);
    for (int call = 0; call < 4; ++call) {
      std::vector<std::int32_t> result(counts[rank]);
      ASSERT_EQ(
          torii_scatterv(team, input.data(), counts.data(), places.data(), result.data(), counts[rank], TORII_I32, 0),
          TORII_OK)
          << torii_last_error();
      EXPECT_EQ(result.front(), static_cast<std::int32_t>(places[rank]));
      EXPECT_EQ(result.back(), static_cast<std::int32_t>(places[rank] + counts[rank] - 1));
    }
  });
}

void expect_refused(torii_status status, const std::string& part) {
  const std::string text = torii_last_error();
  EXPECT_EQ(status, TORII_NO_RESOURCE) << text;
  for (const std::string& one : {std::string("rank 1"), std::string(" bytes for an outbox"), part}) {
    EXPECT_NE(text.find(one), std::string::npos) << "'" << text << "' does not hold '" << one << "'";
  }
}

/// All members learn why, whatever way the call takes, and none waits for the others.
TEST(RingMemory, ARefusedOutboxEndsTheCallOnAllRanks) {
  Machine machine;
  for (const bool is_known : {false, true}) {
    for (const std::size_t count : {kJustLong, kLong, std::size_t{100'000}}) {
      std::barrier known(3);  // the failure may end a call in which another rank still is
      run_as_threads(job(3), [&](torii_context*, torii_team* team) {
        for (std::size_t i = 0; is_known && i < 28; ++i) EXPECT_EQ(sum(team, i / 2 + 1), TORII_OK);
        known.arrive_and_wait();
        Machine::refuses_rank = torii_team_rank(team) == 1;
        expect_refused(sum(team, count), "the machine refuses");
        Machine::refuses_rank = false;
      });
    }
  }
}

TEST(RingMemory, AFullArenaRefusesAnOutbox) {
  run_as_threads(job(2, "ARENA=256M"), [&](torii_context* context, torii_team* whole) {
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, 0, nullptr, &team), TORII_OK) << torii_last_error();
    ASSERT_EQ(sum(team, kShort), TORII_OK) << torii_last_error();
    void* memory = nullptr;
    while (torii_team_rank(team) == 1 && torii_allocate(context, kOutbox, &memory) == TORII_OK) {
    }
    ASSERT_EQ(sum(team, kShort), TORII_OK) << torii_last_error();
    meet(whole);  // the failure may end a call in which the other rank still is
    expect_refused(sum(team, kLong), "TORII_ARENA");
    EXPECT_EQ(torii_team_destroy(team), TORII_OK);
  });
}

/// Pages are taken before anybody may touch them: those of all words, where peers may write before this rank's first
/// call, and those of an outbox that a plan may use.
TEST(RingMemory, WhereMemoryIsShortPagesAreTakenBefore) {
  // Less than twice of what the words and outboxes of two ranks may take.
  constexpr std::size_t kShortMemory = 30 * kMiB;
  Machine machine;
  Machine::rank_left_bytes.reset();
  run_as_threads(job(2, "SEGMENT=1M\nSLOTS=4"), [&](torii_context* context, torii_team* whole) {
    Machine::rank_left_bytes = kShortMemory;
    torii_team_options options = {};
    options.size = sizeof(options);
    options.channels = 4;
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, 0, &options, &team), TORII_OK) << torii_last_error();
    meet(whole);
    EXPECT_EQ(machine.words, 2);
    machine.most_bytes = 0;
    meet(whole);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(sum(team, kShort), TORII_OK) << torii_last_error();
    meet(whole);
    EXPECT_EQ(machine.most_bytes, 0U);
    meet(whole);
    // An arena takes some MiB without asking again what is left, until these are used up.
    std::vector<void*> memory(2);
    for (void*& one : memory) ASSERT_EQ(torii_allocate(context, 8 * kMiB, &one), TORII_OK) << torii_last_error();
    if (torii_team_rank(team) == 1) Machine::rank_left_bytes = kMiB;
    expect_refused(sum(team, kLong), "are left of the simulation");
    for (void* const one : memory) EXPECT_EQ(torii_free(context, one), TORII_OK);
    Machine::rank_left_bytes = kShortMemory;
    EXPECT_EQ(torii_team_destroy(team), TORII_OK);
    Machine::rank_left_bytes.reset();
  });
}

TEST(RingMemory, WhereRingsFitPagesAreTakenWhenTheyAreTouched) {
  Machine machine;
  Machine::rank_left_bytes.reset();
  run_as_threads(job(2), [&](torii_context*, torii_team* whole) {
    Machine::rank_left_bytes = 100 * kMiB;
    torii_team_options options = {};
    options.size = sizeof(options);
    options.channels = 1;
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, 0, &options, &team), TORII_OK) << torii_last_error();
    meet(whole);
    EXPECT_EQ(machine.words, 0);
    meet(whole);
    for (const std::size_t count : {kShort, kLong}) ASSERT_EQ(sum(team, count), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_team_destroy(team), TORII_OK);
    Machine::rank_left_bytes.reset();
  });
}

/// Of all arenas of this process.
std::size_t bytes_of_pages() {
  std::size_t bytes = 0;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(one.path(), gone).string().find("torii-arena") == std::string::npos) continue;
    struct stat is = {};
    if (stat(one.path().c_str(), &is) == 0) bytes += static_cast<std::size_t>(is.st_blocks) * 512;
  }
  return bytes;
}

TEST(RingMemory, TeamsThatComeAndGoTakeNoMore) {
  constexpr int kTeams = 200;
  Machine machine;
  run_as_threads(job(2, "ARENA=512M"), [&](torii_context*, torii_team* whole) {
    std::size_t first_bytes = 0;
    int first_outboxes = 0;
    int first_teams = 0;
    for (int i = 0; i < kTeams; ++i) {
      torii_team* team = nullptr;
      ASSERT_EQ(torii_team_split(whole, 0, 0, nullptr, &team), TORII_OK) << i << ": " << torii_last_error();
      for (const std::size_t count : {kShort, kShort, kLong, 30 * kLong, std::size_t{1}}) {
        ASSERT_EQ(sum(team, count, i), TORII_OK) << i << ": " << torii_last_error();
      }
      ASSERT_EQ(torii_team_destroy(team), TORII_OK);
      meet(whole);
      if (i == 10) {
        first_bytes = bytes_of_pages();
        first_outboxes = machine.outboxes;
        first_teams = machine.teams;
        EXPECT_GT(first_teams, 0);
      }
      meet(whole);
    }
    EXPECT_LE(bytes_of_pages(), first_bytes + 64 * 1024);
    EXPECT_EQ(machine.outboxes, first_outboxes) << "outboxes are used again";
    EXPECT_EQ(machine.teams, first_teams) << "and the teams' memory";
    meet(whole);
  });
}

/// Parts of two of a team of eight: each takes few addresses, and of these few pages.
TEST(RingMemory, ManyTeamsLiveTogether) {
  const int teams = is_full() ? 10'000 : 300;
  const std::size_t arena_mib = is_full() ? 64 * 1024 : 2 * 1024;
  run_as_threads(job(8, "ARENA=" + std::to_string(arena_mib) + "M"), [&](torii_context*, torii_team* whole) {
    const int rank = torii_team_rank(whole);
    std::vector<torii_team*> parts;
    for (int i = 0; i < teams; ++i) {
      torii_team* part = nullptr;
      // Neighbours, then ranks that are farther apart.
      const int color = i % 2 == 0 ? rank / 2 : rank % 4;
      ASSERT_EQ(torii_team_split(whole, color, 0, nullptr, &part), TORII_OK) << i << ": " << torii_last_error();
      parts.push_back(part);
      ASSERT_EQ(sum(part, kShort, i), TORII_OK) << i << ": " << torii_last_error();
    }
    for (torii_team* const part : parts) ASSERT_EQ(sum(part, 1), TORII_OK) << torii_last_error();
    meet(whole);
    if (rank == 0) RecordProperty("pages_MiB", static_cast<int>(bytes_of_pages() / kMiB));
    for (torii_team* const part : parts) EXPECT_EQ(torii_team_destroy(part), TORII_OK);
  });
}

/// Words of rings are elsewhere in each of these teams, and its messages have the numbers and signatures of the last
/// one's. What is not cleared is taken for a message or a count.
TEST(RingMemory, TeamsOfOtherSizesFollowEachOther) {
  run_as_threads(job(4, "ARENA=1G"), [&](torii_context*, torii_team* whole) {
    const int rank = torii_team_rank(whole);
    std::int32_t seed = 0;
    for (int round = 0; round < 6; ++round) {
      for (const int channels : {1, 2, 8, 3}) {
        for (const int parts : {1, 2}) {
          ++seed;
          torii_team_options options = {};
          options.size = sizeof(options);
          options.channels = channels;
          torii_team* team = nullptr;
          ASSERT_EQ(torii_team_split(whole, rank % parts, 0, &options, &team), TORII_OK) << torii_last_error();
          for (int call = 0; call < 2 * channels; ++call) {
            for (const std::size_t count : {std::size_t{1}, kShort, kLong, 30 * kLong}) {
              ASSERT_EQ(sum(team, count, seed), TORII_OK) << channels << " channels: " << torii_last_error();
            }
            std::int32_t told = torii_team_rank(team) == 0 ? seed : 0;
            ASSERT_EQ(torii_broadcast(team, &told, 1, TORII_I32, 0), TORII_OK) << torii_last_error();
            EXPECT_EQ(told, seed);
          }
          ASSERT_EQ(torii_team_destroy(team), TORII_OK);
          meet(whole);
        }
      }
    }
  });
}

}  // namespace
}  // namespace torii::tests
