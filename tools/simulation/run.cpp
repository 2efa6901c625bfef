// SPDX-License-Identifier: Apache-2.0
// The event loop: asks each rank for which something has arrived to continue. Threads do so for parts of the network.
#include "tools/simulation/run.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "runtime/base/index.hpp"
#include "runtime/base/status.hpp"
#include "runtime/execution/learnt_choices.hpp"
#include "runtime/fabric/words.hpp"
#include "tools/simulation/parts.hpp"
#include "tools/simulation/ring_places.hpp"
#include "tools/simulation/windows.hpp"
#include "transports/simulated/simulated.hpp"

namespace torii::simulated {
namespace {

/// The lanes of all ranks, each distinct lane once: trinaryx3 on 48x6x32 has 52 of them on 9216 ranks.
using Lanes = std::set<Lane>;

/// A rank's work on virtual time: folding takes the time of the model, copying takes none.
class Work final : public StepModel {
 public:
  Work(Network& network, Lanes& lanes, int rank, const Call& call)
      : network_(&network),
        lanes_(&lanes),
        rank_(rank),
        carries_data_(call.fill != nullptr),
        us_per_byte_(call.reduce_GBps ? 1e-3 / *call.reduce_GBps : 0) {}

  bool runs(std::size_t sources, std::size_t bytes) noexcept override {
    if (us_per_byte_ > 0 && sources > 1 && bytes > 0) {
      const Time cost = network_->in_ticks(us_per_byte_ * static_cast<double>(bytes * (sources - 1)));
      network_->compute_until(rank_, network_->now() + cost);
    }
    return carries_data_;
  }
  bool is_busy() const noexcept override { return network_->is_computing(rank_); }
  const Lane& common(const Lane& lane) override { return *lanes_->insert(lane).first; }

 private:
  Network* network_;
  Lanes* lanes_;
  int rank_;
  bool carries_data_;
  double us_per_byte_;
};

struct Member final : WordListener {
  Member(Network& network, const RingPlaces& places, Lanes& lanes, int rank, const Call& call)
      : transport(network, rank),
        ring_members{.rank = rank},
        rings(transport, places.area(), ring_members, 0),
        work(network, lanes, rank, call),
        execution(transport, ModelledHost(work)) {
    places.add_ends(rank, transport, rings);
    execution.lanes().watch().watch(places.words());
  }

  void changed(std::uint64_t offset) noexcept override { execution.lanes().watch().changed(offset); }

  Simulated transport;
  const RingMembers ring_members;
  ChannelRings rings;
  Work work;
  ModelledExecution execution;
  InstalledPlan plan;
  std::unique_ptr<LinearProgram> program;
  std::vector<std::byte> operand;
  std::vector<std::byte> result;
  bool is_done = false;
};

/// If each lane has one step per segment and streams deliver in order, no segment can overtake another, with any
/// window. With a window of 1 the executor need not search for one that does.
Plan narrowed(const Call& call, int rank) {
  Plan plan = call.plans[index(rank)];
  if (call.network.jitter_us > 0 || !call.network.engine_rates.empty()) return plan;
  for (Lane& lane : plan.lanes) {
    if (lane.flows.size() == 1 && lane.flows.front().walk.count == 1) lane.window = 1;
  }
  return plan;
}

/// Lists have a few hundred bytes for each step of a rank. Beyond these all ranks run their lanes, whose messages are
/// the same.
constexpr std::size_t kListedStepsMost = std::size_t{1} << 19;

bool has_room_for_lists(const Call& call) {
  if (!call.lists) return false;
  std::size_t steps = 0;
  for (const Plan& plan : call.plans) {
    for (const Lane& lane : plan.lanes) {
      for (const Flow& flow : lane.flows) steps += static_cast<std::size_t>(flow.walk.count);
    }
  }
  return steps <= kListedStepsMost;
}

/// One part of the network and the progress of its ranks. In a window of time one thread handles it.
struct Part {
  Part(const Call& call, std::size_t arena_bytes, int parts)
      : network(call.network, arena_bytes, call.fill != nullptr, parts) {}
  Part(const Part& first, int number) : network(first.network, number) {}

  Network network;
  std::shared_ptr<LearntChoices> learnt = std::make_shared<LearntChoices>();  ///< of the part's ranks
  std::vector<int> woken;
  int left = 0;     ///< ranks that are not done
  Time end = 0;     ///< when the last one that is was done
  int failed = -1;  ///< a rank that has put what belongs to no stream
};

class Run {
 public:
  Run(const Call& call, const CallShape& shape)
      : call_(call), shape_(shape), places_(call, shape), members_(call.plans.size()) {
    const int parts = parts_of(call);
    parts_.reserve(index(parts));
    parts_.emplace_back(call, places_.arena_bytes(), parts);
    for (int part = 1; part < parts; ++part) parts_.emplace_back(parts_.front(), part);
    install_all();
    for (Part& part : parts_) part.network.watch(call.watched);
    for (int rank = 0; rank < ranks(); ++rank) start(rank);
  }

