// SPDX-License-Identifier: Apache-2.0
// Two threads of a rank over an engine that the test plays: what one takes in wakes the other.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/descriptor.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/network/engine_transport.hpp"

namespace torii::transports {
namespace {

constexpr std::size_t kArenaBytes = 4096;
constexpr std::int64_t kSecondNs = 1'000'000'000;
/// A sleep that nobody ends lasts so long, which no wait of a test does that goes well.
constexpr int kSleepUs = 20'000'000;
constexpr std::int64_t kWakesWithinNs = 10 * kSecondNs;

/// Words come when the test says so. The descriptor stays silent: as if another thread had always been quicker.
class PlayedEngine {
 public:
  PlayedEngine(std::byte* arena, Sleepers& sleepers) : arena_(arena), sleepers_(sleepers) {}

  void bring(std::uint64_t offset, std::uint64_t word) {
    const std::lock_guard lock(mutex_);
    coming_.emplace_back(offset, word);
  }
  int sleeps() const noexcept { return sleeps_.load(); }

  bool progress() noexcept {
    const std::lock_guard lock(mutex_);
    if (coming_.empty()) return false;
    for (const auto& [offset, word] : coming_) store_word(arena_ + offset, word);
    coming_.clear();
    sleepers_.took();
    return true;
  }
  bool may_sleep(int&) noexcept {
    sleeps_.fetch_add(1);
    return true;
  }
  int wait_descriptor() const noexcept { return silent_.get(); }

  static Status put(const Put&) noexcept { return Status::ok; }
  static Status put_word(int, std::uint64_t, std::uint64_t) noexcept { return Status::ok; }
  static bool drained() noexcept { return true; }
  static bool probe(int, std::int64_t) noexcept { return true; }
  static void doubt(int, std::int64_t) noexcept {}
  static bool has_left(int) noexcept { return false; }
  static void close() noexcept {}

 private:
  std::byte* arena_;
  Sleepers& sleepers_;
  Descriptor silent_{eventfd(0, EFD_CLOEXEC)};
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> coming_;
  std::atomic<int> sleeps_ = 0;
};

class PlayedTransport final : public EngineTransport<PlayedEngine> {
 public:
  PlayedTransport(const Bootstrap& bootstrap, const EngineOptions& options) : EngineTransport(bootstrap, options) {
    engines_.push_back(std::make_unique<PlayedEngine>(options.arena, sleepers_));
    capabilities_ = {.name = "played", .wakes_on_put = true};
  }
  PlayedEngine& engine() noexcept { return *engines_.front(); }
};

/// A rank of two with memory of its own.
struct Rank {
  alignas(kLineBytes) std::byte arena[kArenaBytes] = {};
  tests::ThreadJob job{2, 1};
  tests::ThreadBootstrap bootstrap{job, 0};
  PlayedTransport transport{bootstrap, options()};

  EngineOptions options() {
    EngineOptions made;
    made.arena = arena;
    made.arena_bytes = kArenaBytes;
    made.engines = 1;
    return made;
  }

