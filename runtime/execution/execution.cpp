// SPDX-License-Identifier: Apache-2.0
// The executor's control: which step runs next, signals, credits and ready tokens. The data path is execution_data.cpp.
#include "runtime/execution/execution.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/execution/waiting.hpp"
#include "runtime/execution/words.hpp"

namespace torii {
namespace {

/// A ready token's payload: where the peer finds this rank's vectors, as offsets into this rank's arena, or a readable
/// input by its address in this process.
struct ReadyToken {
  std::uint64_t input;
  std::uint64_t result_in_place;
  std::int64_t input_offset;
  std::int64_t result_offset;
};
static_assert(sizeof(ReadyToken) <= kInlineBytes, "a ready token fits into its signal's line");

}  // namespace

Execution::Execution(Transport& transport, StepModel* model)
    : transport_(transport), model_(model), engines_(static_cast<unsigned>(transport.capabilities().engines)) {}

void Execution::begin(InstalledPlan& plan, const CallShape& shape, const CallBuffers& buffers,
                      const Straight* straight) noexcept {
  buffers_ = buffers;
  if (straight != nullptr) {
    begin_straight(plan, shape, *straight, buffers.input, buffers.result, buffers.salt);
    return;
  }
  take_up(plan, shape, buffers.salt);
  straight_ = nullptr;
  cells_ = cells_of(plan.shape, shape.layout);
  if (plan.plan.sweep.exists()) {
    begin_sweep();
    return;
  }
  lanes_done_ = 0;
  lanes_.clear();
  std::size_t instances = 0;
  std::size_t flows = 0;
  for (const Lane& lane : plan.plan.lanes) {
    const auto window = static_cast<std::size_t>(
        std::min<std::int64_t>(std::max(lane.window, 1), std::max<std::int64_t>(shape.layout.segments(), 1)));
    lanes_.push_back({model_ != nullptr ? &model_->common(lane) : &lane, 0, instances, flows, window});
    instances += window;
    flows += lane.flows.size();
    if (lane.flows.empty()) ++lanes_done_;
  }
  instances_.assign(instances, Instance{});
  announced_.assign(plan.announced.size(), Announced{});
  borrowed_left_.resize(plan.in.size());
  step_count_ = 0;
  stored_in_step_.assign(plan.out.size(), 0);
  if (model_ != nullptr) find_readers();
  find_what_stands(plan.operand_in_place_stays, plan.result_is_final);
  const bool has_readers = plan.lends_readable && !buffers_.input_reachable;
  if (has_readers && buffers_.access == nullptr && buffers_.input_shifts == nullptr)
    choose_lending(shape.layout.total_bytes());
  announce();
}

/// An operand in place may be overwritten by a step while an engine has yet to read what another one sent. A vector
/// that is not in the arena never leaves from where it stands: after a call that failed it may be gone while engines
/// still read it.
void Execution::find_what_stands(bool operand_in_place_stays, bool result_is_final) noexcept {
  const bool gathers = plan_->remote && transport_.capabilities().gathers;
  input_stands_ = gathers && buffers_.input_reachable && (operand_in_place_stays || buffers_.input != buffers_.result);
  result_stands_ = gathers && buffers_.result_reachable && result_is_final;
}

void Execution::choose_lending(std::size_t bytes) noexcept {
  lend_bytes_ = bytes;
  if (bytes < LendChoice::kBytesMin) return;
  lend_turn_ = plan_->lend.of(bytes).next();
  lends_readable_ = lend_turn_.way == 1;
  if (lend_turn_.timed) begun_ns_ = now_ns();
}

void Execution::announce() noexcept {
  const bool reachable = buffers_.input_reachable;
  const ReadyToken token = {reachable         ? kInArena
                            : lends_readable_ ? kReadable
                                              : kByValue,
                            buffers_.result_reachable,
                            reachable ? buffers_.input_offset : static_cast<std::int64_t>(buffers_.input),
                            buffers_.result_offset};
  for (const Announcement& to : plan_->announces) {
    // A lender by value may end its call before its reader looks, and would write the next token over one that is being
    // read; its message in the slot says all. Every other announcer ends only after the token has been read.
    if (!to.lands && token.input == kByValue) continue;
    std::memcpy(to.line + sizeof(std::uint64_t), &token, sizeof(token));
    Put put;
    put.peer = to.peer;
    put.signal_offset = to.line_offset;
    put.signal = signal_word(signature_, plan_->calls);
    note(transport_.put(put), put.peer);
  }
}

bool Execution::see(std::size_t announcement) noexcept {
  const Announcement& from = plan_->announced[announcement];
  if (load_word(from.line) != signal_word(signature_, plan_->calls)) return false;
  ReadyToken token;
  std::memcpy(&token, from.line + sizeof(std::uint64_t), sizeof(token));
  if (token.input != kByValue && token.input != kReadable && !accepts(from.peer, token.input_offset, from.reads))
    return false;
  if (token.result_in_place != 0 && !accepts(from.peer, token.result_offset, from.stores)) return false;
  Announced& state = announced_[announcement];
  const auto base = reinterpret_cast<std::uintptr_t>(transport_.mapped(from.peer, 0));
  state.seen = true;
  state.input_in_place = token.input != kByValue;
  state.input_readable = token.input == kReadable;
  state.result_in_place = token.result_in_place != 0;
  state.input = (state.input_readable ? 0 : base) + static_cast<std::uintptr_t>(token.input_offset);
  state.result = base + static_cast<std::uintptr_t>(token.result_offset);
  const auto messages = static_cast<std::uint64_t>(shape_->layout.segments());
  for (std::size_t i = 0; i < plan_->in.size(); ++i) {
    const InstalledStream& in = plan_->in[i];
    if (in.stream.carriage == Carriage::lend && in.announcement == static_cast<int>(announcement)) {
      borrowed_left_[i] = messages * static_cast<std::uint64_t>(in.stream.messages_per_segment);
    }
  }
  return true;
}

/// A peer's memory is reached at its arena's address and the offset that it tells. So nothing outside the arena may be
/// told: once per call and peer, not per step.
bool Execution::accepts(int peer, std::uint64_t offset, std::size_t bytes) noexcept {
  const std::uint64_t arena_bytes = transport_.arena_bytes();
  if (bytes == 0 || arena_bytes == UINT64_MAX) return true;
  if (bytes <= arena_bytes && offset <= arena_bytes - bytes) return true;
  note(Status::transport, peer);
  refused_offset_ = offset;
  refused_bytes_ = bytes;
  return false;
}

/// `offset` is that of byte 0 of the vector, which may lie before the arena; what the plan touches may not.
bool Execution::accepts(int peer, std::int64_t offset, const BlockRange& blocks) noexcept {
  if (blocks.last < 0) return true;
  const Piece span = shape_->layout.span(blocks.first, blocks.last);
  return accepts(peer, static_cast<std::uint64_t>(offset) + memory_bytes(span.offset_bytes),
                 memory_bytes(span.length_bytes));
}

std::string Execution::refusal() const {
  if (refused_bytes_ == 0) return {};
  return "it says that " + std::to_string(refused_bytes_) + " bytes of its vector stand at offset " +
         std::to_string(static_cast<std::int64_t>(refused_offset_)) + " of its arena, which has " +
         std::to_string(transport_.arena_bytes()) + " bytes";
}

bool Execution::arrived(const StreamEnd& end, const Step& step) noexcept {
  if (end.stream == kOwn) return true;
  const InstalledStream& in = plan_->in[end.stream];
  if (in.stream.carriage == Carriage::lend && !in.remote) {
    const auto announcement = static_cast<std::size_t>(in.announcement);
    if (announced_[announcement].seen || see(announcement)) {
      if (announced_[announcement].input_in_place) return true;
    }
    // No token comes from a lender by value: its message in the slot says that it is one.
  }
  const std::uint64_t message = number(in.stream, end, step);
  return load_word(slot_address(in, message)) == signal_word(signature_, message);
}

bool Execution::may_send(const StreamEnd& end, const Step& step) noexcept {
  const InstalledStream& out = plan_->out[end.stream];
  if (lends_in_place(out)) return true;
  if (out.stream.carriage == Carriage::land && !out.remote) {
    const auto announcement = static_cast<std::size_t>(out.announcement);
    if (!announced_[announcement].seen && !see(announcement)) return false;
  }
  if (!out.stream.credits) return true;
  const std::uint64_t message = number(out.stream, end, step);
  const bool is_free = message < slots_ || is_credited(out.credits, message, group_of(out));
  if (is_free && (out.share < 0 || is_drawn(out))) return true;
  lacks_credit_ = true;
  return false;
}

bool Execution::ready(Instance& instance, const Step& step) noexcept {
  const auto& sources = step.flow->sources;
  while (instance.sources_seen < sources.size()) {
    if (!arrived(sources[instance.sources_seen], step)) return false;
    ++instance.sources_seen;
  }
  for (const StreamEnd& end : step.flow->targets) {
    if (!may_send(end, step)) return false;
  }
  return true;
}

Execution::Step Execution::step_at(const LaneState& lane, const Instance& instance,
                                   std::int64_t segment) const noexcept {
  const Flow& flow = lane.lane->flows[instance.flow];
  const auto visit = static_cast<int>(instance.visit);
  return {&flow, &plan_->stores[lane.first_flow + instance.flow], segment, visit, flow.walk.block(visit)};
}

/// The lowest segment below `below` whose next step can run in this lane.
bool Execution::find_ready(LaneState& lane, std::int64_t below, Step& step, Instance*& instance) noexcept {
  const std::int64_t end =
      std::min({lane.lowest + static_cast<std::int64_t>(lane.window), shape_->layout.segments(), below});
  for (std::int64_t segment = lane.lowest; segment < end; ++segment) {
    Instance& candidate = instance_at(lane, segment);
    if (candidate.done) continue;
    const Step next = step_at(lane, candidate, segment);
    if (ready(candidate, next)) {
      step = next;
      instance = &candidate;
      return true;
    }
  }
  return false;
}

void Execution::finish_lane_segments(LaneState& lane) noexcept {
  const std::int64_t segments = shape_->layout.segments();
  while (lane.lowest < segments) {
    Instance& instance = instance_at(lane, lane.lowest);
    if (!instance.done) return;
    instance = Instance{};
    ++lane.lowest;
  }
  ++lanes_done_;
}

Execution::Progress Execution::advance() noexcept {
  if (plan_->remote) {
    note(transport_.progress(), -1);
    if (status_ != Status::ok) return Progress::idle;
  }
  if (straight_ != nullptr) return advance_straight();
  if (plan_->plan.sweep.exists()) return advance_sweep();
  bool moved = false;
  while (lanes_done_ < lanes_.size()) {
    if (lanes_to_look_at_ == 0) return moved ? Progress::moved : Progress::idle;
    Step step{};
    Instance* instance = nullptr;
    LaneState* chosen = nullptr;
    std::int64_t below = shape_->layout.segments();
    for (std::size_t number = 0; number < lanes_.size(); ++number) {
      LaneState& lane = lanes_[number];
      if (lane.lowest >= below || lane.lane->flows.empty() || !is_looked_at(number)) continue;
      if (find_ready(lane, below, step, instance)) {
        chosen = &lane;
        below = step.segment;
      } else if (model_ != nullptr) {
        has_not_moved(number, below);
      }
    }
    if (chosen == nullptr) return moved ? Progress::moved : Progress::idle;
    run(step);
    if (status_ != Status::ok) return Progress::idle;
    moved = true;
    instance->sources_seen = 0;
    if (++instance->visit == static_cast<std::uint32_t>(step.flow->walk.count)) {
      instance->visit = 0;
      if (++instance->flow == chosen->lane->flows.size()) {
        instance->done = true;
        finish_lane_segments(*chosen);
      }
    }
    if (model_ != nullptr && model_->is_busy()) return Progress::moved;
  }
  if (!lent_operands_are_free()) return moved ? Progress::moved : Progress::idle;
  return finish() ? Progress::done : Progress::idle;
}

void Execution::run(const Step& step) noexcept {
  standing_ = nullptr;
  if (!is_modelled(step)) move_data(step);
  if (status_ != Status::ok) return;  // something could not be read: nobody may take what was stored
  for (const StreamEnd& end : step.flow->targets) send(end, step);
  for (const StreamEnd& end : step.flow->sources) {
    if (end.stream != kOwn) release(end, step);
  }
}

void Execution::send(const StreamEnd& end, const Step& step) noexcept {
  const InstalledStream& out = plan_->out[end.stream];
  if (lends_in_place(out) || !ends_bundle(out.stream, end, step)) return;
  const std::uint64_t message = number(out.stream, end, step);
  const std::uint64_t slot_offset = signal_place(out, message);
  const std::uint64_t signal = signal_word(signature_, message);
  if (out.stream.carriage == Carriage::handover) {
    store_word(out.slots + slot_offset, signal);
    if (model_ != nullptr) changed(out.slots_offset);
    return;
  }
  Put put;
  put.peer = out.peer;
  // A flow without sources sends tokens: their streams' slots hold no payload.
  const std::size_t bytes = message_bytes(out.stream, step) * static_cast<std::size_t>(out.stream.bundle);
  put.bytes = step.flow->sources.empty() ? 0 : bytes;
  put.signal_offset = out.slots_offset + slot_offset;
  put.signal = signal;
  if (out.remote) {
    const bool stands = leaves_standing(out);
    put.source = stands ? standing_ : payload(out, message, put.bytes);
    put.line_before = !stands && (out.leader < 0 || out.leader == static_cast<int>(end.stream));
  }
  if (EngineShare* const share = share_of(out); share != nullptr) return post_shared(put, *share, message);
  post(put, engine_of(out, message));
}

void Execution::release(const StreamEnd& end, const Step& step) noexcept {
  InstalledStream& in = plan_->in[end.stream];
  if (!in.stream.credits || !ends_bundle(in.stream, end, step)) return;
  if (in.stream.carriage != Carriage::lend || in.remote ||
      !announced_[static_cast<std::size_t>(in.announcement)].input_in_place) {
    give_credit(in, number(in.stream, end, step));
    return;
  }
  // An operand read in place is given back once, after its last segment, with the credits of every slot.
  if (--borrowed_left_[end.stream] != 0) return;
  const auto messages = static_cast<std::uint64_t>(in.stream.messages_per_segment);
  const std::uint64_t begun = segments_base_ * messages;
  const std::uint64_t next = begun + static_cast<std::uint64_t>(shape_->layout.segments()) * messages;
  for (std::uint64_t n = next - std::min(next - begun, slots_); n < next; ++n) credit(in.peer, in.credits_offset, n);
}

/// The caller may overwrite its input after the call, so readers in place must have given it back. Where credits are
/// implied the plan's own messages have already said so.
bool Execution::lent_operands_are_free() const noexcept {
  if (!buffers_.input_reachable && !lends_readable_) return true;
  for (const InstalledStream& out : plan_->out) {
    if (out.stream.carriage != Carriage::lend || out.remote || !out.stream.credits) continue;
    const std::uint64_t next = (segments_base_ + static_cast<std::uint64_t>(shape_->layout.segments())) *
                               static_cast<std::uint64_t>(out.stream.messages_per_segment);
    if (next == 0) continue;
    if (load_word(out.credits + slot(next - 1) * sizeof(std::uint64_t)) != next) return false;
  }
  return true;
}

/// False while an engine still holds what this call put: nobody may move it on for this rank after the call. What
/// others of this rank put is not asked for: their peers may take nothing for long.
bool Execution::finish() noexcept {
  if (plan_->remote && !puts_.drained()) return false;
  if (lend_turn_.timed) {
    const float time_ns = static_cast<float>(now_ns() - begun_ns_);
    plan_->lend.of(lend_bytes_).record(lend_turn_.way, time_ns / static_cast<float>(lend_bytes_));
  }
  if (const auto segments = static_cast<std::uint64_t>(shape_->layout.segments()); segments != 0) {
    plan_->last_begun = segments_base_;
    plan_->segments_done += segments;
  }
  ++plan_->calls;
  plan_ = nullptr;
  return true;
}

Stall Execution::stall() const {
  Stall stall;
  if (plan_ == nullptr) return stall;
  if (straight_ != nullptr) {
    if (straight_at_ == straight_->steps.size()) return stall;
    const StraightStep& step = straight_->steps[straight_at_];
    stall.label = "one segment";
    if (sources_seen_ < step.source_count) {
      stall.peer = straight_->sources[step.first_source + sources_seen_].peer;
    } else if (step.target_count != 0) {
      stall.peer = straight_->targets[step.first_target].peer;
    }
    return stall;
  }
  if (plan_->plan.sweep.exists()) return sweep_stall();
  auto* self = const_cast<Execution*>(this);  // looking for a cause runs no step and sends nothing
  for (const LaneState& lane : lanes_) {
    if (lane.lowest >= shape_->layout.segments() || lane.lane->flows.empty()) continue;
    const Instance& instance = instances_[lane.first_instance + static_cast<std::size_t>(lane.lowest) % lane.window];
    const Step step = step_at(lane, instance, lane.lowest);
    stall.label = step.flow->label;
    stall.segment = lane.lowest;
    for (const StreamEnd& end : step.flow->sources) {
      if (!self->arrived(end, step)) {
        stall.peer = plan_->in[end.stream].peer;
        return stall;
      }
    }
    for (const StreamEnd& end : step.flow->targets) {
      if (!self->may_send(end, step)) {
        stall.peer = plan_->out[end.stream].peer;
        return stall;
      }
    }
  }
  for (const InstalledStream& out : plan_->out) {
    if (out.stream.carriage == Carriage::lend && !out.remote && out.stream.credits) stall.peer = out.peer;
  }
  return stall;
}

}  // namespace torii
