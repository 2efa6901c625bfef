// SPDX-License-Identifier: Apache-2.0
// Which step of which lane runs next, and its signals and credits.
#include "runtime/execution/window_schedule.hpp"

#include <algorithm>

#include "runtime/execution/sending.hpp"
#include "runtime/execution/try_run.hpp"
#include "runtime/plan/shortcuts.hpp"

namespace torii {
namespace {

bool takes_from_peers(const Step& step) noexcept {
  return std::ranges::any_of(step.flow->sources, [](const StreamEnd& source) { return source.stream != kOwn; });
}

}  // namespace

/// The next step of a segment of a lane.
template <class Host>
class WindowSchedule<Host>::Operation {
 public:
  Operation(WindowSchedule& schedule, const Step& step, std::uint32_t& sources_seen)
      : schedule_(schedule), step_(step), sources_seen_(sources_seen) {}

  const std::vector<StreamEnd>& sources() const noexcept { return step_.flow->sources; }
  const std::vector<StreamEnd>& targets() const noexcept { return step_.flow->targets; }
  std::uint32_t& sources_seen() const noexcept { return sources_seen_; }
  std::size_t bytes() const noexcept {
    const RunningCall& call = schedule_.call_;
    return call.memory_bytes(call.shape->layout.segment_length_bytes(step_.block, step_.segment));
  }
  bool has_arrived(const StreamEnd& source, std::size_t) const noexcept { return schedule_.arrived(source, step_); }
  bool is_free(const StreamEnd& target) const noexcept { return schedule_.may_send(target, step_); }
  bool move() const noexcept {
    schedule_.mover_.run(step_);
    return schedule_.call_.status == Status::ok;
  }
  void skip() const noexcept { schedule_.mover_.skip(); }
  void signal(const StreamEnd& target) const noexcept { schedule_.send(target, step_); }
  void release(const StreamEnd& source) const noexcept {
    if (source.stream != kOwn) schedule_.release(source, step_);
  }

