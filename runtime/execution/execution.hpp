// SPDX-License-Identifier: Apache-2.0
// The executor: the one loop that runs plans. Nothing else posts puts or calls kernels for a collective.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "runtime/execution/put_owner.hpp"
#include "runtime/execution/straight.hpp"
#include "runtime/execution/transport.hpp"
#include "runtime/execution/words.hpp"
#include "runtime/plan/call.hpp"

namespace torii {

/// Where a rank stands when it cannot move.
struct Stall {
  int peer = -1;  ///< rank in the context that it waits for; -1: none
  std::string_view label;
  std::int64_t segment = 0;
};

/// What a simulation makes of the work that a step is. Without one, as everywhere but in transports/simulated, steps
/// take the time they take.
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// A step with so many sources, of one message's bytes each, runs now. False: its data is not touched, only signals
  /// go.
  virtual bool runs(std::size_t sources, std::size_t bytes) noexcept = 0;
  /// True while the rank is still at the step: nothing else runs meanwhile.
  virtual bool is_busy() const noexcept = 0;
  /// An equal lane that outlives the call, one for all ranks that have such a lane: it is in a cache when the next of
  /// them looks at it.
  virtual const Lane& common(const Lane& lane) = 0;
};

/// Runs one call at a time. Not thread-safe; the counters may be read from other threads.
class Execution {
 public:
  enum class Progress { idle, moved, done };

  /// Prepares for plans of up to this many engines. Does not keep `transport` alive, nor the model.
  explicit Execution(Transport& transport, StepModel* model = nullptr);

  /// `straight` is the plan's straight form for this shape's layout, or nullptr. All but the buffers' addresses must
  /// live until the call is done.
  void begin(InstalledPlan& plan, const CallShape& shape, const CallBuffers& buffers,
             const Straight* straight = nullptr) noexcept;
  /// begin() of a straight list, which asks nothing of the buffers but where byte 0 of the vectors is.
  void begin_straight(InstalledPlan& plan, const CallShape& shape, const Straight& straight, std::uintptr_t input,
                      std::uintptr_t result, std::uint32_t salt) noexcept {
    take_up(plan, shape, salt);
    straight_ = &straight;
    straight_at_ = 0;
    sources_seen_ = 0;
    buffers_.input = input;
    buffers_.result = result;
    // Each step has at most all streams, the own operand and the result.
    if (sources_.size() <= plan.in.size()) sources_.resize(plan.in.size() + 1);
    if (targets_.size() <= plan.out.size()) targets_.resize(plan.out.size() + 1);
  }
  /// Runs every step that can run now, lowest segment first. After `done` the next begin() may follow.
  Progress advance() noexcept;
  bool running() const noexcept { return plan_ != nullptr; }
  /// With a StepModel, advance() looks only at lanes for which something may have changed. A word at this offset of the
  /// own arena has, so whoever moves a simulation says so before the next advance().
  void changed(std::uint64_t offset) noexcept;
  /// Asks for the memory that changed() will touch shortly.
  void fetch_ahead() const noexcept {
    __builtin_prefetch(&lanes_to_look_at_);
    __builtin_prefetch(&readers_of_out_);
  }
  /// With a StepModel: whether a lane waits for nothing but a credit.
  bool waits_for_credit() const noexcept { return lanes_without_credit_ != 0; }
  /// With a StepModel: whether all steps of the call have run, so that it waits for the transport alone.
  bool has_run_all() const noexcept { return plan_ == nullptr || lanes_done_ == lanes_.size(); }
  /// Not ok when a put failed: the call cannot end any more.
  Status status() const noexcept { return status_; }
  /// With a bad status: the context rank towards which something failed, or -1.
  int failed_peer() const noexcept { return failed_peer_; }
  /// Forgets a call that cannot end. The plan's numbers are void afterwards: its team is poisoned.
  void abandon() noexcept { plan_ = nullptr; }
  /// What still counts the puts of an abandoned call. Afterwards nothing may run here.
  PutOwner take_puts() noexcept { return std::move(puts_); }
  /// With status `transport`: what failed_peer() has told that cannot be, or nothing.
  std::string refusal() const;
  Stall stall() const;
  std::uint64_t engine_bytes(int engine) const noexcept {
    return engine_bytes_[static_cast<std::size_t>(engine)].load(std::memory_order_relaxed);
  }
  /// The most entries of a sweep that have been under way at once: begun, and not yet arrived.
  int entries_in_flight_most() const noexcept { return entries_in_flight_most_.load(std::memory_order_relaxed); }

