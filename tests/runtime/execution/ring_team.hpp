// SPDX-License-Identifier: Apache-2.0
// The ranks of a team in one process, each with its plan installed on the standing rings: nothing runs, so that tests
// may look at what the two ends of a stream have been given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii::tests {

inline constexpr std::size_t kTeamSegmentBytes = 4096;

inline Plan plan_of(std::string_view algorithm, Collective collective, const Topology& topology, int rank) {
  PlanRequest request;
  request.collective = collective;
  request.topology = topology;
  request.tuning = {.segment_bytes = kTeamSegmentBytes, .slots = 4, .window = 2};
  return find_algorithm(algorithm)->plan(request, rank);
}

/// The machines on which the ranks are.
struct Machines {
  Nodes nodes = {};  ///< by rank
  int engines = 4;
  int rails = 1;
  bool polling_is_costly = false;
  bool deals_engines = false;
};

/// Each rank alone on a node.
inline Machines apart(int ranks, int engines = 4, int rails = 1, bool polling_is_costly = false) {
  Machines machines = {.engines = engines, .rails = rails, .polling_is_costly = polling_is_costly};
  for (int rank = 0; rank < ranks; ++rank) machines.nodes.push_back(rank);
  return machines;
}
inline Machines together(int ranks) { return {.nodes = Nodes(static_cast<std::size_t>(ranks))}; }

/// The arenas of all ranks. Pages that nobody touches cost nothing.
class Arenas {
 public:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  explicit Arenas(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) all_.emplace_back(static_cast<std::byte*>(std::calloc(kBytes, 1)));
  }
  std::byte* at(int rank, std::uint64_t offset) const { return all_[static_cast<std::size_t>(rank)].get() + offset; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> all_;
};

/// What installing asks of a transport.
class TeamTransport final : public Transport {
 public:
  TeamTransport(const Machines& machines, const Arenas& arenas, int rank)
      : machines_(machines), arenas_(arenas), rank_(rank) {
    capabilities_ = {.name = "machines",
                     .wakes_on_put = true,
                     .engines = machines.engines,
                     .rails = machines.rails,
                     .deals_engines = machines.deals_engines};
  }
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return static_cast<int>(machines_.nodes.size()); }
  int node(int rank) const noexcept override { return machines_.nodes[static_cast<std::size_t>(rank)]; }
  std::byte* mapped(int peer, std::uint64_t offset) noexcept override {
    return node(peer) == node(rank_) ? arenas_.at(peer, offset) : nullptr;
  }
  std::uint64_t arena_bytes() const noexcept override { return Arenas::kBytes; }
  Status put(const Put&) noexcept override { return Status::ok; }
  Status put_word(int, std::uint64_t, std::uint64_t) noexcept override { return Status::ok; }
  Status progress() noexcept override { return Status::ok; }
  bool drained() noexcept override { return true; }
  void sleep(SleepMark&, int, bool (*)(void*), void*) noexcept override {}
  bool alive(int) noexcept override { return true; }
  bool oversubscribed() const noexcept override { return machines_.polling_is_costly; }

 private:
  const Machines& machines_;
  const Arenas& arenas_;
  int rank_;
  Capabilities capabilities_;
};

struct RingTeamOptions {
  bool balances = false;                          ///< engines are dealt to messages by their credits
  std::size_t message_bytes = kTeamSegmentBytes;  ///< the longest
  std::shared_ptr<LearntChoices> learnt = {};
};

class RingTeam {
 public:
  RingTeam(Machines machines, std::string_view algorithm, Collective collective, const Topology& topology,
           const RingTeamOptions& options = {})
      : machines_(std::move(machines)), ranks_(topology.ranks()), arenas_(ranks_) {
    for (int rank = 0; rank < ranks_; ++rank) {
      members_.push_back(std::make_unique<Member>(machines_, arenas_, rank));
      Member& made = *members_.back();
      made.rings = std::make_unique<TeamRings>(made.transport, sizes(options), ring_members(rank));
      Plan plan = plan_of(algorithm, collective, topology, rank);
      Placement placement;
      placement.transport = &made.transport;
      placement.collective = collective;
      placement.learnt = options.learnt;
      placement.context_ranks = made.rings->members().context_ranks;
      placement.rings = &made.rings->on(0);
      if (several_nodes()) {
        placement.distant_size = distant_size_of(plan, options.message_bytes, Widening::none);
        take_entries(made, plan, placement.distant_size);
      }
      made.plan = std::make_unique<InstalledPlan>(install(std::move(plan), Widening::none, placement));
    }
  }

