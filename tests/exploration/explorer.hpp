// SPDX-License-Identifier: Apache-2.0
// Depth-first search over all that a few ranks may do: whose turn it is, which store a load reads, which message of
// the network arrives next. The ranks run the production code; they stop at each access to shared memory whose outcome
// depends on others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/exploration/memory.hpp"
#include "tests/exploration/rank_space.hpp"
#include "tests/exploration/sites.hpp"

namespace torii::exploration {

class Explorer;

/// The subject of an exploration: ranks, their memory, and the program of each.
class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;
  virtual int ranks() const = 0;
  /// Names the shared memory, clears it, and makes what each rank owns (Explorer::build_for()).
  virtual void set_up(Explorer& explorer) = 0;
  /// The program of a rank. It runs on the rank's own stack.
  virtual void run(int rank) = 0;
  /// The text of a violation at the end of an execution, or nothing.
  virtual std::string at_end() { return {}; }
  /// True for a world in which some rank has to wait for ever, because the calls do not fit each other.
  virtual bool must_wait() const { return false; }
  /// True if a sleep ends by its time when nothing else happens. If not, a wake-up that is missed is a deadlock.
  virtual bool sleeps_end() const { return false; }
  /// Messages that the network may deliver now.
  virtual std::size_t deliveries() const { return 0; }
  virtual void deliver(std::size_t number) { (void)number; }
  virtual bool has_news_for(int rank) const { return (void)rank, false; }
  virtual void save(std::vector<std::byte>& to) const { to.clear(); }
  virtual void restore(const std::vector<std::byte>& from) { (void)from; }
  virtual std::string describe_delivery(std::size_t number) const { return std::to_string(number); }
};

struct Outcome {
  std::size_t states = 0;
  std::size_t transitions = 0;
  std::size_t ends = 0;   ///< states in which all ranks have ended
  std::size_t depth = 0;  ///< transitions on the longest path of the search
  bool complete = false;
  std::string failure;               ///< one line; nothing: there is none
  std::vector<std::string> history;  ///< how it came to the failure, in words
};

class Explorer {
 public:
  static constexpr std::size_t kStatesMax = 5'000'000;

  Outcome explore(World& world, std::size_t states_max = kStatesMax);
  /// True if ranks take turns before every load, to compare: no reduction to blocks.
  void take_turns_at_each_load(bool each) noexcept { turns_at_each_load_ = each; }
  /// The same before every store: for worlds with fence_all(), before which a store is not what it is behind.
  void take_turns_at_each_store(bool each) noexcept { turns_at_each_store_ = each; }
  Sites& sites() noexcept { return sites_; }
  Memory& memory() noexcept { return *memory_; }

  /// For World::set_up(): what `build` allocates belongs to the rank.
  template <class Build>
  void build_for(int rank, Build&& build);
  bool is_running() const noexcept { return running_ >= 0; }
  int running() const noexcept { return running_; }

  // For the instrumented code, on the stack of a rank.
  std::uint64_t load(const void* at, std::size_t bytes, std::memory_order order, const void* site);
  void store(void* at, std::size_t bytes, std::uint64_t value, std::memory_order order, const void* site);
  /// One step that reads the word and stores what `next` makes of it; nothing if that says so.
  struct Change {
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;
    enum class What { exchange, add, subtract, bit_and, bit_or, bit_xor, compare } what = What::exchange;
    std::memory_order on_failure = std::memory_order_relaxed;
  };
  std::uint64_t change(void* at, std::size_t bytes, const Change& change, std::memory_order order, const void* site);
  void fence(std::memory_order order, const void* site);
  /// A full fence of all ranks at once, made by the one that runs.
  void fence_all();
  void past_caches_fence(const void* site);
  void read(const void* at, std::size_t bytes, const void* site);
  void write(const void* at, std::size_t bytes, const void* site, bool past_caches = false);
  /// The rank that runs has handed something to the network.
  void has_put() { pending_[static_cast<std::size_t>(running_)].begins_block = true; }
  /// The network makes `value` visible, and with it what the message knows.
  void store_from_network(std::size_t message, void* at, std::uint64_t value);
  /// The rank has nothing to do until something that it has read since it was idle last has changed.
  void idle();
  /// The rank is about to look whether it may sleep: what it looked at before does not matter.
  void forget_looks();
  void sleep_while(const void* at, std::size_t bytes, std::uint64_t value);
  void wake_all(const void* at, std::size_t bytes);
  /// The execution is wrong. Does not return on the stack of a rank.
  void fail(const std::string& text);

