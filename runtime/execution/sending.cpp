// SPDX-License-Identifier: Apache-2.0
// How rings send between nodes: puts of signals and credits, and the engines that carry them.
#include "runtime/execution/sending.hpp"

#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {
namespace {

/// Calls on vectors of at most so many bytes wait for their messages, not for any link.
constexpr auto kShortCallBytes = tuned<std::size_t>("sending.short_call_bytes");

/// Towards another node one of the pair's own engines, otherwise the next of all in rotation. A short call uses one
/// engine for all peers. Both ends have to poll each engine that carries something. Over sockets a poll is a system
/// call or two, which costs more than a second engine saves.
int engine_of(RunningCall& call, const RingPlace& place, std::uint64_t message) noexcept {
  if (call.shape->layout.total_bytes() <= kShortCallBytes && !call.plan->plan.exchange.exists()) return 0;
  return place.engines.first + static_cast<int>(message % static_cast<std::uint64_t>(place.engines.count));
}

}  // namespace

/// For an entry that is found free: the credits that have come say how long engines took.
void SendRing::time_engines(const RunningCall& call) const noexcept {
  place_.engines.balancer->look(place_.credit_words, call.transport.clock_ns());
}

bool SendRing::has_room(const RunningCall& call) const noexcept {
  const EngineBalancer& balancer = *place_.engines.balancer;
  return balancer.has_room() || balancer.has_waited(call.transport.clock_ns());
}

void SendRing::signal(RunningCall& call, std::uint32_t signature, std::uint64_t message, std::size_t bytes,
                      const std::byte* from) const noexcept {
  Put put;
  put.peer = place_.peer;
  put.bytes = bytes;
  put.signal_offset = place_.entries_offset + offset(call.entries, message);
  put.signal = signal_word(signature, message);
  if (bytes != 0) {
    put.source = from != nullptr ? from : call.payload(*this, message, bytes);
    put.target_offset = put.signal_offset + (is_inline(bytes) ? sizeof(std::uint64_t) : kLineBytes);
    put.line_before = from == nullptr && place_.leads && !is_inline(bytes);
  }
  EngineBalancer* const balancer = place_.engines.balancer;
  if (balancer != nullptr) {
    put.engine = balancer->next();
    balancer->sent(put.engine, message, call.transport.clock_ns());
  } else {
    put.engine = place_.engines.in_rotation ? call.engines.next() : engine_of(call, place_, message);
  }
  put.owner = call.puts.count();
  call.engines.count(put.engine, put.bytes);
  call.note(call.transport.put(put), put.peer);
}

/// A credit uses the engines of the stream, which of a pairwise exchange is engine 0. If engines
/// share the way back, the credit does not queue behind the work of a slow one.
void ReceiveRing::release(RunningCall& call, std::uint64_t message) const noexcept {
  const std::uint64_t group = place_.credit_group;
  const std::uint64_t first = credited_group(message, group);
  if (group > 1) {
    std::uint8_t& taken = end().in_group[call.entries.of(first) / group];
    if (++taken < group) return;
    taken = 0;
  }
  const std::uint64_t last = first + group - 1;
  const EngineBalancer* const balancer = place_.engines.balancer;
  Put word;
  word.peer = place_.peer;
  word.engine = balancer == nullptr ? engine_of(call, place_, last) : balancer->least_busy(last);
  word.signal_offset = place_.credits_offset + call.entries.of(first) * sizeof(std::uint64_t);
  word.signal = last + 1;
  word.owner = call.puts.count();
  call.note(call.transport.put(word), word.peer);
}

}  // namespace torii