  int ranks() const noexcept { return ranks_; }
  InstalledPlan& plan(int rank) const { return *members_[static_cast<std::size_t>(rank)]->plan; }
  ChannelRings& rings(int rank) const { return members_[static_cast<std::size_t>(rank)]->rings->on(0); }
  const Arenas& arenas() const noexcept { return arenas_; }
  bool share_node(int a, int b) const {
    return machines_.nodes[static_cast<std::size_t>(a)] == machines_.nodes[static_cast<std::size_t>(b)];
  }

  /// The end of the stream of `from` to `to` with that tag; nullptr if that rank has none.
  const InstalledIn* in(int to, int from, int tag) const {
    for (const InstalledIn& one : plan(to).in) {
      if (one.stream.peer == from && one.stream.tag == tag) return &one;
    }
    return nullptr;
  }

  /// A receiver tells a sender on another node that entries of the plan's size are at that offset of its arena.
  void tell(const ReceiveEnd& end, int size, std::uint64_t offset) const {
    std::byte* const line = arenas_.at(end.rank, end.grants_offset + static_cast<std::size_t>(size) * kLineBytes);
    std::memcpy(line + sizeof(std::uint64_t), &offset, sizeof(offset));
    store_word(line, kToldSignal);
  }
  /// All receivers tell all senders where they have taken entries.
  void tell_all() const {
    for (int rank = 0; rank < ranks_; ++rank) {
      for (const InstalledIn& in : plan(rank).in) {
        const int size = plan(rank).uses.distant_size;
        if (in.ring.remote()) tell(in.ring.end(), size, in.ring.end().given[static_cast<std::size_t>(size)] - 1);
      }
    }
  }

 private:
  struct Member {
    Member(const Machines& machines, const Arenas& arenas, int rank) : transport(machines, arenas, rank) {}
    TeamTransport transport;
    std::unique_ptr<TeamRings> rings;
    std::unique_ptr<InstalledPlan> plan;
    std::uint64_t next = std::uint64_t{32} << 20;  ///< where it takes the next entries
  };

  bool several_nodes() const {
    return !std::ranges::all_of(machines_.nodes, [&](int n) { return n == machines_.nodes[0]; });
  }

  RingSizes sizes(const RingTeamOptions& options) const {
    if (!several_nodes()) return ring_sizes(ranks_, 1);
    std::ptrdiff_t most = 0;
    for (const int node : machines_.nodes) most = std::max(most, std::ranges::count(machines_.nodes, node));
    RingSizes sizes = distant_ring_sizes(static_cast<int>(most), ranks_, 1, options.balances);
    sizes.own_channels = 0;
    return sizes;
  }

  /// Each member has its area elsewhere.
  RingMembers ring_members(int rank) const {
    RingMembers members;
    members.rank = rank;
    int before = 0;
    for (int member = 0; member < ranks_; ++member) {
      members.context_ranks.push_back(member);
      members.offsets.push_back(4096 * static_cast<std::uint64_t>(member + 1));
      if (several_nodes()) members.places.push_back(share_node(member, rank) ? before++ : -1);
    }
    return members;
  }

  void take_entries(Member& made, const Plan& plan, int size) const {
    ChannelRings& rings = made.rings->on(0);
    const RingSizes& sizes = rings.sizes();
    const RingKind kind = ring_kind(plan, size);
    const auto give = [&](int sender, int stream) {
      if (sender == plan.rank || !rings.is_distant(sender)) return;
      rings.from(sender, sizes.ring(kind, stream)).given[static_cast<std::size_t>(size)] = made.next + 1;
      made.next += static_cast<std::size_t>(sizes.of(kind).entries) * distant_entry_bytes(size);
    };
    for (std::size_t i = 0; i < plan.in.size(); ++i) give(plan.in[i].peer, ring_of(plan.in, i));
    for (int peer = 0; plan.exchange.exists() && peer < plan.ranks; ++peer) {
      if (plan.exchange.takes(plan.rank) && plan.exchange.sends(peer)) give(peer, 0);
    }
  }

  Machines machines_;
  int ranks_;
  Arenas arenas_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace torii::tests