 private:
  /// A segment of a lane in flight: the next step is (flow, visit).
  struct Instance {
    std::uint32_t flow = 0;
    std::uint32_t visit = 0;
    std::uint32_t sources_seen = 0;  ///< the first sources of the step, known to have arrived
    bool done = false;
  };
  struct LaneState {
    const Lane* lane = nullptr;
    std::int64_t lowest = 0;  ///< the lowest segment not done
    std::size_t first_instance = 0;
    std::size_t first_flow = 0;  ///< index into InstalledPlan::stores
    std::size_t window = 1;
  };
  /// What a peer announced for this call.
  struct Announced {
    bool seen = false;
    bool input_in_place = false;
    bool input_readable = false;  ///< in place too, but in the peer's private memory
    bool result_in_place = false;
    std::uintptr_t input = 0;
    std::uintptr_t result = 0;
  };
  /// An operand or a target of a step: a vector (pieces lie at their place in it) or a slot's payload (pieces are
  /// packed).
  struct Place {
    std::uintptr_t base = 0;
    bool packed = false;
    bool wide = false;
    bool streaming = false;
    bool peers = false;    ///< in a peer's arena
    int reader_of = -1;    ///< the context rank in whose private memory it is; -1: it can be addressed
    bool callers = false;  ///< reached through the caller's functions only
  };
  struct Step {
    const Flow* flow;
    StoreChoices* stores;
    std::int64_t segment;
    int visit;
    int block;
  };

  /// A shorter payload is better copied into a send slot, whose line travels in front of it without being gathered.
  static constexpr std::size_t kStandingBytesMin = 16384;

  /// How the messages between this rank and a peer of a sweep travel in this call.
  enum class Way : std::uint8_t { unknown, slots, land, lend, read };
  /// A call's state towards a peer of a sweep.
  struct SweepTurn {
    Way out_way = Way::unknown;
    Way in_way = Way::unknown;
    bool heard = false;
    bool sent = false;  ///< the entry has left the pool
    bool taken = false;
    std::size_t out_bytes = 0;  ///< sent so far
    std::size_t in_bytes = 0;
    std::uintptr_t peer_input = 0;  ///< where the peer's block for this rank stands
    std::uintptr_t peer_result = 0;
  };
  /// Entries of a sweep that this rank has drawn and not done with.
  struct SweepPool {
    std::vector<std::uint32_t> active;
    std::size_t next = 0;  ///< in the order of the sweep
  };
  struct SweepBlock {
    std::size_t bytes = 0;
    std::int64_t offset = 0;
  };

  // execution_sweep.cpp
  void begin_sweep() noexcept;
  void tell(const SweepPeer& peer) noexcept;
  bool agree(const SweepPeer& peer, SweepTurn& turn) noexcept;
  Way way(std::uint64_t reach, bool can_land) const noexcept;
  Progress advance_sweep() noexcept;
  bool pass(SweepPool& pool, const std::vector<std::uint32_t>& order, std::size_t limit, bool sends) noexcept;
  void sweep_send(SweepPeer& peer, SweepTurn& turn, bool& moved) noexcept;
  void sweep_take(SweepPeer& peer, SweepTurn& turn, bool& moved) noexcept;
  bool put_segment(SweepPeer& peer, SweepTurn& turn, const SweepBlock& block) noexcept;
  bool take_segment(SweepPeer& peer, SweepTurn& turn, const SweepBlock& block) noexcept;
  bool store_landed(SweepPeer& peer, SweepTurn& turn, const SweepBlock& block) noexcept;
  bool take_lent(SweepPeer& peer, SweepTurn& turn, const SweepBlock& block) noexcept;
  void give_back(const SweepPeer& peer, std::uint64_t messages) noexcept;
  void store_in_peer(std::byte* to, const std::byte* from, std::size_t bytes, StoreChoice& stores) noexcept;
  void keep_own_block() noexcept;
  bool lent_blocks_are_free() noexcept;
  Stall sweep_stall() const noexcept;
  std::uint64_t reach_of_input() const noexcept;
  std::uint32_t pair_signature(std::size_t bytes) const noexcept;
  std::uint64_t messages_of(std::size_t bytes) const noexcept {
    return (bytes + shape_->layout.segment_bytes() - 1) / shape_->layout.segment_bytes();
  }
  SweepBlock block_to(int rank) const noexcept {
    if (buffers_.blocks == nullptr) return even_block(plan_->plan.sweep.to >= 0 ? plan_->plan.rank : rank);
    const auto at = static_cast<std::size_t>(rank);
    return {buffers_.blocks->send_bytes[at], buffers_.blocks->send_offsets[at]};
  }
  SweepBlock block_from(int rank) const noexcept {
    if (buffers_.blocks == nullptr) return even_block(plan_->plan.sweep.from >= 0 ? plan_->plan.rank : rank);
    const auto at = static_cast<std::size_t>(rank);
    return {buffers_.blocks->take_bytes[at], buffers_.blocks->take_offsets[at]};
  }
  SweepBlock even_block(int number) const noexcept {
    return {shape_->block_bytes, number * static_cast<std::int64_t>(shape_->block_bytes)};
  }