 private:
  WindowSchedule& schedule_;
  const Step& step_;
  std::uint32_t& sources_seen_;
};

/// Puts the rings where this call's messages are.
template <class Host>
void WindowSchedule<Host>::place_rings() noexcept {
  InstalledPlan& plan = *call_.plan;
  const EntryKind kind = entry_kind_of(plan.has_cells, call_.shape->layout);
  if (kind == plan.kind) return;
  plan.kind = kind;
  for (InstalledIn& in : plan.in) in.ring.use(kind);
  for (InstalledOut& out : plan.out) out.ring.use(kind);
}

template <class Host>
void WindowSchedule<Host>::begin() noexcept {
  place_rings();
  watch_.begin(*call_.plan);
  lanes_done_ = 0;
  lanes_.clear();
  std::size_t instances = 0;
  std::size_t flows = 0;
  for (const Lane& lane : call_.plan->plan.lanes) {
    const auto window = static_cast<std::size_t>(
        std::min<std::int64_t>(std::max(lane.window, 1), std::max<std::int64_t>(call_.shape->layout.segments(), 1)));
    const Lane& common = host_.common(lane);
    watch_.add(lanes_.size(), common);
    lanes_.push_back({&common, 0, instances, flows, window});
    instances += window;
    flows += lane.flows.size();
    if (lane.flows.empty()) ++lanes_done_;
  }
  instances_.assign(instances, Instance{});
  call_.find_sendable(call_.plan->operand_in_place_stays, call_.plan->result_is_final);
  const bool has_readers = call_.plan->private_reads.are_offered && !call_.buffers.input_reachable;
  if (has_readers && call_.buffers.access == nullptr && call_.buffers.input_shifts == nullptr)
    call_.private_read.choose(*call_.plan->private_reads.choice, call_.shape->layout.total_bytes(), call_.turn);
  offers_.begin();
  mover_.begin();
}

template <class Host>
bool WindowSchedule<Host>::arrived(const StreamEnd& end, const Step& step) noexcept {
  if (end.stream == kOwn) return true;
  const InstalledIn& in = call_.plan->in[end.stream];
  if (in.stream.delivery == Delivery::read_in_place && !in.ring.remote()) {
    if (offers_.has_come(static_cast<std::size_t>(in.offer)) && offers_.of(in.offer).input_in_place) {
      return true;
    }
    // A sender by value makes no buffer offer: its message in the slot says that it is one.
  }
  const std::uint64_t message = call_.number(in, end, step);
  if (!in.ring.arrived(call_.entries, call_.signature, message)) return false;
  return in.ring.remote() || finds_payload(in, message, step);
}

/// Whether the payload of a message that has arrived is inside its sender's arena, if it did not fit into its line. A
/// token has none: its step neither keeps nor sends anything on.
template <class Host>
bool WindowSchedule<Host>::finds_payload(const InstalledIn& in, std::uint64_t message, const Step& step) noexcept {
  if (!call_.on_rings.is_long || (!step.flow->keep && step.flow->targets.empty())) return true;
  if (in.stream.delivery == Delivery::local) return true;
  if (in.stream.delivery == Delivery::write_in_place && call_.buffers.result_reachable) return true;
  const std::size_t bytes = call_.bundle_bytes(in.stream, step);
  if (Ring::is_inline(bytes)) return true;
  return call_.accepts(in.ring.peer(), in.ring.outside_offset(in.ring.offset(call_.entries, message)), bytes);
}

template <class Host>
bool WindowSchedule<Host>::may_send(const StreamEnd& end, const Step& step) noexcept {
  const InstalledOut& out = call_.plan->out[end.stream];
  if (call_.is_read_in_place(out)) return true;
  if (out.stream.delivery == Delivery::write_in_place && !out.ring.remote()) {
    if (!offers_.has_come(static_cast<std::size_t>(out.offer))) return false;
  }
  // A message that is made of others goes at once: its sender's credits may be what those others' senders wait for.
  const std::uint64_t message = call_.number(out, end, step);
  if (!out.ring.remote() ? out.ring.has_entry(call_, message)
                         : out.ring.may_fill(call_, call_.entries, message) &&
                               (out.ring.finds_engine(call_) || takes_from_peers(step))) {
    return true;
  }
  watch_.lacks_credit();
  return false;
}

template <class Host>
Step WindowSchedule<Host>::step_at(const LaneState& lane, const Instance& instance,
                                   std::int64_t segment) const noexcept {
  const Flow& flow = lane.lane->flows[instance.flow];
  const auto visit = static_cast<int>(instance.visit);
  return {&flow, call_.plan->stores[lane.first_flow + instance.flow], segment, visit, flow.walk.block(visit)};
}

/// The lowest segment below `below` whose next step can run in this lane.
template <class Host>
bool WindowSchedule<Host>::find_ready(LaneState& lane, std::int64_t below, Step& step, Instance*& instance) noexcept {
  const std::int64_t end =
      std::min({lane.lowest + static_cast<std::int64_t>(lane.window), call_.shape->layout.segments(), below});
  for (std::int64_t segment = lane.lowest; segment < end; ++segment) {
    Instance& candidate = instance_at(lane, segment);
    if (candidate.done) continue;
    const Step next = step_at(lane, candidate, segment);
    if (is_ready(Operation(*this, next, candidate.sources_seen))) {
      step = next;
      instance = &candidate;
      return true;
    }
  }
  return false;
}

template <class Host>
void WindowSchedule<Host>::finish_lane_segments(LaneState& lane) noexcept {
  const std::int64_t segments = call_.shape->layout.segments();
  while (lane.lowest < segments) {
    Instance& instance = instance_at(lane, lane.lowest);
    if (!instance.done) return;
    instance = Instance{};
    ++lane.lowest;
  }
  ++lanes_done_;
}

template <class Host>
Progress WindowSchedule<Host>::advance() noexcept {
  bool moved = false;
  while (lanes_done_ < lanes_.size()) {
    if (watch_.is_at_rest()) return moved ? Progress::moved : Progress::idle;
    Step step{};
    Instance* instance = nullptr;
    LaneState* chosen = nullptr;
    std::int64_t below = call_.shape->layout.segments();
    for (std::size_t number = 0; number < lanes_.size(); ++number) {
      LaneState& lane = lanes_[number];
      if (lane.lowest >= below || lane.lane->flows.empty() || !watch_.is_looked_at(number)) continue;
      if (find_ready(lane, below, step, instance)) {
        chosen = &lane;
        below = step.segment;
      } else {
        const std::int64_t window_end = lane.lowest + static_cast<std::int64_t>(lane.window);
        watch_.has_not_moved(number, below >= std::min(window_end, call_.shape->layout.segments()));
      }
    }
    if (chosen == nullptr) return moved ? Progress::moved : Progress::idle;
    run(host_, Operation(*this, step, instance->sources_seen));
    if (call_.status != Status::ok) return Progress::idle;
    moved = true;
    instance->sources_seen = 0;
    if (++instance->visit == static_cast<std::uint32_t>(step.flow->walk.count)) {
      instance->visit = 0;
      if (++instance->flow == chosen->lane->flows.size()) {
        instance->done = true;
        finish_lane_segments(*chosen);
      }
    }
    if (host_.is_busy()) return Progress::moved;
  }
  if (!operands_are_free()) return moved ? Progress::moved : Progress::idle;
  return call_.finish() ? Progress::done : Progress::idle;
}

template <class Host>
void WindowSchedule<Host>::send(const StreamEnd& end, const Step& step) noexcept {
  const InstalledOut& out = call_.plan->out[end.stream];
  if (call_.is_read_in_place(out) || !ends_bundle(out.stream, end, step)) return;
  const std::uint64_t message = call_.number(out, end, step);
  if (out.stream.delivery == Delivery::local) {
    out.ring.hand_over(call_.entries, call_.signature, message);
    watch_.changed_within();
    return;
  }
  // A flow without sources sends messages without payload.
  const std::size_t bytes = step.flow->sources.empty() ? 0 : call_.bundle_bytes(out.stream, step);
  if (!out.ring.remote()) {
    out.ring.signal_entry(call_, call_.signature, message, bytes);
    watch_.changed_within();
  } else {
    out.ring.signal(call_, call_.signature, message, bytes, mover_.leaves_from(out));
  }
}

template <class Host>
void WindowSchedule<Host>::release(const StreamEnd& end, const Step& step) noexcept {
  const InstalledIn& in = call_.plan->in[end.stream];
  if (!ends_bundle(in.stream, end, step)) return;
  if (in.ring.remote()) return in.ring.release(call_, call_.number(in, end, step));
  if (in.stream.delivery != Delivery::read_in_place || !offers_.of(in.offer).input_in_place) {
    in.ring.take(call_, call_.number(in, end, step));
    return watch_.changed_within();
  }
  // An operand that is read in place is released once, after its last segment.
  if (!offers_.is_last_read(end.stream)) return;
  in.ring.end().take_below(call_.end_number(in));
  in.ring.end().publish(1, call_.transport);
}

/// The caller may overwrite its input after the call, so ranks that read it in place must have released it. For implied
/// credits the plan's own messages prove that already.
template <class Host>
bool WindowSchedule<Host>::operands_are_free() const noexcept {
  if (!call_.buffers.input_reachable && !call_.private_read.readable) return true;
  return std::ranges::all_of(call_.plan->out, [this](const InstalledOut& out) { return is_read(out); });
}

/// Whether the stream's receiver has read all of the operand, if it reads that in place.
template <class Host>
bool WindowSchedule<Host>::is_read(const InstalledOut& out) const noexcept {
  if (!awaits_reader(out.stream) || out.ring.remote()) return true;
  const std::uint64_t next = call_.end_number(out);
  return next == 0 || out.ring.is_taken(call_.entries, next - 1);
}

template <class Host>
Stall WindowSchedule<Host>::stall() const {
  Stall stall;
  auto* self = const_cast<WindowSchedule*>(this);  // the search for a cause runs no step and sends nothing
  for (const LaneState& lane : lanes_) {
    if (lane.lowest >= call_.shape->layout.segments() || lane.lane->flows.empty()) continue;
    const Instance& instance = instances_[lane.first_instance + static_cast<std::size_t>(lane.lowest) % lane.window];
    const Step step = step_at(lane, instance, lane.lowest);
    stall.label = step.flow->label;
    stall.segment = lane.lowest;
    for (const StreamEnd& end : step.flow->sources) {
      if (!self->arrived(end, step)) {
        stall.peer = call_.plan->in[end.stream].ring.peer();
        return stall;
      }
    }
    for (const StreamEnd& end : step.flow->targets) {
      if (!self->may_send(end, step)) {
        stall.peer = call_.plan->out[end.stream].ring.peer();
        return stall;
      }
    }
  }
  for (const InstalledOut& out : call_.plan->out) {
    if (awaits_reader(out.stream) && !out.ring.remote()) stall.peer = out.ring.peer();
  }
  return stall;
}

template <class Host>
bool WindowSchedule<Host>::awaits(int peer) const noexcept {
  const auto awaits_source = [&](const Step& step, std::uint32_t seen) {
    const std::vector<StreamEnd>& sources = step.flow->sources;
    while (seen < sources.size() && sources[seen].stream == kOwn) ++seen;
    return seen < sources.size() && call_.plan->in[sources[seen].stream].ring.peer() == peer;
  };
  for (const LaneState& lane : lanes_) {
    if (lane.lane->flows.empty()) continue;
    const std::int64_t end =
        std::min(lane.lowest + static_cast<std::int64_t>(lane.window), call_.shape->layout.segments());
    for (std::int64_t segment = lane.lowest; segment < end; ++segment) {
      const Instance& instance = instances_[lane.first_instance + static_cast<std::size_t>(segment) % lane.window];
      if (instance.done) continue;
      const Step step = step_at(lane, instance, segment);
      if (awaits_source(step, instance.sources_seen)) return true;
      const auto goes_there = [&](const StreamEnd& end_of) {
        return call_.plan->out[end_of.stream].ring.peer() == peer;
      };
      if (std::ranges::any_of(step.flow->targets, goes_there)) return true;
    }
  }
  if (lanes_done_ < lanes_.size() || operands_are_free()) return false;
  return std::ranges::any_of(call_.plan->out,
                             [&](const InstalledOut& out) { return out.ring.peer() == peer && !is_read(out); });
}

template class WindowSchedule<RealHost>;
template class WindowSchedule<ModelledHost>;

}  // namespace torii
