// SPDX-License-Identifier: Apache-2.0
// Gives the streams of a plan their addresses in the arenas of both ends.
#include "runtime/execution/installed_plan.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "runtime/execution/words.hpp"

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

/// The peers to which the rank of `plan` announces its buffers: readers of what it lends, writers of what lands in it.
std::vector<int> peers_told(const Plan& plan, const Nodes& nodes) {
  return peers_with(plan, nodes, [](const Stream& stream, bool is_in) {
    return stream.carriage == (is_in ? Carriage::land : Carriage::lend);
  });
}

/// The peers that announce their buffers to the rank of `plan`.
std::vector<int> peers_telling(const Plan& plan, const Nodes& nodes) {
  return peers_with(plan, nodes, [](const Stream& stream, bool is_in) {
    return stream.carriage == (is_in ? Carriage::lend : Carriage::land);
  });
}

int index_of(const std::vector<int>& values, int value) {
  const auto at = std::find(values.begin(), values.end(), value);
  return at == values.end() ? -1 : static_cast<int>(at - values.begin());
}

int find_end(const std::vector<Stream>& ends, int peer, int tag, const Plan& plan) {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].peer == peer && ends[i].tag == tag) return static_cast<int>(i);
  }
  throw Error(Status::internal, "the plan of rank " + std::to_string(plan.rank) + " has no stream of rank " +
                                    std::to_string(peer) + " with tag " + std::to_string(tag));
}

/// How many flows feed each out-stream.
std::vector<int> feeders(const Plan& plan) {
  std::vector<int> counts(plan.out.size(), 0);
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      for (const StreamEnd& end : flow.targets) ++counts[end.stream];
    }
  }
  return counts;
}

bool carry_the_same(const Stream& a, const Stream& b) {
  return a.carriage == b.carriage && a.carriage != Carriage::handover && a.wide == b.wide &&
         a.messages_per_segment == b.messages_per_segment && a.bundle == b.bundle;
}

/// Works out the plans of peers, each once.
class PeerPlans {
 public:
  PeerPlans(const Plan& own, const Placement& placement) : own_(own), placement_(placement) {}
  const Plan& of(int rank) {
    if (rank == own_.rank) return own_;
    auto [at, fresh] = plans_.try_emplace(rank);
    if (fresh) at->second = placement_.plan_of(rank);
    return at->second;
  }

 private:
  const Plan& own_;
  const Placement& placement_;
  std::map<int, Plan> plans_;
};

Nodes nodes_of(const Placement& placement) {
  Nodes nodes;
  for (const int rank : placement.context_ranks) nodes.push_back(placement.transport->node(rank));
  return nodes;
}

bool are_more_than_two(const Nodes& nodes) {
  const auto others = std::ranges::find_if(nodes, [&](int node) { return node != nodes.front(); });
  return std::any_of(others, nodes.end(), [&](int node) { return node != nodes.front() && node != *others; });
}

class Installer {
 public:
  Installer(InstalledPlan& installed, const Placement& placement)
      : installed_(installed),
        placement_(placement),
        nodes_(nodes_of(placement)),
        plans_(installed.plan, placement),
        leaders_(group_leaders(installed.plan, nodes_)) {}

  void run() {
    const Plan& plan = installed_.plan;
    if (plan.sweep.exists()) {
      install_sweep();
      return;
    }
    const std::vector<int> telling = peers_telling(plan, nodes_);
    const std::vector<int> told = peers_told(plan, nodes_);
    for (std::size_t i = 0; i < plan.in.size(); ++i) install_in(static_cast<int>(i), telling);
    for (std::size_t i = 0; i < plan.out.size(); ++i) install_out(static_cast<int>(i), telling);
    prepare_reading();
    find_what_stands();
    deal_engines();
    share_engines();
    for (std::size_t i = 0; i < telling.size(); ++i) {
      installed_.announced.push_back(announcement(telling[i], plan.rank, static_cast<int>(i)));
    }
    find_ranges();
    for (const int peer : told) {
      const int line = index_of(peers_telling(plans_.of(peer), nodes_), plan.rank);
      if (line < 0) throw Error(Status::internal, "rank " + std::to_string(peer) + " awaits no ready token");
      installed_.announces.push_back(announcement(peer, peer, line));
      installed_.announces.back().lands = std::ranges::any_of(
          plan.in, [=](const Stream& stream) { return stream.peer == peer && stream.carriage == Carriage::land; });
    }
  }