 private:
  enum class At : std::uint8_t { begin, load, change, fence, sleep, asleep, idle, done };
  struct Pending {
    At at = At::begin;
    int word = -1;
    std::array<std::uint64_t, kWordsMost / 64> watched{};  ///< words read since the rank was idle last
    std::uint64_t idle_hash = 0;                           ///< of the rank's space when it was idle last
    bool is_settled = false;     ///< what it has done since it was idle before has changed nothing in it
    bool has_overtaken = false;  ///< it has since come to know that a store which it has read is not the newest
    bool begins_block = true;    ///< the load at which it is comes first after a store, a change or idling
  };
  struct Move {
    int rank = -1;  ///< -1: a delivery
    int which = 0;
  };
  struct Event {
    int rank;
    Access access;
    std::memory_order order;
    const void* at;
    std::uint64_t value;
    const void* site;
    int which;  ///< of a load: the store that it read; of `readable` ones
    int readable;
  };
  struct Frame {
    Memory::Contents memory;
    std::array<RankSpace::Contents, kRanksMax> spaces;
    std::array<Pending, kRanksMax> pending;
    std::vector<std::byte> world;
    std::vector<Move> moves;
    std::size_t next = 0;
    std::uint32_t id = 0;
    std::vector<Event> events;  ///< of the transition that led here
    std::string delivery;       ///< the same, if the network made it
  };

  bool search(Outcome& outcome, std::size_t states_max);
  void begin_search();
  void enter(std::uint32_t id, std::vector<Event>& events, std::string delivery, Outcome& outcome);
  void judge_end();
  void step(const Move& move, std::vector<Event>& events);
  std::vector<Move> moves() const;
  bool may_go_on(int rank) const;
  bool has_news(int rank) const;
  bool wants_restart() const { return learned_writer_ || memory_->too_small(); }
  void save(Frame& frame) const;
  void restore(const Frame& frame);
  std::uint64_t hash() const;
  std::size_t readable_elsewhere(int word) const;
  bool is_shared_by_others(int word, unsigned mask) const;
  void learn_writer(int word, int writer);
  void await(At at, int word);
  /// The rank that runs does not go on: the search ends, or begins anew with more room.
  void stay();
  void note(Access access, std::memory_order order, const void* at, std::uint64_t value, const void* site,
            int which = 0, int readable = 0);
  void describe(Outcome& outcome) const;
  std::string describe(const Event& event) const;
  std::string describe_deadlock() const;
  std::string trapped_state(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges,
                            const std::vector<std::uint32_t>& ends, std::size_t states) const;

  World* world_ = nullptr;
  std::unique_ptr<Memory> memory_;
  Sites sites_;
  std::array<RankSpace, kRanksMax> spaces_;
  std::array<Pending, kRanksMax> pending_{};
  bool turns_at_each_load_ = false;
  bool turns_at_each_store_ = false;
  int running_ = -1;
  int chosen_ = 0;
  std::vector<Event>* events_ = nullptr;
  std::vector<Frame> frames_;
  std::size_t depth_ = 0;  ///< frames in use
  std::string failure_;
  std::unordered_map<const void*, unsigned> writers_;  ///< by word, a bit for each rank; grows over searches
  bool learned_writer_ = false;
  std::size_t words_max_ = 64;
  std::size_t places_max_ = 64;
};

/// The explorer of this process, for the instrumented code.
Explorer& explorer() noexcept;

/// Where operator new takes memory from: the space of a rank, or nullptr for the process's own.
RankSpace* set_heap(RankSpace* heap) noexcept;

template <class Build>
void Explorer::build_for(int rank, Build&& build) {
  RankSpace* const before = set_heap(&spaces_[static_cast<std::size_t>(rank)]);
  build();
  set_heap(before);
}

}  // namespace torii::exploration