  // execution_straight.cpp
  Progress advance_straight() noexcept;
  inline bool straight_ready(const StraightStep& step) noexcept;
  inline void straight_move(const StraightStep& step) noexcept;
  inline void straight_store(const StraightStep& step, std::uint32_t count, bool streaming) noexcept;
  bool may_fill(const StraightEnd& target, std::uint64_t message) noexcept;
  void claim(const StraightEnd& target, std::uint64_t message, std::size_t bytes) noexcept;
  inline void straight_signal(const StraightStep& step) noexcept;

  // execution_put.cpp
  bool is_drawn(const InstalledStream& out) const noexcept;
  void post(Put& put, int engine) noexcept;
  void post_shared(Put& put, EngineShare& share, std::uint64_t message) noexcept;
  int engine_of(const InstalledStream& stream, std::uint64_t message) noexcept;
  void credit(int peer, std::uint64_t credits_offset, std::uint64_t message) noexcept;
  void give_credit(InstalledStream& in, std::uint64_t message) noexcept;
  void give_credit_now(const InstalledStream& in, std::uint64_t first, std::uint64_t message) noexcept;
  /// Messages that share a credit. On virtual time every message has its own.
  std::uint64_t group_of(const InstalledStream& stream) const noexcept {
    return model_ == nullptr ? static_cast<std::uint64_t>(stream.credit_group) : 1;
  }
  /// Whether the slot of `message`, the first of which is number slots_, is free again: the group of the message that
  /// had it before has been credited, in the word of the group's first slot.
  bool is_credited(const std::byte* words, std::uint64_t message, std::uint64_t group) const noexcept {
    const std::uint64_t first = (message - slots_) & ~(group - 1);
    return load_word(words + slot(first) * sizeof(std::uint64_t)) == first + group;
  }

