// SPDX-License-Identifier: Apache-2.0
// Puts of signals and credits, the engines that carry them, and what rings know of later slots.
#include "runtime/execution/sending.hpp"

#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {
namespace {

/// Calls on vectors of at most so many bytes wait for their messages, not for any link.
constexpr auto kShortCallBytes = tuned<std::size_t>("sending.short_call_bytes");
/// Longer payloads are left to the processor, which sees where their stores lead.
constexpr auto kClaimedBytesMax = tuned<std::size_t>("stores.claimed_bytes_max");

/// Towards another node one of the pair's own engines, otherwise the next of all in rotation. A short call uses one
/// engine for all peers. Both ends have to poll each engine that carries something. Over sockets a poll is a system
/// call or two, which costs more than a second engine saves.
int engine_of(RunningCall& call, const RingPlace& place, std::uint64_t message) noexcept {
  if (!place.remote) return call.engines.next();
  if (call.shape->layout.total_bytes() <= kShortCallBytes && !call.plan->plan.exchange.exists()) return 0;
  return place.engines.first + static_cast<int>(message % static_cast<std::uint64_t>(place.engines.count));
}

}  // namespace

/// For a slot that is found free: times the engines by the credits that have come, or finds how much further the peer
/// has come. Looking costs the line to which the peer writes its credits. So a ring of slots is looked at once a round
/// while the peer keeps up. The peer gives a credit of one call after it has taken all messages of the calls before. So
/// the acquire that sees this credit happens after all the peer's reads of those messages. Words of a mapped peer
/// change in order; others may overtake each other on their way, so there every credit is waited for by itself.
void SendRing::look_further(const RunningCall& call) const noexcept {
  if (EngineBalancer* const balancer = place_.engines.balancer) {
    balancer->look(place_.credit_words, call.transport.clock_ns());
    return;
  }
  if (!looks_ahead_ || has_end() || call.segments_base == 0) return;
  const std::uint64_t last = call.segments_base * place_.messages - 1;
  if (!is_taken(call.slots, last)) return;
  *free_until_ =
      free_below(taken_before(call.plan->done.last_begun, call.segments_base, place_.messages), call.slots.count);
}

bool SendRing::has_room(const RunningCall& call) const noexcept {
  const EngineBalancer& balancer = *place_.engines.balancer;
  return balancer.has_room() || balancer.has_waited(call.transport.clock_ns());
}

/// Claims the lines of a slot of the near future, if the slot is known to be free. Then calls in a row do not wait for
/// one slot's lines after the other. A function of its own, because inside the loop it made calls of cells slower,
/// which do not need it.
[[gnu::noinline]] void SendRing::claim(const SlotOrder& slots, std::uint64_t message,
                                       std::size_t bytes) const noexcept {
  if (message >= *free_until_) return;
  claim_line(place_.slots + offset(slots, message));
  if (bytes > kClaimedBytesMax || is_inline(bytes) || !place_.leads) return;
  const std::byte* const to = payload(slots, message, bytes);
  for (std::size_t at = 0; at < bytes; at += kLineBytes) claim_line(to + at);
}

void SendRing::put(RunningCall& call, std::uint64_t word, std::uint64_t message, std::size_t bytes,
                   const std::byte* from) const noexcept {
  Put put;
  put.peer = place_.peer;
  put.bytes = bytes;
  put.signal_offset = place_.slots_offset + offset(call.slots, message);
  put.signal = word;
  if (place_.remote && bytes != 0) {
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

/// Towards another node a credit uses the engines of the stream, which of a pairwise exchange is engine 0. If engines
/// share the way back, the credit does not queue behind the work of a slow one.
void ReceiveRing::put_credit(RunningCall& call, std::uint64_t message) const noexcept {
  const auto word_at = [&](std::uint64_t of) {
    return place_.credits_offset + call.slots.of(of) * sizeof(std::uint64_t);
  };
  if (!place_.remote) {
    call.note(call.transport.put_word(place_.peer, word_at(message), message + 1), place_.peer);
    return;
  }
  const std::uint64_t group = place_.credit_group;
  const std::uint64_t first = credited_group(message, group);
  if (group > 1) {
    std::uint8_t& taken = taken_[call.slots.of(first) / group];
    if (++taken < group) return;
    taken = 0;
  }
  const std::uint64_t last = first + group - 1;
  const EngineBalancer* const balancer = place_.engines.balancer;
  Put word;
  word.peer = place_.peer;
  word.engine = balancer == nullptr ? engine_of(call, place_, last) : balancer->least_busy(last);
  word.signal_offset = word_at(first);
  word.signal = last + 1;
  word.owner = call.puts.count();
  call.note(call.transport.put(word), word.peer);
}

}  // namespace torii
