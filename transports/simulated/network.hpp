// SPDX-License-Identifier: Apache-2.0
// A network on virtual time: engines, directed links and messages in flight, moved from one instant to the next.
// The ranks of a large network are divided into parts, whose events different threads handle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"
#include "runtime/topology/network_model.hpp"
#include "runtime/topology/routing.hpp"
#include "runtime/topology/topology.hpp"
#include "transports/simulated/agenda.hpp"

namespace torii::simulated {

/// So many ranks in a row, or fewer, belong to one part. Neighbours mostly belong to the same part, and each part has a
/// share of each wave that moves through the network.
inline constexpr int kStripe = 1024;

inline constexpr double kPicosecondsPerMicrosecond = 1e6;
inline constexpr Time kNever = std::numeric_limits<Time>::max();
inline constexpr Time kPicosecondsPerNanosecond = 1000;

/// The costs of the network. A put of n bytes holds its engine and, one after the other, the links of its way for n /
/// bandwidth each. It holds the engine for `overhead` longer; the signal is visible `alpha` after the last byte.
struct NetworkModel {
  /// A torus or mesh with one rank on each node, a tree, or a node. The links of a tree have their own bandwidths and
  /// latencies, which add up along a way. A node is a switch with one link to and one from each rank.
  Topology topology = Topology::node(1);
  /// How messages share a link that they want at the same time. None: as packets, one after the other.
  std::optional<Sharing> sharing = {};
  int engines = 4;  ///< puts that a rank has in progress at the same time
  /// One for each engine: a put goes by the engine that it names, which moves so many times a link's bandwidth. Without
  /// `sharing`. Empty: an engine that is free takes the next put, and moves as fast as the link.
  std::vector<double> engine_rates = {};
  double alpha_us = 1.5;
  double overhead_us = 0.2;
  double bandwidth_GBps = 5;  ///< of each directed link, except those of a tree
  bool ports = false;         ///< a node sends over one link at a time, and receives over one
  double jitter_us = 0;       ///< each put's alpha is longer by up to this
  std::uint64_t seed = 1;     ///< of the jitter
};

/// One more than the largest number of a link: numbers of routing.hpp; on a node 2 x rank to the switch, 2 x rank + 1
/// from it.
int network_link_numbers(const Topology& topology) noexcept;
/// Appends the links from one rank to another, as append_route() does for all topologies but a switch.
void append_network_route(const Topology& topology, int from, int to, int turn, std::vector<LinkId>& links,
                          const Ties& ties = {});

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

/// Hears of every word that changes in a rank's arena.
class WordListener {
 public:
  virtual void changed(std::uint64_t offset) noexcept = 0;

 protected:
  ~WordListener() = default;
};

/// An engine takes the put with the lowest message number of those whose first link is free; with `engine_rates`, of
/// those that name it. A put that waits for one link keeps no engine from another link. Messages are packets that each
/// link sends in the order in which their heads reach it. A node forwards a message while it still arrives (virtual
/// cut-through, with room for all that wait). With `sharing` an engine takes the lowest message number, and a message
/// moves over all links of its way at the rate that network_model.hpp gives. Rates change whenever a message starts or
/// ends. Words (credits) take `alpha`, on a tree also the latencies of their way. They take neither engine nor link,
/// since they are 8 bytes beside segments of kilobytes.
///
/// An object moves one part of the network; all functions that name a rank are for its own ranks. A message changes
/// nothing in another part before `alpha`, so all parts can move on by windows of that length at once.
class Network {
 public:
  /// `arena_bytes` of zeroed memory for each rank, taken on first touch. `carries_data`: payloads are copied.
  /// Part 0 of `parts`. With several parts alpha is not 0, each way is one link, no payload is copied, and there are
  /// neither ports, jitter nor `sharing`.
  Network(const NetworkModel& model, std::size_t arena_bytes, bool carries_data, int parts = 1);
  /// Another part of the same network.
  Network(const Network& first, int part);

  std::byte* arena(int rank) noexcept { return world_->arenas + static_cast<std::size_t>(rank) * world_->arena_bytes; }
  std::size_t arena_bytes() const noexcept { return world_->arena_bytes; }
  const NetworkModel& model() const noexcept { return model_; }
  int part_of(int rank) const noexcept { return world_->part_of(rank); }

  /// Puts of `from` to `peer` whose signal is from `begin` up to `end` take the way that append_route() gives for
  /// `turn` and `ties`. All ways are added before the first put.
  void add_way(int from, int peer, std::uint64_t begin, std::uint64_t end, int turn, const Ties& ties = {});

  /// `put.engine` counts only with engine_rates.
  Status put(int from, const Put& put) noexcept;
  Status put_word(int from, int peer, std::uint64_t offset, std::uint64_t value) noexcept;
  bool drained(int rank) const noexcept { return world_->ranks[static_cast<std::size_t>(rank)].under_way == 0; }