  void take_up(InstalledPlan& plan, const CallShape& shape, std::uint32_t salt) noexcept {
    plan_ = &plan;
    shape_ = &shape;
    signature_ = shape.signature ^ salt;
    status_ = Status::ok;
    failed_peer_ = -1;
    lends_readable_ = false;
    lend_turn_ = {0, false};
    segments_base_ = plan.segments_done;
    slots_ = static_cast<std::uint64_t>(plan.plan.slots);
    slot_mask_ = (slots_ & (slots_ - 1)) == 0 ? slots_ - 1 : 0;
    for (EngineShare& share : plan.shares) share.resume();
  }
  void choose_lending(std::size_t bytes) noexcept;
  void find_what_stands(bool operand_in_place_stays, bool result_is_final) noexcept;
  void announce() noexcept;
  void note(Status status, int peer) noexcept {
    if (status == Status::ok) return;
    status_ = status;
    failed_peer_ = peer;
  }
  /// What an engine has carried. One thread runs an execution, so plain load and store count right; others only read.
  void count(std::size_t engine, std::size_t bytes) noexcept {
    auto& counter = engine_bytes_[engine];
    counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  /// The engine whose turn it is; the turn goes on.
  int next_engine() noexcept {
    const auto engine = static_cast<int>(next_engine_);
    if (++next_engine_ == engines_) next_engine_ = 0;
    return engine;
  }
  void rotate(std::size_t bytes) noexcept { count(static_cast<std::size_t>(next_engine()), bytes); }
  /// nullptr where the engines take turns, as always on virtual time: the shares go by the clock of this machine.
  EngineShare* share_of(const InstalledStream& stream) const noexcept {
    return stream.share < 0 || model_ != nullptr ? nullptr : &plan_->shares[static_cast<std::size_t>(stream.share)];
  }
  bool see(std::size_t announcement) noexcept;
  bool accepts(int peer, std::uint64_t offset, std::size_t bytes) noexcept;
  bool accepts(int peer, std::int64_t offset, const BlockRange& blocks) noexcept;
  bool arrived(const StreamEnd& end, const Step& step) noexcept;
  bool may_send(const StreamEnd& end, const Step& step) noexcept;
  bool ready(Instance& instance, const Step& step) noexcept;
  bool find_ready(LaneState& lane, std::int64_t below, Step& step, Instance*& instance) noexcept;
  void run(const Step& step) noexcept;
  bool is_modelled(const Step& step) noexcept;
  // execution_model.cpp
  void find_readers() noexcept;
  bool is_looked_at(std::size_t lane) const noexcept {
    return (lanes_to_look_at_ >> std::min(lane, kLaneBits) & 1) != 0;
  }
  void has_not_moved(std::size_t lane, std::int64_t below) noexcept;
  void move_data(const Step& step) noexcept;
  void store_pieces(const Step& step, std::size_t peers_bytes) noexcept;
  std::size_t find_places(const Step& step) noexcept;
  const std::byte* standing(const Step& step) const noexcept;
  /// Whether the step's message to a peer leaves from where its value stands, and not from a send slot.
  bool leaves_standing(const InstalledStream& out) const noexcept {
    return standing_ != nullptr && out.remote && out.stream.bundle == 1 && !(out.stream.wide && plan_->wide);
  }
  void move_pieces(const Step& step) noexcept;
  void move_piece(const Piece& piece, std::size_t packed_offset_bytes, Fold order) noexcept;
  void read_source(std::size_t bytes) noexcept;
  void access_portion(std::size_t offset_bytes, std::size_t bytes) noexcept;
  void* first_slot() const noexcept;
  void combine(std::size_t count, Fold order) noexcept;
  std::size_t primary_target(bool wide) const noexcept;
  void fold(const kernels::Operands& operands, std::size_t count, Fold order) noexcept;
  std::uintptr_t own_base(bool of_input, int block) const noexcept {
    const std::int64_t* const shifts = of_input ? buffers_.input_shifts : buffers_.result_shifts;
    const std::uintptr_t base = of_input ? buffers_.input : buffers_.result;
    return shifts == nullptr ? base : base + static_cast<std::uintptr_t>(shifts[block]);
  }
  Place source_place(const StreamEnd& end, const Step& step) const noexcept;
  Place target_place(const StreamEnd& end, const Step& step) noexcept;
  void send(const StreamEnd& end, const Step& step) noexcept;
  void release(const StreamEnd& end, const Step& step) noexcept;
  void finish_lane_segments(LaneState& lane) noexcept;
  bool lent_operands_are_free() const noexcept;
  bool finish() noexcept;
  /// Peers of the own node read the operand where it stands; nothing is sent to them.
  bool lends_in_place(const InstalledStream& out) const noexcept {
    return out.stream.carriage == Carriage::lend && (buffers_.input_reachable || lends_readable_) && !out.remote;
  }
  Step step_at(const LaneState& lane, const Instance& instance, std::int64_t segment) const noexcept;
  Instance& instance_at(const LaneState& lane, std::int64_t segment) noexcept {
    return instances_[lane.first_instance + static_cast<std::size_t>(segment) % lane.window];
  }
  std::uint64_t number(const Stream& stream, const StreamEnd& end, const Step& step) const noexcept {
    const std::uint64_t segment = segments_base_ + static_cast<std::uint64_t>(step.segment);
    const std::uint64_t position = end.position + static_cast<std::uint64_t>(step.visit);
    if (stream.bundle == 1) return segment * static_cast<std::uint64_t>(stream.messages_per_segment) + position;
    return segment * static_cast<std::uint64_t>(stream.bundles_per_segment()) +
           position / static_cast<std::uint64_t>(stream.bundle);
  }
  /// Whether the step fills, or empties, the slot: it has the last message of the bundle.
  static bool ends_bundle(const Stream& stream, const StreamEnd& end, const Step& step) noexcept {
    return stream.ends_bundle(end.position + step.visit);
  }
  std::uint64_t slot(std::uint64_t number) const noexcept {
    return slot_mask_ != 0 ? number & slot_mask_ : number % slots_;
  }
  /// Where a message's signal stands, from the stream's first slot.
  std::size_t signal_place(const InstalledStream& stream, std::uint64_t number) const noexcept {
    if (cells_.bytes != 0 && !stream.remote) return cells_.offset + slot(number) * cells_.bytes;
    return slot(number) * plan_->shape.slot_bytes;
  }
  std::byte* slot_address(const InstalledStream& stream, std::uint64_t number) const noexcept {
    return stream.slots + signal_place(stream, number);
  }
  /// Bytes that `layout_bytes` of the layout take in memory.
  std::size_t memory_bytes(std::size_t layout_bytes) const noexcept {
    return shape_->unit_bytes == shape_->element_bytes ? layout_bytes
                                                       : layout_bytes / shape_->unit_bytes * shape_->element_bytes;
  }
  /// Bytes of a step's message on this stream.
  std::size_t message_bytes(const Stream& stream, const Step& step) const noexcept {
    const std::size_t bytes = memory_bytes(shape_->layout.segment_length_bytes(step.block, step.segment));
    return stream.wide && plan_->wide ? 2 * bytes : bytes;
  }
  std::byte* payload(const InstalledStream& stream, std::uint64_t number, std::size_t bytes) const noexcept;
  std::byte* message_payload(const InstalledStream& stream, const StreamEnd& end, const Step& step) const noexcept;
  bool is_stored_already(const InstalledStream& out, std::size_t bytes) noexcept;

  Transport& transport_;
  StepModel* model_;  ///< nullptr but in a simulation
  InstalledPlan* plan_ = nullptr;
  const Straight* straight_ = nullptr;
  std::size_t straight_at_ = 0;
  std::uint32_t sources_seen_ = 0;
  const CallShape* shape_ = nullptr;
  std::uint32_t signature_ = 1;  ///< of the call, with its salt
  CallBuffers buffers_;
  Status status_ = Status::ok;
  int failed_peer_ = -1;
  std::uint64_t refused_offset_ = 0;  ///< in failed_peer_'s arena
  std::size_t refused_bytes_ = 0;     ///< 0: nothing was refused; a team ends with the first that is
  Cells cells_;                       ///< cells_of() the call; straight lists have them in their ends
  // What engines may take from where it stands in the own arena, in this call and in the step that runs.
  bool input_stands_ = false;
  bool result_stands_ = false;
  const std::byte* standing_ = nullptr;
  bool lends_readable_ = false;  ///< in this call readers take the operand from this rank's private memory
  TimedChoice::Turn lend_turn_ = {0, false};
  std::size_t lend_bytes_ = 0;  ///< by which the choice is made: the vector, or what this rank sends
  std::int64_t begun_ns_ = 0;
  std::uint64_t segments_base_ = 0;
  std::uint64_t slots_ = 1;
  std::uint64_t slot_mask_ = 0;  ///< slots - 1 where that is a mask and not 0
  std::size_t lanes_done_ = 0;
  // Of a simulation: bits of lanes, the last one of all lanes from there on.
  static constexpr std::size_t kLaneBits = 63;
  std::uint64_t lanes_to_look_at_ = ~std::uint64_t{0};
  std::uint64_t lanes_without_credit_ = 0;
  bool lacks_credit_ = false;  ///< the step that was looked at last waits for a credit alone
  /// Words of one kind that lie in staging stream after stream, and by stream the lanes that wait for them. Beside the
  /// bits above, for changed() finds nothing of a rank in a cache.
  struct Readers {
    std::uint64_t begin = 0;         ///< offset of the first stream's
    std::uint64_t stream_bytes = 1;  ///< from one stream's to the next one's
    std::vector<std::uint64_t> lanes;

    /// All lanes where the offset is none of these words'.
    std::uint64_t of(std::uint64_t offset) const noexcept {
      const std::uint64_t stream = (offset - begin) / stream_bytes;
      return offset >= begin && stream < lanes.size() ? lanes[stream] : ~std::uint64_t{0};
    }
  };
  Readers readers_of_in_;   ///< lanes that take from a stream
  Readers readers_of_out_;  ///< lanes that put into one
  std::vector<LaneState> lanes_;
  std::vector<Instance> instances_;
  std::vector<Announced> announced_;
  std::vector<std::uint64_t> borrowed_left_;  ///< per in-stream: messages not yet read of an operand lent in place
  std::vector<SweepTurn> turns_;              ///< by peer of the sweep
  SweepPool sends_;
  std::atomic<int> entries_in_flight_most_ = 0;
  SweepPool takes_;
  bool own_block_kept_ = false;
  std::size_t lent_seen_ = 0;  ///< peers whose reads of lent blocks are known to be over, in the order of peers
  // Scratch of the step that runs: its places, the groups whose payload it has, and the addresses of the current piece.
  std::uint64_t step_count_ = 0;
  bool functions_reach_slots_ = false;  ///< in a step of a vector that the caller's functions reach; also the next two
  bool times_copies_ = false;
  std::int64_t copies_ns_ = 0;
  std::vector<std::uint64_t> stored_in_step_;  ///< per out-stream that leads a group: the last step that stored there
  std::vector<Place> source_places_;
  std::vector<Place> target_places_;
  std::vector<std::uint8_t> wide_sources_;  ///< as kernels::Operands::wide_sources; empty: none is
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  unsigned engines_ = 1;
  unsigned next_engine_ = 0;
  std::array<std::atomic<std::uint64_t>, kEnginesMax> engine_bytes_{};
  PutOwner puts_;
};

}  // namespace torii