  struct Awaited {
    Rank& rank;
    std::uint64_t offset;
    static bool is_idle(void* data) {
      auto& self = *static_cast<Awaited*>(data);
      (void)self.rank.transport.progress();
      return load_word(self.rank.arena + self.offset) == 0;
    }
  };
  /// How long the word took, asleep.
  std::int64_t sleep_until(std::uint64_t offset) {
    Awaited awaited{*this, offset};
    const std::int64_t begun_ns = now_ns();
    while (Awaited::is_idle(&awaited)) transport.sleep_once(kSleepUs, &Awaited::is_idle, &awaited);
    return now_ns() - begun_ns;
  }
};

TEST(Sleepers, WakeWhenAnotherThreadTakesInWhatTheyWaitFor) {
  Rank rank;
  std::int64_t slept_ns = 0;
  std::thread sleeper([&] { slept_ns = rank.sleep_until(64); });
  while (rank.transport.engine().sleeps() == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // asleep by now, mostly
  rank.transport.engine().bring(64, 1);
  EXPECT_EQ(rank.transport.progress(), Status::ok);
  sleeper.join();
  EXPECT_LT(slept_ns, kWakesWithinNs);
}

/// Another thread takes it in when the sleeper has looked for it and does not count as asleep yet.
TEST(Sleepers, DoNotSleepOnWhatWasTakenInSinceTheyLooked) {
  Rank rank;
  Rank::Awaited awaited{rank, 64};
  const auto looks_too_early = [](void* data) {
    const bool is_idle = Rank::Awaited::is_idle(data);
    std::thread([data] {
      PlayedTransport& transport = static_cast<Rank::Awaited*>(data)->rank.transport;
      transport.engine().bring(64, 1);
      EXPECT_EQ(transport.progress(), Status::ok);
    }).join();
    return is_idle;
  };
  const std::int64_t begun_ns = now_ns();
  rank.transport.sleep_once(kSleepUs, looks_too_early, &awaited);
  EXPECT_LT(now_ns() - begun_ns, kWakesWithinNs);
  EXPECT_FALSE(Rank::Awaited::is_idle(&awaited));
}

/// At any moment of the other's way to sleep.
TEST(Sleepers, LoseNoWordThatIsTakenInWhileTheyLieDown) {
  for (const tests::Seed& seed : tests::seeds_of("test_sleepers", 300)) {
    if (HasFailure()) return;
    std::mt19937_64 random(seed.value);
    Rank rank;
    std::int64_t slept_ns[2] = {};
    std::atomic<bool> is_up = false;
    std::thread sleeper([&] {
      is_up = true;
      slept_ns[0] = rank.sleep_until(64);
    });
    while (!is_up) std::this_thread::yield();
    for (std::uint64_t spin = random() % 4096; spin != 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    rank.transport.engine().bring(64, 1);
    rank.transport.engine().bring(128, 1);
    slept_ns[1] = rank.sleep_until(128);
    sleeper.join();
    EXPECT_LT(slept_ns[0], kWakesWithinNs) << seed;
    EXPECT_LT(slept_ns[1], kWakesWithinNs) << seed;
  }
}

/// What a thread takes in by itself, asleep or not, shortens no later sleep of it.
TEST(Sleepers, AloneSleepAsLongAsTheyWant) {
  Rank rank;
  for (std::uint64_t offset = 64; offset <= 640; offset += 64) {
    rank.transport.engine().bring(offset, 1);
    rank.sleep_until(offset);
  }
  const std::int64_t begun_ns = now_ns();
  Rank::Awaited never{rank, 1024};
  rank.transport.sleep_once(100'000, &Rank::Awaited::is_idle, &never);
  EXPECT_GE(now_ns() - begun_ns, 90'000'000);
}

/// The bell that was rung is not heard again: later sleeps are short, and end by themselves.
TEST(Sleepers, OfARankWithSeveralTakeShortSleeps) {
  Rank rank;
  std::thread sleeper([&] { rank.sleep_until(64); });
  while (rank.transport.engine().sleeps() == 0) std::this_thread::yield();
  rank.transport.engine().bring(64, 1);
  (void)rank.transport.progress();
  sleeper.join();
  Rank::Awaited never{rank, 1024};
  const std::int64_t begun_ns = now_ns();
  for (int time = 0; time < 20; ++time) rank.transport.sleep_once(kSleepUs, &Rank::Awaited::is_idle, &never);
  const std::int64_t slept_ns = now_ns() - begun_ns;
  EXPECT_GE(slept_ns, 20 * std::int64_t{Sleepers::kSharedSleepUs} * 1000 / 2);
  EXPECT_LT(slept_ns, kWakesWithinNs);
}

}  // namespace
}  // namespace torii::transports
