// SPDX-License-Identifier: Apache-2.0
// Posts puts and credits, and chooses the engines that carry them.
#include "runtime/execution/sending.hpp"

#include "runtime/execution/waiting.hpp"
#include "runtime/execution/words.hpp"

namespace torii {
namespace {

/// Calls on vectors of at most so many bytes wait for their messages, not for any link.
constexpr std::size_t kShortCallBytes = 4096;

/// nullptr where the engines take turns, as always on virtual time: the shares go by the clock of this machine.
EngineShare* share_of(RunningCall& call, const InstalledStream& stream) noexcept {
  if (stream.share < 0 || call.model != nullptr) return nullptr;
  return &call.plan->shares[static_cast<std::size_t>(stream.share)];
}

}  // namespace

bool is_drawn(RunningCall& call, const InstalledStream& out) noexcept {
  EngineShare* const share = share_of(call, out);
  if (share == nullptr) return true;
  const std::int64_t now = now_ns();
  share->look(out.credits, now);
  return share->wants(now);
}

/// A short call goes by one engine to everybody: both ends have to look at each engine that carries something, and over
/// sockets a look is a system call or two, more than two engines could save.
int engine_of(RunningCall& call, const InstalledStream& stream, std::uint64_t message) noexcept {
  if (!stream.remote || call.model != nullptr) return call.engines.next();
  if (call.shape->layout.total_bytes() <= kShortCallBytes && !call.plan->plan.sweep.exists()) return 0;
  return stream.first_engine + static_cast<int>(message % static_cast<std::uint64_t>(stream.engine_count));
}

void post(RunningCall& call, Put& put, int engine) noexcept {
  if (put.source != nullptr) {
    const bool is_inline = put.bytes <= kInlineBytes;
    put.target_offset = put.signal_offset + (is_inline ? sizeof(std::uint64_t) : kLineBytes);
    if (is_inline) put.line_before = false;
    if (put.bytes == 0) put.source = nullptr;
  }
  put.engine = engine;
  put.owner = call.puts.count();
  call.engines.count(engine, put.bytes);
  call.note(call.transport.put(put), put.peer);
}

void post_message(RunningCall& call, Put& put, const InstalledStream& out, std::uint64_t message) noexcept {
  EngineShare* const share = share_of(call, out);
  if (share == nullptr) return post(call, put, engine_of(call, out, message));
  const int engine = share->next();
  share->sent(engine, message, now_ns());
  post(call, put, engine);
}

void credit(RunningCall& call, int peer, std::uint64_t credits_offset, std::uint64_t message) noexcept {
  call.note(call.transport.put_word(peer, credits_offset + call.slot(message) * sizeof(std::uint64_t), message + 1),
            peer);
}

/// Towards another node a credit uses the engines of the stream, which of a sweep is engine 0. If engines share the way
/// back, the credit does not queue behind the work of a slow one.
static void give_credit_now(RunningCall& call, const InstalledStream& in, std::uint64_t first,
                            std::uint64_t message) noexcept {
  const EngineShare* const share = share_of(call, in);
  Put word;
  word.peer = in.peer;
  word.engine = share == nullptr ? engine_of(call, in, message) : share->least_busy(message);
  word.signal_offset = in.credits_offset + call.slot(first) * sizeof(std::uint64_t);
  word.signal = message + 1;
  word.owner = call.puts.count();
  call.note(call.transport.put(word), word.peer);
}

void give_credit(RunningCall& call, InstalledStream& in, std::uint64_t message) noexcept {
  if (!in.remote || call.model != nullptr) return credit(call, in.peer, in.credits_offset, message);
  const std::uint64_t group = call.group_of(in);
  const std::uint64_t first = message & ~(group - 1);
  if (group > 1) {
    std::uint8_t& taken = in.taken[call.slot(first) / group];
    if (++taken < group) return;
    taken = 0;
  }
  give_credit_now(call, in, first, first + group - 1);
}

}  // namespace torii
