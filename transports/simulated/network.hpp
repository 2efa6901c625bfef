// SPDX-License-Identifier: Apache-2.0
// A torus or mesh on virtual time: engines, directed links and what is under way, moved from one instant to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/routing.hpp"
#include "runtime/topology.hpp"
#include "runtime/transport.hpp"

namespace torii::simulated {

/// Virtual time in picoseconds: whole numbers, so that equal runs are equal and a periodic run is seen to be periodic.
using Time = std::int64_t;
inline constexpr double kPicosecondsPerMicrosecond = 1e6;

/// What the network costs. A put of n bytes holds its engine and, one after the other, the links of its way for n /
/// bandwidth each; the engine is held for `overhead` longer; the signal is visible `alpha` after the last byte.
struct NetworkModel {
  Topology topology = Topology::node(1);  ///< a torus or mesh with one rank on each node
  int engines = 4;                        ///< puts that a rank has in progress at the same time
  double alpha_us = 1.5;
  double overhead_us = 0.2;
  double bandwidth_GBps = 5;  ///< of each directed link
  bool ports = false;         ///< a node sends over one link at a time, and receives over one
  double jitter_us = 0;       ///< each put's alpha is longer by up to this
  std::uint64_t seed = 1;     ///< of the jitter
};

/// A time during which an engine was busy.
struct EngineUse {
  int engine = 0;
  int peer = 0;
  std::size_t bytes = 0;
  std::uint32_t message = 0;  ///< the low half of the message's number
  Time begin = 0;
  Time end = 0;
};

/// Numbers below 2^53 / 2^53, the same on every machine: a hash of (seed, index).
double uniform(std::uint64_t seed, std::uint64_t index) noexcept;

/// An engine takes, of the puts whose first link is free, the one of the lowest message number: what waits for a link
/// keeps no engine from another link. Messages are packets that each link sends in the order in which their heads reach
/// it, and that a node passes on while they still come in (virtual cut-through, with room for whoever waits). Words
/// (credits) take `alpha` and neither engine nor link: they are 8 bytes beside segments of kilobytes.
class Network {
 public:
  /// `arena_bytes` of zeroed memory for each rank, taken as it is touched. `carries_data`: payloads are copied.
  Network(const NetworkModel& model, std::size_t arena_bytes, bool carries_data);

  std::byte* arena(int rank) noexcept { return arenas_ + static_cast<std::size_t>(rank) * arena_bytes_; }
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  const NetworkModel& model() const noexcept { return model_; }

  /// Puts of `from` to `peer` whose signal is at `begin` or up to `end` take the way that append_route() gives for
  /// `turn`. All ways are added before the first put.
  void add_way(int from, int peer, std::uint64_t begin, std::uint64_t end, int turn);

