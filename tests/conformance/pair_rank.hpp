// SPDX-License-Identifier: Apache-2.0
// A rank, as a thread, with its sends and receives below the public interface.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <vector>

#include "runtime/point_to_point/distant_streams.hpp"
#include "runtime/point_to_point/pair_rings.hpp"
#include "runtime/point_to_point/point_to_point.hpp"

#include "tests/conformance/distant.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::tests {

inline constexpr double kPairDeadlineS = 60;

/// Where the bytes of sends are, and whether others may read them there.
enum class Memory { in_arena, readable, closed };

struct Setting {
  Memory memory = Memory::closed;
  std::vector<int> nodes = {};  ///< by rank; empty: one node
};

/// One rank: a transport and the sends and receives of its thread.
class PairRank {
 public:
  PairRank(Bootstrap& bootstrap, const Setting& setting, std::uint64_t seed = 1)
      : bootstrap_(bootstrap),
        setting_(setting),
        nodes_(bootstrap),
        arena_(shared_memory::make_arena(bootstrap, nodes_, shared_memory::kArenaBytesMin)),
        peers_(bootstrap, nodes_, *arena_, kPairDeadlineS),
        shared_memory_(bootstrap, *arena_, peers_, 2, setting.memory == Memory::readable ? Switch::on : Switch::off),
        distant_(shared_memory_, setting.nodes, seed * 1000 + static_cast<std::uint64_t>(bootstrap.rank())) {
    const PairArea area(sizes_of(bootstrap.ranks(), setting.nodes));
    place_bytes_ = area.sizes().place_bytes;
    RingMembers members;
    members.rank = bootstrap.rank();
    members.offsets = gather_values(bootstrap, arena_->allocate(std::max<std::size_t>(area.total_bytes(), 1)));
    std::map<int, int> before;
    for (int peer = 0; peer < bootstrap.ranks(); ++peer) members.context_ranks.push_back(peer);
    for (const int node : setting.nodes) {
      const int place = before[node]++;
      members.places.push_back(node == setting.nodes[static_cast<std::size_t>(members.rank)] ? place : -1);
    }
    pairs.emplace(distant_, area, members);
    for (int peer = 0; peer < bootstrap.ranks(); ++peer) {
      if (peer == members.rank) continue;
      if (members.is_distant(peer)) {
        raw_.push_back(std::make_unique<DistantStreams>(distant_, area, members, peer));
      } else {
        raw_.push_back(std::make_unique<RingStreams>(distant_, area, members, peer));
      }
    }
  }

  /// Memory for bytes that are sent.
  std::byte* allocate(std::size_t bytes) {
    if (setting_.memory == Memory::in_arena) return arena_->base() + arena_->allocate(std::max<std::size_t>(bytes, 1));
    memory_.push_back(std::make_unique<std::byte[]>(std::max<std::size_t>(bytes, 1)));
    return memory_.back().get();
  }
  Send& send(int to, int tag, const std::byte* data, std::size_t bytes, std::uint16_t type = 1) {
    Send& send = sends.emplace_back();
    send.to = to;
    send.envelope = {.from = bootstrap_.rank(), .tag = tag, .type = type, .bytes = bytes};
    send.data = data;
    send.reachable = setting_.memory == Memory::in_arena;
    if (send.reachable) send.offset = data - arena_->base();
    pairs->start(send);
    return send;
  }
  Receive& receive(int from, int tag, std::byte* to, std::size_t bytes, std::uint16_t type = 1) {
    Receive& receive = receives.emplace_back();
    receive.from = from;
    receive.tag = tag;
    receive.type = type;
    receive.data = to;
    receive.room_bytes = bytes;
    pairs->start(receive);
    return receive;
  }
  /// Until it is so; false if it is not in time, or something failed.
  template <class Done>
  bool go_on_until(Done&& done) {
    const std::int64_t begun_ns = now_ns();
    while (!done()) {
      if (!pairs->progress()) sched_yield();
      if (pairs->status() != Status::ok || static_cast<double>(now_ns() - begun_ns) > kPairDeadlineS * 1e9)
        return false;
    }
    return true;
  }
  bool finish() {
    return go_on_until([&] { return pairs->open() == 0; });
  }
  /// All ranks have come here. Nobody unmaps what another thread may still put into.
  void meet() { gather_values(bootstrap_, 0); }
  void leave() {
    distant_.flush();
    meet();
  }
  /// A message that no rank sends by itself.
  void forge(int to, const Heading& heading, std::size_t bytes) {
    const std::vector<std::byte> payload(bytes, std::byte{0xff});
    PairStreams& streams = *raw_[static_cast<std::size_t>(to - (to > bootstrap_.rank() ? 1 : 0))];
    streams.send(raw_call_, heading, payload.data(), bytes);
  }
  /// Takes so many messages of a peer that sends to this rank, and nothing else. Nobody receives them.
  void take(int from, int messages) {
    PairStreams& streams = *raw_[static_cast<std::size_t>(from - (from > bootstrap_.rank() ? 1 : 0))];
    for (int i = 0; i < messages; ++i) {
      const Arrived message = streams.arrived(raw_call_);
      ASSERT_NE(message.heading, nullptr) << i;
      streams.take(raw_call_, message);
    }
  }
  std::size_t place_bytes() const { return place_bytes_; }
  std::uint64_t reads() const { return distant_.reads(); }

  std::optional<PointToPoint> pairs;
  std::deque<Send> sends;
  std::deque<Receive> receives;

 private:
  static PairSizes sizes_of(int ranks, const std::vector<int>& nodes) {
    if (nodes.empty()) return pair_sizes(ranks);
    std::map<int, int> on_nodes;
    for (const int node : nodes) ++on_nodes[node];
    return distant_pair_sizes(std::ranges::max(on_nodes | std::views::values), ranks);
  }

  Bootstrap& bootstrap_;
  const Setting setting_;
  shared_memory::Nodes nodes_;
  std::unique_ptr<shared_memory::Arena> arena_;
  shared_memory::NodePeers peers_;
  shared_memory::SharedMemory shared_memory_;
  Distant distant_;
  std::size_t place_bytes_ = 0;
  // The same streams once more, for a rank that breaks the rules.
  RunningCall raw_call_{distant_};
  std::vector<std::unique_ptr<PairStreams>> raw_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// So many ranks, on one node if the setting says nothing else.
template <class Body>
void run_pairs(int ranks, Body&& body, const Setting& setting = {}) {
  run_ranks_as_threads(ranks, [&](Bootstrap& bootstrap) {
    SCOPED_TRACE(setting.nodes.empty() ? "on one node" : "between nodes");
    PairRank own(bootstrap, setting);
    body(own, bootstrap.rank());
    own.leave();
  });
}
/// The same on one node, and then each rank on its own.
template <class Body>
void with_ranks(int ranks, Body&& body, Setting setting = {}) {
  run_pairs(ranks, body, setting);
  for (int rank = 0; rank < ranks; ++rank) setting.nodes.push_back(rank);
  run_pairs(ranks, body, setting);
}
template <class Body>
void with_two(Body&& body, const Setting& setting = {}) {
  with_ranks(2, body, setting);
}

}  // namespace torii::tests