  Outcome finish() {
    const int parts = static_cast<int>(parts_.size());
    const int threads = std::min(parts, static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U)));
    if (open_window()) {
      run_windows(
          parts, threads, [this](int part) { run_window(parts_[index(part)]); }, [this] { return open_window(); });
    }
    for (const Part& part : parts_) {
      if (part.failed < 0) continue;
      throw Error(Status::internal, "rank " + std::to_string(part.failed) + " put what belongs to no stream");
    }
    if (left() > 0) report_stall();
    Outcome outcome;
    for (const Part& part : parts_) {
      const Network& network = part.network;
      outcome.time = std::max(outcome.time, part.end);
      outcome.messages += network.messages();
      outcome.credits += network.words();
      outcome.uses.insert(outcome.uses.end(), network.uses().begin(), network.uses().end());
    }
    outcome.lists = lists_;
    Network& network = parts_.front().network;
    outcome.link_bytes.assign(network.link_bytes().begin(), network.link_bytes().end());
    outcome.messages_per_segment = messages_per_segment_;
    outcome.link_messages = std::move(link_messages_);
    for (int rank = 0; rank < ranks(); ++rank) outcome.progress.push_back(network.take_progress(rank));
    for (std::optional<Member>& member : members_) outcome.results.push_back(std::move(member->result));
    return outcome;
  }

 private:
  int ranks() const { return static_cast<int>(call_.plans.size()); }
  Part& part_of(int rank) { return parts_[index(parts_.front().network.part_of(rank))]; }
  int left() const {
    return std::accumulate(parts_.begin(), parts_.end(), 0, [](int sum, const Part& part) { return sum + part.left; });
  }

  /// Between windows. False if nothing is left to do, or something has failed.
  bool open_window() noexcept {
    Time begin = std::numeric_limits<Time>::max();
    for (Part& part : parts_) {
      if (part.failed >= 0) return false;
      begin = std::min(begin, part.network.next_time());
    }
    if (left() == 0 || begin == std::numeric_limits<Time>::max()) return false;
    window_end_ = parts_.size() == 1 ? std::numeric_limits<Time>::max()
                                     : begin + parts_.front().network.in_ticks(call_.network.alpha_us);
    parts_.front().network.turn_mail();
    return true;
  }

  void run_window(Part& part) noexcept {
    part.network.take_mail();
    while (part.network.next_instant(part.woken, window_end_)) {
      for (const int rank : part.woken) advance(part, rank);
    }
  }

  void install_all() {
    link_messages_.resize(parts_.front().network.link_bytes().size());
    for (int rank = 0; rank < ranks(); ++rank)
      members_[index(rank)].emplace(part_of(rank).network, places_, lanes_, rank, call_);
    Placement placement;
    placement.context_ranks.resize(call_.plans.size());
    std::iota(placement.context_ranks.begin(), placement.context_ranks.end(), 0);
    placement.nodes = placement.context_ranks;
    for (int rank = 0; rank < ranks(); ++rank) {
      Member& member = *members_[index(rank)];
      placement.transport = &member.transport;
      placement.rings = &member.rings;
      placement.learnt = part_of(rank).learnt;
      member.plan = install(narrowed(call_, rank), call_.widening, placement);
      places_.complete(member.plan);
      add_ways(rank, member.plan);
    }
  }

  /// By receiver, the ways that a pairwise exchange's order names for messages of `rank`; empty if it names none.
  std::vector<Ties> exchange_ties(int rank) const {
    const PairwiseExchange& exchange = call_.plans[index(rank)].exchange;
    if (!exchange.exists() || !call_.network.topology.selects_ties()) return {};
    std::vector<Ties> ties(call_.plans.size());
    for (int transfer = 0; transfer < exchange.order->transfers(); ++transfer) {
      ties[index(exchange.order->receiver(rank, transfer))] = exchange.order->ties(rank, transfer);
    }
    return ties;
  }

  /// As the verifier counts them: the streams of one pair alternate if two ways are equally long.
  void add_ways(int rank, const InstalledPlan& plan) {
    Network& network = part_of(rank).network;
    std::map<int, int> turns;
    std::vector<LinkId> route;
    std::uint64_t moved = 0;
    for (const InstalledIn& in : plan.in) {
      if (in.ring.peer() != rank) moved += static_cast<std::uint64_t>(in.stream.bundles_per_segment());
    }
    const auto add_way = [&](const SendRing& out, int turn, const Ties& ties) {
      const std::uint64_t begin = out.place().entries_offset;
      network.add_way(rank, out.peer(), begin, begin + places_.words().in_bytes, turn, ties);
    };
    for (const InstalledOut& out : plan.out) {
      const int peer = out.ring.peer();
      if (peer == rank) continue;
      const int turn = turns[peer]++;
      add_way(out.ring, turn, out.stream.ties);
      const auto messages = static_cast<std::uint64_t>(out.stream.bundles_per_segment());
      moved += messages;
      messages_per_segment_ += messages;
      route.clear();
      append_network_route(call_.network.topology, rank, peer, turn, route, out.stream.ties);
      for (const LinkId link : route) link_messages_[index(link)] += messages;
    }
    const std::vector<Ties> ties = exchange_ties(rank);
    for (const ExchangePeer& peer : plan.exchange.peers) {
      if (peer.sends) add_way(peer.out.ring, 0, ties.empty() ? Ties{} : ties[index(peer.rank)]);
    }
    network.note_progress(rank, moved);
  }