  Status put(int from, const Put& put) noexcept;
  Status put_word(int from, int peer, std::uint64_t offset, std::uint64_t value) noexcept;
  bool drained(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)].under_way == 0; }

  /// Asks `rank` again at `time`.
  void wake_at(int rank, Time time) noexcept;
  /// The rank computes until then: what it puts meanwhile leaves only then.
  void compute_until(int rank, Time time) noexcept;
  /// Whether `rank` is asked again when a credit comes, too. It is not when it waits for none.
  void wake_by_words(int number, bool wakes) noexcept { rank(number).wakes_by_words = wakes; }
  bool is_computing(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)].clock > now_; }

  /// Goes on to the next instant at which something happens, and lists the ranks for which something arrived. False
  /// when nothing is under way any more.
  bool next_instant(std::vector<int>& woken) noexcept;
  Time now() const noexcept { return now_; }
  Time in_ticks(double us) const noexcept;
  std::uint64_t messages() const noexcept { return messages_sent_; }

  /// Messages that leave or reach `rank` in one segment: from then on it is noted when each segment's worth of them
  /// has.
  void note_progress(int number, std::uint64_t messages_per_segment) noexcept {
    rank(number).messages_per_segment = messages_per_segment;
  }
  std::vector<Time> take_progress(int number) noexcept { return std::move(rank(number).progress); }

  /// Bytes that each link has carried, by LinkId.
  std::span<const std::uint64_t> link_bytes() const noexcept { return link_bytes_; }
  /// From now on the engines of this rank are watched.
  void watch(int rank) noexcept { watched_ = rank; }
  const std::vector<EngineUse>& uses() const noexcept { return uses_; }

 private:
  /// A put that waits for an engine; of one way the lowest message number goes first.
  struct Waiting {
    std::uint32_t number;
    std::uint64_t order;
    std::uint32_t message;
    bool operator<(const Waiting& other) const noexcept {
      return number != other.number ? number > other.number : order > other.order;
    }
  };
  /// A way of a rank's messages: links, and with `ports` the two nodes' ports, as indices of free_at_.
  struct Way {
    int peer = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::vector<Waiting> waiting;  ///< a heap
  };
  struct Message {
    Put put;
    int from = 0;
    std::uint32_t way = 0;  ///< index into Rank::ways
    std::uint32_t next_hop = 0;
    std::uint32_t last_hop = 0;
  };
  enum class Kind : std::uint8_t { post, head, arrival, word, engine, wake };
  struct Event {
    Time time;
    std::uint64_t order;  ///< events of one instant happen in the order in which they were made
    std::uint32_t index;  ///< message, word or rank
    Kind kind;
    bool operator<(const Event& other) const noexcept {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Word {
    int peer;
    std::uint64_t offset;
    std::uint64_t value;
  };
  struct Rank {
    std::vector<Way> ways;              ///< by peer and begin
    std::vector<std::uint32_t> active;  ///< indices of the ways on which puts wait
    std::array<Time, kEnginesMax> engine_free_at{};
    Time clock = 0;
    std::uint64_t moved = 0;
    std::uint64_t messages_per_segment = 0;
    std::vector<Time> progress;
    int under_way = 0;       ///< puts whose source may still be read
    Time engine_event = -1;  ///< when waiting puts are looked at again
    bool is_woken = false;
    bool wakes_by_words = true;
  };

  Rank& rank(int number) noexcept { return ranks_[static_cast<std::size_t>(number)]; }
  void schedule(Time time, Kind kind, std::uint32_t index) noexcept;
  void happen(const Event& event, std::vector<int>& woken) noexcept;
  void wake(int number, std::vector<int>& woken) noexcept;
  void note_moved(Rank& one) noexcept {
    if (one.messages_per_segment != 0 && ++one.moved % one.messages_per_segment == 0) one.progress.push_back(now_);
  }
  void wait_for_engine(std::uint32_t message) noexcept;
  void use_engines(int number) noexcept;
  std::size_t take_way(Rank& sender, Time& earliest) noexcept;
  void move_head(std::uint32_t message, std::size_t engine) noexcept;
  void arrive(std::uint32_t message, std::vector<int>& woken) noexcept;
  Time transfer(std::size_t bytes) const noexcept;

  NetworkModel model_;
  std::size_t arena_bytes_;
  bool carries_data_;
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> memory_;
  std::byte* arenas_ = nullptr;
  Time alpha_ = 0;
  Time overhead_ = 0;
  Time now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t messages_sent_ = 0;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> hops_;  ///< of all ways
  std::vector<Time> free_at_;        ///< links by LinkId, then, with ports, each node's way out and way in
  std::vector<Time> fed_until_;      ///< until then an engine of the node it leaves is at work on that link
  std::vector<std::uint64_t> link_bytes_;
  std::vector<Event> events_;  ///< a heap
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<Word> words_;
  std::vector<std::uint32_t> free_words_;
  int watched_ = -1;
  std::vector<EngineUse> uses_;
};

}  // namespace torii::simulated