  /// Asks `rank` again at `time`.
  void wake_at(int rank, Time time) noexcept;
  /// The rank computes until then: puts that it makes meanwhile leave only then.
  void compute_until(int rank, Time time) noexcept;
  /// Whether a credit, too, makes the network ask `rank` again. Not needed if the rank waits for none.
  void wake_by_words(int number, bool wakes) noexcept { rank(number).wakes_by_words = wakes; }
  /// Whether the end of its last put makes the network ask `rank` again. Not needed while the rank has steps to run.
  void wake_when_drained(int number, bool wakes) noexcept { rank(number).wakes_when_drained = wakes; }
  void tell(int number, WordListener& listener) noexcept { rank(number).listener = &listener; }
  bool is_computing(int rank) const noexcept { return world_->ranks[static_cast<std::size_t>(rank)].clock > now_; }

  /// Moves on to the next instant before `end` at which something happens, and lists the ranks for which something
  /// arrived. False if there is none.
  bool next_instant(std::vector<int>& woken, Time end = std::numeric_limits<Time>::max()) noexcept;
  /// The time of the next instant, with what other parts have sent in this window; the greatest time if nothing is in
  /// flight any more.
  Time next_time() noexcept;
  /// Between two windows, for all parts at once: the mail of this one is read in the next one.
  void turn_mail() noexcept { world_->filling = 1 - world_->filling; }
  /// At the beginning of a window: takes in the mail of the window before.
  void take_mail() noexcept;
  Time now() const noexcept { return now_; }
  Time in_ticks(double us) const noexcept;
  std::uint64_t messages() const noexcept { return messages_sent_; }
  std::uint64_t words() const noexcept { return words_sent_; }

  /// Records from now on when each segment's worth of messages has left or reached `rank`.
  void note_progress(int number, std::uint64_t messages_per_segment) noexcept {
    rank(number).messages_per_segment = messages_per_segment;
  }
  std::vector<Time> take_progress(int number) noexcept { return std::move(rank(number).progress); }

  /// Bytes that each link has carried, by LinkId; both directions of a half-duplex link together, as direction 0.
  std::span<const std::uint64_t> link_bytes() const noexcept { return world_->link_bytes; }
  /// From now on the engines of this rank are recorded.
  void watch(int rank) noexcept { watched_ = rank; }
  const std::vector<EngineUse>& uses() const noexcept { return uses_; }

 private:
  /// A put that waits for an engine; in one queue the lowest message number goes first.
  struct Waiting {
    std::uint32_t number;
    std::uint64_t order;
    std::uint32_t message;
    bool operator<(const Waiting& other) const noexcept {
      return number != other.number ? number > other.number : order > other.order;
    }
  };
  /// The puts that wait for the first link of a way.
  struct Queue {
    std::uint32_t first_resource = 0;
    std::vector<Waiting> puts;  ///< a heap
  };
  /// A link, or with ports a rank's way out or way in.
  struct Resource {
    Time free_at = 0;
    Time fed_until = 0;  ///< until when an engine of the link's first node feeds that link
  };
  /// One link of a way, or a port.
  struct Hop {
    std::uint32_t resource;  ///< the occupied resource: an index of resources_
    std::uint32_t link;      ///< the link whose bandwidth and latency count
  };
  /// A way of a rank's messages.
  struct Way {
    int peer = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    Time latency = 0;  ///< of all links
  };
  struct Message {
    Put put;
    PutHold hold;
    int from = 0;
    std::uint32_t way = 0;  ///< index into Rank::ways
    std::uint32_t next_hop = 0;
    std::uint32_t last_hop = 0;
    Time tail = 0;  ///< when its last byte has reached the next hop
  };
  /// With `sharing`: the message that one engine sends.
  struct Flow {
    std::uint32_t message = 0;
    bool is_active = false;
    double left_bytes = 0;  ///< at `since`
    double rate = 0;        ///< bytes per tick since then
    Time begin = 0;
    Time since = 0;
    Time end = 0;  ///< by the last change of rates
  };
  enum class Kind : std::uint8_t { post, head, arrival, word, engine, wake, flow };
  struct Event {
    std::uint32_t index;  ///< message, word, flow or rank
    Kind kind;
  };
  struct Word {
    int peer;
    bool is_credit;  ///< otherwise the signal of a message from another part
    std::uint64_t offset;
    std::uint64_t value;
  };
  /// The fields that a signal changes are in the first line, those that a put needs in the next ones.
  struct alignas(kLineBytes) Rank {
    WordListener* listener = nullptr;
    std::uint64_t moved = 0;
    std::uint64_t messages_per_segment = 0;
    Time clock = 0;
    int under_way = 0;  ///< puts whose source may still be read
    bool is_woken = false;
    bool wakes_by_words = true;
    bool wakes_when_drained = true;
    Time engine_event = -1;             ///< when waiting puts are looked at again
    std::vector<std::uint32_t> active;  ///< indices of the queues that have puts
    std::vector<Queue> waiting;         ///< of each way one, or with engine_rates one for each engine
    std::vector<Way> ways;              ///< by peer and begin
    std::array<Time, kEnginesMax> engine_free_at{};
    std::vector<Time> progress;
  };