 private:
  std::uint64_t staging(int rank) const { return placement_.staging_offsets[static_cast<std::size_t>(rank)]; }
  int context_rank(int rank) const { return placement_.context_ranks[static_cast<std::size_t>(rank)]; }
  std::uint64_t slots_at(int receiver, int index) const {
    return staging(receiver) + static_cast<std::uint64_t>(index) * installed_.shape.stream_bytes;
  }
  std::uint64_t credits_at(int sender, int index) const {
    return staging(sender) + installed_.shape.credits_offset +
           static_cast<std::uint64_t>(index) * installed_.shape.credit_bytes;
  }

  Announcement announcement(int peer, int reader, int line) const {
    Announcement result;
    result.peer = context_rank(peer);
    result.line_offset =
        staging(reader) + installed_.shape.ready_offset + static_cast<std::uint64_t>(line) * kLineBytes;
    result.line = placement_.transport->mapped(context_rank(reader), result.line_offset);
    return result;
  }

  /// What a peer may not announce elsewhere than in its arena.
  void find_ranges() {
    for (const Lane& lane : installed_.plan.lanes) {
      for (const Flow& flow : lane.flows) {
        for (const StreamEnd& end : flow.sources) {
          const int telling = end.stream == kOwn ? -1 : installed_.in[end.stream].announcement;
          if (telling >= 0) add_blocks(installed_.announced[static_cast<std::size_t>(telling)].reads, flow.walk);
        }
        for (const StreamEnd& end : flow.targets) {
          const int telling = installed_.out[end.stream].announcement;
          if (telling >= 0) add_blocks(installed_.announced[static_cast<std::size_t>(telling)].stores, flow.walk);
        }
      }
    }
  }
  static void add_blocks(BlockRange& range, const Walk& walk) {
    for (int position = 0; position < walk.count; ++position) range.add(walk.block(position));
  }

  int node(int rank) const { return nodes_[static_cast<std::size_t>(rank)]; }
  std::byte* own(std::uint64_t offset) const {
    return placement_.transport->mapped(context_rank(installed_.plan.rank), offset);
  }

  InstalledStream ends(const Stream& stream, int receiver, int in_index, int sender, int out_index) {
    InstalledStream result;
    result.stream = stream;
    result.peer = context_rank(stream.peer);
    result.remote = node(receiver) != node(sender);
    installed_.remote = installed_.remote || result.remote;
    result.slots_offset = slots_at(receiver, in_index);
    result.credits_offset = credits_at(sender, out_index);
    if (result.remote && sender == installed_.plan.rank) {
      result.slots = own(staging(sender) + installed_.shape.send_offset +
                         static_cast<std::uint64_t>(out_index) * installed_.shape.stream_bytes);
    } else {
      result.slots = placement_.transport->mapped(context_rank(receiver), result.slots_offset);
    }
    result.payload_slots = result.slots;
    if (result.remote && !installed_.plan.sweep.exists())
      result.credit_group = credit_group(stream, installed_.plan.slots);
    if (sender == installed_.plan.rank) result.credits = own(result.credits_offset);
    return result;
  }

  void install_in(int index, const std::vector<int>& telling) {
    const Stream& stream = installed_.plan.in[static_cast<std::size_t>(index)];
    const Plan& sender = plans_.of(stream.peer);
    const int other = find_end(sender.out, installed_.plan.rank, stream.tag, sender);
    installed_.in.push_back(ends(stream, installed_.plan.rank, index, stream.peer, other));
    if (stream.carriage == Carriage::lend) installed_.in.back().announcement = index_of(telling, stream.peer);
    if (installed_.in.back().remote) return;
    const int leader = group_leaders(sender, nodes_)[static_cast<std::size_t>(other)];
    if (leader >= 0) installed_.in.back().payload_slots = leader_slots(sender, leader);
  }

