// SPDX-License-Identifier: Apache-2.0
// Ranks as fibers of one thread on virtual time: a seed decides which of them runs next, and what happens to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "transports/fibers/random_cpus.hpp"

namespace torii::fibers {

/// Virtual time in nanoseconds.
using Time = std::int64_t;

inline constexpr Time kMicrosecond = 1000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;

/// The faults of one fiber. Points are counted from 1: a fiber reaches one wherever it may lose its CPU.
struct FiberFaults {
  static constexpr std::uint64_t kNever = 0;
  std::uint64_t dies_at = kNever;   ///< the point at which its process ends without a word
  std::uint64_t stops_at = kNever;  ///< the point at which its process is stopped
  Time stops_for = 0;
  Time clock_offset = 0;   ///< of its machine's clock
  double clock_drift = 0;  ///< its machine's clock is faster by this part
};

/// How run() has ended.
enum class End : std::uint8_t {
  all_ended,  ///< every fiber has returned or is dead
  stuck,      ///< the others wait for something that nothing will bring
  endless,    ///< they have used up their turns
};

/// The scheduler, and the platform on which its fibers wait. One fiber runs at a time, on the thread that calls run().
/// It goes on until it waits, or until the seed takes its CPU at a point. All that happens is a function of the seed
/// and of what the fibers do. Fibers may throw and catch, but not out of their bodies.
class Fibers final : public RandomCpus {
 public:
  explicit Fibers(std::uint64_t seed);
  /// Fibers that have not ended are forgotten as they are: their stacks, and what these own, are leaked.
  ~Fibers() override;
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Adds a fiber, numbered from 0, that begins when run() is called.
  int add(std::function<void()> body, const FiberFaults& faults = {});
  /// Runs until all fibers have ended, `turns_most` turns at the most.
  End run(std::uint64_t turns_most);

  Time now() const noexcept { return now_; }
  /// The fiber that runs; -1: none.
  int current() const noexcept { return current_; }
  bool is_dead(int fiber) const noexcept;
  /// The process of the fiber has ended, in whichever way, at least `ago` before now.
  bool is_gone(int fiber, Time ago = 0) const noexcept;
  std::uint64_t points(int fiber) const noexcept;
  /// So many points from now the running fiber is stopped for so long, or dies if no time is given.
  void stop_in(std::uint64_t points, std::optional<Time> stops_for) noexcept;
  /// The running fiber is refused shared memory `times` times, from its request number `request` from now on.
  void refuse_memory_in(std::uint64_t request, std::uint64_t times) noexcept;
  /// How often the fiber was refused memory.
  std::uint64_t refusals(int fiber) const noexcept;
  std::uint64_t turns() const noexcept { return turns_; }

  /// The running fiber may lose its CPU here, be stopped or die. Without a fiber nothing happens.
  void pass() noexcept;
  /// Calls `event` after so much time. Events of one instant happen in the order in which they were added.
  void after(Time delay, std::function<void()> event);
  /// A number from `least` to `most`, by the seed.
  Time draw(Time least, Time most) noexcept;
  bool one_in(std::uint64_t n) noexcept { return random_() % n == 0; }

  /// A descriptor for poll(), not readable at first. It is no descriptor of the system.
  int add_descriptor();
  void set_readable(int descriptor, bool readable) noexcept;

  /// Is called when a fiber has returned or died.
  void on_end(std::function<void(int fiber)> ended) { ended_ = std::move(ended); }
  /// Is called with every change that a reader of the history wants to see.
  using Note = std::function<void(Time now, int fiber, std::string_view what)>;
  void set_note(Note note) { note_ = std::move(note); }
  void note(int fiber, std::string_view what) const {
    if (note_) note_(now_, fiber, what);
  }
  /// A hash of all turns so far: equal runs have equal hashes.
  std::uint64_t digest() const noexcept { return digest_; }

  std::int64_t now_ns() noexcept override;
  void yield() noexcept override;
  void sleep(std::int64_t ns) noexcept override;
  void wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t most_ns) noexcept override;
  void wake_all(const std::atomic<std::uint32_t>& word) noexcept override;
  int poll(pollfd* entries, std::size_t count, std::int64_t most_ns) noexcept override;
  bool grants(std::size_t bytes) noexcept override;
  /// Enough: no history may depend on what else runs on the machine.
  std::optional<std::size_t> memory_left_bytes() noexcept override { return SIZE_MAX / 4; }

 private:
  struct Fiber;
  struct Turn {
    Time time;
    std::uint64_t order;
    int fiber;             ///< -1: an event
    std::uint64_t ticket;  ///< of the fiber, which has to be the same still; or the event's place
    bool operator<(const Turn& other) const noexcept {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  Fiber& fiber(int number) const noexcept { return *fibers_[static_cast<std::size_t>(number)]; }
  void push(Time time, int fiber, std::uint64_t ticket);
  /// The running fiber goes on at that time, unless it is woken before.
  void suspend_until(Time time) noexcept;
  /// Meets the faults of this point. False: the fiber goes on.
  bool apply_faults() noexcept;
  void wake(int number) noexcept;
  void resume(int number);
  bool is_readable(const pollfd& entry) const noexcept;

  std::mt19937_64 random_;
  Time now_ = 0;
  int current_ = -1;
  std::uint64_t order_ = 0;
  std::uint64_t turns_ = 0;
  std::uint64_t digest_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Turn> turns_ahead_;  ///< a heap
  std::vector<std::function<void()>> events_;
  std::vector<std::size_t> free_events_;
  std::vector<bool> readable_;  ///< by descriptor
  Note note_;
  std::function<void(int fiber)> ended_;
  struct Main;  ///< where the thread goes on when the running fiber gives it back
  std::unique_ptr<Main> main_;
};

}  // namespace torii::fibers