  void start(int rank) {
    Member& member = *members_[index(rank)];
    Part& part = part_of(rank);
    ++part.left;
    CallBuffers buffers;
    if (!call_.blocks.empty()) buffers.blocks = &call_.blocks[index(rank)];
    if (call_.fill) {
      const bool is_broadcast = call_.request.collective == Collective::broadcast;  // operand and result in one
      std::vector<std::byte>& operand = is_broadcast ? member.result : member.operand;
      member.result.resize(shape_.layout.total_bytes());
      operand.resize(operand_bytes(rank));
      call_.fill(rank, operand.data());
      buffers.input = reinterpret_cast<std::uintptr_t>(operand.data());
      buffers.result = reinterpret_cast<std::uintptr_t>(member.result.data());
    }
    if (runs_lists_) {
      member.program = compile_linear(member.plan, shape_.layout, shape_.unit_bytes, shape_.element_bytes);
      if (member.program != nullptr) ++lists_;
    }
    member.execution.begin(member.plan, shape_, buffers, member.program.get());
    // The execution keeps the common lanes, and the rings their streams.
    member.plan.plan.lanes = {};
    member.plan.plan.in = member.plan.plan.out = {};
    // A pairwise exchange looks at its pools, whatever has changed.
    if (!member.plan.plan.exchange.exists()) part.network.tell(rank, member);
    const double late_us = call_.skew_us * uniform(~call_.network.seed, static_cast<std::uint64_t>(rank));
    part.network.wake_at(rank, part.network.in_ticks(late_us));
  }

  /// Of all operands of a rank, which are one behind the other.
  std::size_t operand_bytes(int rank) const {
    const int operands = call_.request.leaves == nullptr ? 1 : call_.request.leaves->operands(rank);
    if (operands == 0) return 0;
    return index(operands - 1) * shape_.operand_stride_bytes + shape_.layout.total_bytes();
  }

  void advance(Part& part, int rank) noexcept {
    Member& member = *members_[index(rank)];
    if (member.is_done || part.failed >= 0 || member.work.is_busy()) return;
    const Progress progress = member.execution.advance();
    if (member.execution.status() != Status::ok) part.failed = rank;
    const bool is_exchange = member.plan.plan.exchange.exists();  // its entries end with credits
    part.network.wake_by_words(rank, is_exchange || member.execution.waits_for_credit() || member.work.is_busy());
    part.network.wake_when_drained(rank, is_exchange || member.execution.has_run_all());
    if (progress != Progress::done) return;
    member.is_done = true;
    part.end = part.network.now();
    --part.left;
  }

  [[noreturn]] void report_stall() {
    for (int rank = 0; rank < ranks(); ++rank) {
      const Member& member = *members_[index(rank)];
      if (member.is_done) continue;
      const Stall stall = member.execution.stall();
      throw Error(Status::internal, std::to_string(left()) + " ranks wait for ever; rank " + std::to_string(rank) +
                                        " in '" + std::string(stall.label) + "', segment " +
                                        std::to_string(stall.segment) + ", for rank " + std::to_string(stall.peer));
    }
    throw Error(Status::internal, "no rank waits, but not all are done");
  }

  const Call& call_;
  const CallShape& shape_;
  const RingPlaces places_;
  std::vector<Part> parts_;
  Lanes lanes_;  ///< of the plans of the members
  std::vector<std::optional<Member>> members_;
  std::uint64_t messages_per_segment_ = 0;
  std::vector<std::uint64_t> link_messages_;
  bool runs_lists_ = has_room_for_lists(call_);
  int lists_ = 0;
  Time window_end_ = 0;
};

}  // namespace

CallShape call_shape(const PlanRequest& request, const Plan& plan, Type type, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(plan.ranks);
  const auto blocks = static_cast<std::size_t>(plan.blocks);
  const std::size_t even_bytes = round_up((bytes + blocks - 1) / blocks, 128);
  const Layout::Parts parts = {plan.blocks / plan.ranks, even_bytes};
  CallShape shape;
  shape.layout = has_block_per_rank(request.collective)
                     ? Layout(bytes, plan.blocks, request.tuning.segment_bytes, bytes / ranks, parts)
                     : Layout(plan.dealing, bytes, plan.blocks, request.tuning.segment_bytes, even_bytes);
  shape.type = type;
  shape.element_bytes = shape.unit_bytes = size_of(type);
  shape.operand_stride_bytes = request.leaves == nullptr ? 0 : round_up(bytes, 64);
  if (is_personalised(request.collective)) shape.block_bytes = bytes / ranks;
  return shape;
}

Outcome run(const Call& call) { return run(call, call.shape); }

Outcome run(const Call& call, const CallShape& shape) { return Run(call, shape).finish(); }

}  // namespace torii::simulated