  /// True when the receiver combines the stream with nothing. Operands that are folded are better read from slots: a
  /// kernel cannot fold what a system call has yet to copy.
  bool is_only_copied(const Stream& stream) {
    const Plan& receiver = plans_.of(stream.peer);
    const int index = find_end(receiver.in, installed_.plan.rank, stream.tag, receiver);
    for (const Lane& lane : receiver.lanes) {
      for (const Flow& flow : lane.flows) {
        const bool uses = std::ranges::any_of(flow.sources, [&](StreamEnd end) { return end.stream == index; });
        if (uses && flow.sources.size() != 1) return false;
      }
    }
    return true;
  }

  void prepare_reading() {
    int lent = 0;
    bool readable = true;
    for (const InstalledStream& out : installed_.out) {
      if (out.stream.carriage != Carriage::lend || out.remote) continue;
      ++lent;
      readable = readable && placement_.transport->readable(out.peer) && is_only_copied(out.stream);
    }
    installed_.lends_readable = lent != 0 && readable;
    const bool reads = std::ranges::any_of(installed_.in, [&](const InstalledStream& in) {
      return in.stream.carriage == Carriage::lend && !in.remote && placement_.transport->readable(in.peer);
    });
    // Untouched, and so without pages, until something is read.
    if (reads) installed_.read.reset(new std::byte[LendChoice::kReadBytes]);
  }

  void find_what_stands() {
    const Plan& plan = installed_.plan;
    if (!installed_.remote || !placement_.transport->capabilities().gathers) return;
    std::vector<int> kept(static_cast<std::size_t>(plan.blocks), 0);
    std::vector<bool> sent(kept.size(), false);         // the own operand goes to another node
    std::vector<bool> overwritten(kept.size(), false);  // if that is the result's memory
    for (const Lane& lane : plan.lanes) {
      for (const Flow& flow : lane.flows) {
        const bool is_own = flow.sources.size() == 1 && flow.sources[0].stream == kOwn;
        const bool is_sent =
            std::ranges::any_of(flow.targets, [&](StreamEnd end) { return installed_.out[end.stream].remote; });
        for (int visit = 0; visit < flow.walk.count; ++visit) {
          const auto block = static_cast<std::size_t>(flow.walk.block(visit));
          if (flow.keep) ++kept[block];
          if (flow.keep && !is_own) overwritten[block] = true;
          if (is_own && is_sent) sent[block] = true;
        }
      }
    }
    installed_.result_is_final = std::ranges::all_of(kept, [](int times) { return times <= 1; });
    installed_.operand_in_place_stays = true;
    for (std::size_t block = 0; block < kept.size(); ++block) {
      if (sent[block] && overwritten[block]) installed_.operand_in_place_stays = false;
    }
  }

  /// On two nodes all engines serve each pair of ranks, in turn, since there is nobody else to serve. On three nodes or
  /// more a pair meets on one engine of each rail, both ranks on the same one: if every engine carried data to every
  /// peer, each of these connections would have its own window and its own work for the kernel. If looks are dear
  /// there (Transport::polling_is_costly()), all pairs meet on the first engine of each rail.
  /// Streams of sweeps are not dealt. Their messages use all engines in turn (EnginePicker), and their credits use
  /// engine 0, the first engine of a stream as it is made.
  void deal_engines() {
    const Capabilities& able = placement_.transport->capabilities();
    const int most = are_more_than_two(nodes_) ? std::max(1, able.engines / able.rails) : 1;
    const int parts = placement_.transport->polling_is_costly() ? 1 : most;
    for (auto* streams : {&installed_.in, &installed_.out}) {
      for (InstalledStream& one : *streams) {
        if (!one.remote) continue;
        // Halved, since the sums of neighbours in a row are all odd.
        const int part = (placement_.transport->rank() + one.peer) / 2 % parts;
        one.first_engine = part * able.rails;
        one.engine_count = part == most - 1 ? able.engines - one.first_engine : able.rails;
      }
    }
  }

  /// Streams without credits cannot tell what an engine has done.
  void share_engines() {
    const int engines = placement_.transport->capabilities().engines;
    if (engines < 2 || installed_.plan.slots < EngineShare::kSlotsLeast) return;
    for (InstalledStream& out : installed_.out) {
      if (!out.remote || !out.stream.credits) continue;
      out.share = static_cast<int>(installed_.shares.size());
      installed_.shares.emplace_back(installed_.plan.slots, engines);
    }
    for (InstalledStream& in : installed_.in) {
      const auto out = std::ranges::find_if(
          installed_.out, [&](const InstalledStream& one) { return one.peer == in.peer && one.share >= 0; });
      if (in.remote && out != installed_.out.end()) in.share = out->share;
    }
  }

