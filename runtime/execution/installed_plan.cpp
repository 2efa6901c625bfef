// SPDX-License-Identifier: Apache-2.0
// Installs a plan of flows: binds its streams to rings, and finds which operands and results may be read in place.
#include "runtime/execution/installed_plan.hpp"

#include <algorithm>

#include "runtime/execution/stream_addresses.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "runtime/plan/shortcuts.hpp"

namespace torii {
namespace {

/// The peers on the node of `plan`'s rank that have a stream of the wanted kind with it, ascending.
template <typename Wanted>
std::vector<int> peers_with(const Plan& plan, const Nodes& nodes, const Wanted& wanted) {
  const int node = nodes[static_cast<std::size_t>(plan.rank)];
  std::vector<int> peers;
  const auto collect = [&](const std::vector<Stream>& streams, bool is_in) {
    for (const Stream& stream : streams) {
      if (nodes[static_cast<std::size_t>(stream.peer)] == node && wanted(stream, is_in)) peers.push_back(stream.peer);
    }
  };
  collect(plan.in, true);
  collect(plan.out, false);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

/// The peers that get this rank's buffer offer: readers of its operand and writers of its result in place.
std::vector<int> peers_offered_to(const Plan& plan, const Nodes& nodes) {
  return peers_with(plan, nodes, [](const Stream& stream, bool is_in) {
    return stream.delivery == (is_in ? Delivery::write_in_place : Delivery::read_in_place);
  });
}

/// The peers that make buffer offers to the rank of `plan`.
std::vector<int> offering_peers(const Plan& plan, const Nodes& nodes) {
  return peers_with(plan, nodes, [](const Stream& stream, bool is_in) {
    return stream.delivery == (is_in ? Delivery::read_in_place : Delivery::write_in_place);
  });
}

int index_of(const std::vector<int>& values, int value) {
  const auto at = std::find(values.begin(), values.end(), value);
  return at == values.end() ? -1 : static_cast<int>(at - values.begin());
}

bool are_more_than_two(const Nodes& nodes) {
  const auto others = std::ranges::find_if(nodes, [&](int node) { return node != nodes.front(); });
  return std::any_of(others, nodes.end(), [&](int node) { return node != nodes.front() && node != *others; });
}

class Installer {
 public:
  Installer(InstalledPlan& installed, const Placement& placement, const Nodes& nodes)
      : installed_(installed),
        placement_(placement),
        addresses_(installed, placement, nodes),
        nodes_(nodes),
        leaders_(group_leaders(installed.plan, nodes_)) {}

  void run() {
    const Plan& plan = installed_.plan;
    if (plan.exchange.exists()) {
      install_exchange(installed_, addresses_);
      return use_rings(installed_, rings(), placement_.slots_least);
    }
    const std::vector<int> offering = offering_peers(plan, nodes_);
    for (std::size_t i = 0; i < plan.in.size(); ++i) install_in(static_cast<int>(i), offering);
    for (std::size_t i = 0; i < plan.out.size(); ++i) install_out(static_cast<int>(i), offering);
    prepare_reading();
    find_final_values();
    use_rings(installed_, rings(), placement_.slots_least);
    deal_engines();
    share_engines();
    for (const int peer : offering) installed_.offers_in.push_back(addresses_.offer_line(peer, plan.rank));
    find_ranges();
    for (const int peer : peers_offered_to(plan, nodes_)) {
      OfferLine& line = installed_.offers_out.emplace_back(addresses_.offer_line(peer, peer));
      line.writes_result = std::ranges::any_of(plan.in, [=](const Stream& stream) {
        return stream.peer == peer && stream.delivery == Delivery::write_in_place;
      });
    }
  }

 private:
  /// The blocks that a peer must offer inside its arena.
  void find_ranges() {
    for (const Lane& lane : installed_.plan.lanes) {
      for (const Flow& flow : lane.flows) {
        for (const StreamEnd& end : flow.sources) {
          const int offer = end.stream == kOwn ? -1 : installed_.in[end.stream].offer;
          if (offer < 0) continue;
          OfferLine& line = installed_.offers_in[static_cast<std::size_t>(offer)];
          add_blocks(line.reads, flow.walk);
          line.operand_last = std::max(line.operand_last, installed_.in[end.stream].stream.operand_of(end.position));
        }
        for (const StreamEnd& end : flow.targets) {
          const int offer = installed_.out[end.stream].offer;
          if (offer >= 0) add_blocks(installed_.offers_in[static_cast<std::size_t>(offer)].stores, flow.walk);
        }
      }
    }
  }
  static void add_blocks(BlockRange& range, const Walk& walk) {
    for (int position = 0; position < walk.count; ++position) range.add(walk.block(position));
  }

  ChannelRings& rings() const noexcept { return *placement_.rings; }
  RingKind kind() const noexcept { return ring_kind(installed_.plan, installed_.uses.distant_size); }
  int standing_ring(const std::vector<Stream>& streams, int index) const noexcept {
    return rings().sizes().ring(kind(), ring_of(streams, static_cast<std::size_t>(index)));
  }

  void install_in(int index, const std::vector<int>& offering) {
    const Stream& stream = installed_.plan.in[static_cast<std::size_t>(index)];
    InstalledIn& in = installed_.in.emplace_back();
    in.stream = stream;
    if (stream.delivery == Delivery::read_in_place) in.offer = index_of(offering, stream.peer);
    ReceiveEnd& end = rings().from(stream.peer, standing_ring(installed_.plan.in, index));
    in.ring = ReceiveRing(addresses_.place_of(stream, end), end);
    installed_.remote = installed_.remote || in.ring.remote();
  }

  void prepare_reading() {
    int read = 0;
    bool readable = only_copies_operands(placement_.collective);
    for (const InstalledOut& out : installed_.out) {
      if (out.stream.delivery != Delivery::read_in_place || out.ring.remote()) continue;
      ++read;
      readable = readable && placement_.transport->readable(out.ring.peer());
    }
    installed_.private_reads.are_offered = read != 0 && readable;
    installed_.private_reads.are_made = std::ranges::any_of(installed_.in, [&](const InstalledIn& in) {
      return in.stream.delivery == Delivery::read_in_place && !in.ring.remote() &&
             placement_.transport->readable(in.ring.peer());
    });
  }

  void find_final_values() {
    const Plan& plan = installed_.plan;
    if (!installed_.remote || !placement_.transport->capabilities().gathers) return;
    const std::vector<BlockUse> uses =
        block_uses(plan, [&](int stream) { return installed_.out[static_cast<std::size_t>(stream)].ring.remote(); });
    installed_.result_is_final = std::ranges::all_of(uses, result_is_final);
    installed_.operand_in_place_stays = std::ranges::all_of(uses, operand_stays);
  }

  /// On two nodes all engines serve each pair of ranks, in turn, since there are no other pairs. On three nodes or more
  /// a pair meets on one engine of each rail, both ranks on the same one. If every engine carried data to every peer,
  /// each of these connections would have its own window and its own work for the kernel. If polling is costly there
  /// (Transport::polling_is_costly()), all pairs meet on the first engine of each rail.
  /// Streams of pairwise exchanges have no such engines. Their messages use all engines in turn (EnginePicker), and
  /// their credits use engine 0, the first engine of a stream as it is made.
  void deal_engines() {
    const Capabilities& able = placement_.transport->capabilities();
    const int most = are_more_than_two(nodes_) ? std::max(1, able.engines / able.rails) : 1;
    const int parts = placement_.transport->polling_is_costly() ? 1 : most;
    const auto deal = [&](RingPlace& place) {
      if (!place.remote) return;
      // Halved, since the sums of neighbours in a row are all odd.
      const int part = (placement_.transport->rank() + place.peer) / 2 % parts;
      place.engines.first = part * able.rails;
      place.engines.count = part == most - 1 ? able.engines - place.engines.first : able.rails;
    };
    for (InstalledIn& in : installed_.in) deal(in.ring.place());
    for (InstalledOut& out : installed_.out) deal(out.ring.place());
  }

  void share_engines() {
    const int engines = placement_.transport->capabilities().engines;
    if (placement_.transport->capabilities().deals_engines) return;
    const KindSizes sizes = rings().sizes().of(kind());
    if (engines < 2 || sizes.entries < EngineBalancer::kSlotsLeast || sizes.credit_group != 1) return;
    installed_.balancers.reserve(installed_.out.size());  // rings point to them
    for (InstalledOut& out : installed_.out) {
      if (!out.ring.remote()) continue;
      out.ring.place().engines.balancer = &installed_.balancers.emplace_back(sizes.entries, engines);
    }
    for (InstalledIn& in : installed_.in) {
      const auto out = std::ranges::find_if(installed_.out, [&](const InstalledOut& one) {
        return one.ring.peer() == in.ring.peer() && one.ring.place().engines.balancer != nullptr;
      });
      if (in.ring.remote() && out != installed_.out.end()) {
        in.ring.place().engines.balancer = out->ring.place().engines.balancer;
      }
    }
  }

  void install_out(int index, const std::vector<int>& offering) {
    const Stream& stream = installed_.plan.out[static_cast<std::size_t>(index)];
    InstalledOut& out = installed_.out.emplace_back();
    out.stream = stream;
    if (stream.delivery == Delivery::write_in_place) out.offer = index_of(offering, stream.peer);
    out.leader = leaders_[static_cast<std::size_t>(index)];
    SendEnd& end = rings().to(stream.peer, standing_ring(installed_.plan.out, index));
    RingPlace place = addresses_.place_of(stream, end);
    place.leads = out.leader < 0 || out.leader == index;
    out.ring = SendRing(place, end);
    installed_.remote = installed_.remote || place.remote;
  }

  InstalledPlan& installed_;
  const Placement& placement_;
  StreamAddresses addresses_;
  const Nodes& nodes_;
  std::vector<int> leaders_;
};

void find_choices(InstalledPlan& installed, const Placement& placement) {
  installed.learnt = placement.learnt == nullptr ? std::make_shared<LearntChoices>() : placement.learnt;
  LearntChoices& learnt = *installed.learnt;
  const bool receives = !installed.in.empty() || std::ranges::any_of(installed.exchange.peers, &ExchangePeer::takes);
  if (installed.plan.exchange.exists()) installed.stores.push_back(&learnt.exchange_stores(receives));
  for (const Lane& lane : installed.plan.lanes) {
    for (const Flow& flow : lane.flows) installed.stores.push_back(&learnt.stores(flow, receives));
  }
  PrivateReads& reads = installed.private_reads;
  reads.turns = &learnt.turns(placement.collective);
  if (reads.are_offered) reads.choice = &learnt.private_reads(placement.collective, receives);
  if (reads.are_made && placement.may_read) learnt.take_read_memory();
}

}  // namespace

InstalledPlan install(Plan plan, Widening widening, const Placement& placement) {
  InstalledPlan installed;
  const Nodes asked = placement.nodes.empty() ? nodes_of(placement) : Nodes{};
  installed.has_cells = has_cells(plan, widening);
  installed.plan = std::move(plan);
  installed.widening = widening;
  installed.uses.distant_size = placement.distant_size;
  installed.uses.message_size = placement.message_size;
  Installer(installed, placement, placement.nodes.empty() ? asked : placement.nodes).run();
  find_choices(installed, placement);
  return installed;
}

}  // namespace torii