  /// A word that a rank has sent to another part.
  struct Letter {
    Time time;
    Word word;
  };
  /// The letters of one part to another in one window.
  struct Mail {
    std::vector<Letter> letters;
    Time soonest = std::numeric_limits<Time>::max();
  };
  struct Unmap {
    std::size_t bytes;
    void operator()(void* memory) const;
  };
  /// Common to all parts. Each rank belongs to one part, and so does each link of its ways.
  struct World {
    std::size_t arena_bytes = 0;
    std::unique_ptr<void, Unmap> memory;
    std::byte* arenas = nullptr;
    std::vector<Rank> ranks;
    std::vector<Hop> hops;           ///< of all ways
    std::vector<double> link_ticks;  ///< per byte, by LinkId; empty if all are equal
    std::vector<Time> latencies;     ///< by LinkId; empty if there are none
    std::map<std::pair<int, int>, Time> way_latencies;
    std::vector<Resource> resources;  ///< links by LinkId, then, with ports, each rank's way out and way in
    std::vector<std::uint64_t> link_bytes;
    int parts = 1;
    int stripe = 1;                          ///< so many ranks in a row belong to one part
    int filling = 0;                         ///< the mail of this window; the other is that of the window before
    std::array<std::vector<Mail>, 2> mails;  ///< sender's part x parts + receiver's part

    int part_of(int rank) const noexcept { return rank / stripe % parts; }
  };

  Rank& rank(int number) noexcept { return world_->ranks[static_cast<std::size_t>(number)]; }
  Mail& mail(int window, int from, int to) noexcept {
    return world_->mails[static_cast<std::size_t>(window)][static_cast<std::size_t>(from * world_->parts + to)];
  }
  void schedule(Time time, Kind kind, std::uint32_t index) noexcept;
  void happen(const Event& event, std::vector<int>& woken) noexcept;
  void wake(int number, std::vector<int>& woken) noexcept;
  void change(int number, std::uint64_t offset, std::uint64_t value) noexcept;
  void note_moved(Rank& one) noexcept {
    if (one.messages_per_segment != 0 && ++one.moved % one.messages_per_segment == 0) one.progress.push_back(now_);
  }
  void send_word(Time time, const Word& word) noexcept;
  void add_word(Time time, const Word& word) noexcept;
  void show(const Word& word, std::vector<int>& woken) noexcept;
  void wait_for_engine(std::uint32_t message) noexcept;
  void use_engines(int number) noexcept;
  std::uint32_t queues_per_way() const noexcept {
    return model_.engine_rates.empty() ? 1 : static_cast<std::uint32_t>(model_.engines);
  }
  std::size_t find_queue(const Rank& sender, Time& earliest) const noexcept;
  void move_head(std::uint32_t message, std::size_t engine) noexcept;
  void arrive(std::uint32_t message, std::vector<int>& woken) noexcept;
  void note_use(const Message& message, std::size_t engine, Time begin, Time end) noexcept;
  Time transfer(std::size_t bytes, std::uint32_t link) const noexcept;
  Time feeding(Time transfer, std::size_t engine) const noexcept;
  Time latency(std::uint32_t link) const noexcept { return world_->latencies.empty() ? 0 : world_->latencies[link]; }
  Time late() const noexcept;
  Time way_latency(int from, int peer) noexcept;
  void add_links();
  // sharing.cpp
  void share_links();
  void start_flow(std::uint32_t message, std::size_t engine) noexcept;
  void settle_flows() noexcept;
  void end_flow(std::uint32_t flow) noexcept;

  NetworkModel model_;
  std::shared_ptr<World> world_;
  int part_ = 0;
  bool carries_data_;
  Time alpha_ = 0;
  Time overhead_ = 0;
  Time now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t words_sent_ = 0;
  Agenda<Event> agenda_;
  std::vector<Event> due_;  ///< of this instant
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::vector<std::array<std::byte, kInlineBytes>> lines_;  ///< with data, by message: payloads that fit into a line
  std::vector<Word> words_;
  std::vector<std::uint32_t> free_words_;
  std::optional<LinkSharing> sharing_;
  std::vector<Flow> flows_;  ///< rank x engines + engine
  bool is_settled_ = true;
  int watched_ = -1;
  std::vector<EngineUse> uses_;
};

}  // namespace torii::simulated