  /// The slots of the receiver of `sender`'s out-stream number `leader`.
  std::byte* leader_slots(const Plan& sender, int leader) {
    const Stream& stream = sender.out[static_cast<std::size_t>(leader)];
    const Plan& receiver = plans_.of(stream.peer);
    const int index = find_end(receiver.in, sender.rank, stream.tag, receiver);
    return placement_.transport->mapped(context_rank(stream.peer), slots_at(stream.peer, index));
  }

  void install_out(int index, const std::vector<int>& telling) {
    const Stream& stream = installed_.plan.out[static_cast<std::size_t>(index)];
    const Plan& receiver = plans_.of(stream.peer);
    const int other = find_end(receiver.in, installed_.plan.rank, stream.tag, receiver);
    installed_.out.push_back(ends(stream, stream.peer, other, installed_.plan.rank, index));
    if (stream.carriage == Carriage::land) installed_.out.back().announcement = index_of(telling, stream.peer);
    const int leader = leaders_[static_cast<std::size_t>(index)];
    installed_.out.back().leader = leader;
    if (leader >= 0) {
      installed_.out.back().payload_slots = installed_.out[static_cast<std::size_t>(leader)].payload_slots;
    }
  }

  /// Needs no peer's plan: which of a peer's streams belongs to this rank follows from their ranks.
  void install_sweep() {
    const Plan& plan = installed_.plan;
    const Sweep& sweep = plan.sweep;
    InstalledSweep& done = installed_.sweep;
    std::vector<std::uint32_t> index(static_cast<std::size_t>(plan.ranks), 0);
    for (int peer = 0; peer < plan.ranks; ++peer) {
      const bool sends = sweep.sends(plan.rank) && sweep.takes(peer);
      const bool takes = sweep.takes(plan.rank) && sweep.sends(peer);
      if (peer == plan.rank || (!sends && !takes)) continue;
      index[static_cast<std::size_t>(peer)] = static_cast<std::uint32_t>(done.peers.size());
      done.peers.push_back(sweep_peer(peer, sends, takes));
    }
    for (int entry = 0; entry < sweep.order->entries(); ++entry) {
      const int receiver = sweep.order->receiver(plan.rank, entry);
      const int sender = sweep.order->sender(plan.rank, entry);
      if (sweep.sends(plan.rank) && sweep.takes(receiver)) {
        done.sends_in.push_back(index[static_cast<std::size_t>(receiver)]);
      }
      if (sweep.takes(plan.rank) && sweep.sends(sender)) {
        done.takes_in.push_back(index[static_cast<std::size_t>(sender)]);
      }
    }
    bool readable = true;
    for (const std::uint32_t to : done.sends_in) {
      const SweepPeer& peer = done.peers[to];
      if (!peer.remote) readable = readable && placement_.transport->readable(peer.context_rank);
    }
    installed_.lends_readable = readable && !done.sends_in.empty();
  }

  SweepPeer sweep_peer(int peer, bool sends, bool takes) {
    const int rank = installed_.plan.rank;
    const Sweep& sweep = installed_.plan.sweep;
    SweepPeer result;
    result.rank = peer;
    result.context_rank = context_rank(peer);
    result.remote = node(peer) != node(rank);
    const Stream stream = {.peer = peer};
    if (sends) result.out = ends(stream, peer, sweep.in_stream(peer, rank), rank, sweep.out_stream(rank, peer));
    if (takes) result.in = ends(stream, rank, sweep.in_stream(rank, peer), peer, sweep.out_stream(peer, rank));
    if (result.remote) return result;
    const Announcement tells = announcement(peer, peer, 2 * rank);
    result.tells = tells.line;
    result.tells_offset = tells.line_offset;
    result.hears = announcement(peer, rank, 2 * peer).line;
    return result;
  }

  InstalledPlan& installed_;
  const Placement& placement_;
  Nodes nodes_;
  PeerPlans plans_;
  std::vector<int> leaders_;
};

}  // namespace

std::vector<int> group_leaders(const Plan& plan, const Nodes& nodes) {
  const int node = nodes[static_cast<std::size_t>(plan.rank)];
  const auto is_remote = [&](const Stream& stream) { return nodes[static_cast<std::size_t>(stream.peer)] != node; };
  const std::vector<int> counts = feeders(plan);
  std::vector<int> leaders(plan.out.size(), -1);
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      for (auto end = flow.targets.begin(); end != flow.targets.end(); ++end) {
        if (counts[end->stream] != 1) continue;
        const auto leader = std::find_if(flow.targets.begin(), end, [&](const StreamEnd& earlier) {
          const Stream& first = plan.out[earlier.stream];
          const Stream& second = plan.out[end->stream];
          return counts[earlier.stream] == 1 && earlier.position == end->position &&
                 is_remote(first) == is_remote(second) && carry_the_same(first, second);
        });
        if (leader == end) continue;
        leaders[leader->stream] = leader->stream;
        leaders[end->stream] = leader->stream;
      }
    }
  }
  return leaders;
}

// With a message per segment every wait that a group adds looks back at least one segment: it stands on no cycle of
// weight 0 of the verifier's graph, so nothing deadlocks. Engines that share a stream are timed by the credit of each
// message.
int credit_group(const Stream& stream, int slots) {
  constexpr int kGroupsLeast = 4;  // so that most slots are free while a group fills
  if (stream.messages_per_segment != 1 || slots >= EngineShare::kSlotsLeast) return 1;
  static_assert(EngineShare::kSlotsLeast / 2 <= kCreditGroupsMax, "groups of two are the most that there can be");
  int group = 1;
  while (2 * group * kGroupsLeast <= slots && slots % (2 * group) == 0) group *= 2;
  return group;
}

StagingShape staging_shape(const Plan& plan, std::size_t segment_bytes, bool wide, bool several_nodes) {
  StagingShape shape;
  const std::size_t bundle_bytes = segment_bytes * static_cast<std::size_t>(plan.bundle_max);
  const std::size_t payload_bytes = round_up(wide ? 2 * bundle_bytes : bundle_bytes, kLineBytes);
  const auto slots = static_cast<std::size_t>(plan.slots);
  shape.slot_bytes = kLineBytes + payload_bytes;
  shape.stream_bytes = slots * shape.slot_bytes;
  if (!plan.sweep.exists() && plan.bundle_max == 1 && !wide) {
    shape.cells_offset = shape.stream_bytes;
    shape.wide_cells_offset = shape.cells_offset + round_up(slots * kCellBytes, kLineBytes);
    shape.stream_bytes = shape.wide_cells_offset + round_up(slots * kWideCellBytes, kLineBytes);
  }
  shape.credit_bytes = round_up(slots * sizeof(std::uint64_t), kLineBytes);
  shape.ready_offset = static_cast<std::size_t>(plan.in_streams_max) * shape.stream_bytes;
  const auto lines_max =
      static_cast<std::size_t>(plan.sweep.exists() ? 2 * plan.ranks : plan.in_streams_max + plan.out_streams_max);
  shape.credits_offset = shape.ready_offset + lines_max * kLineBytes;
  const auto outs = static_cast<std::size_t>(plan.out_streams_max);
  shape.send_offset = shape.credits_offset + outs * shape.credit_bytes;
  shape.total_bytes = round_up(shape.send_offset + (several_nodes ? outs * shape.stream_bytes : 0), 4096);
  return shape;
}

InstalledPlan install(Plan plan, std::size_t segment_bytes, bool wide, const Placement& placement) {
  InstalledPlan installed;
  const Nodes nodes = nodes_of(placement);
  const bool several_nodes = std::ranges::any_of(nodes, [&](int node) { return node != nodes.front(); });
  installed.shape = staging_shape(plan, segment_bytes, wide, several_nodes);
  installed.plan = std::move(plan);
  installed.wide = wide;
  std::size_t flows = 0;
  for (const Lane& lane : installed.plan.lanes) flows += lane.flows.size();
  installed.stores.resize(installed.plan.sweep.exists() ? 1 : flows);
  Installer(installed, placement).run();
  return installed;
}

}  // namespace torii
