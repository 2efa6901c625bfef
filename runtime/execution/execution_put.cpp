// SPDX-License-Identifier: Apache-2.0
// The executor's puts and credits, and the engines that carry them.
#include "runtime/execution/execution.hpp"
#include "runtime/execution/waiting.hpp"
#include "runtime/execution/words.hpp"

namespace torii {
namespace {

/// Calls on vectors of at most so many bytes wait for their messages, not for any link.
constexpr std::size_t kShortCallBytes = 4096;

}  // namespace

/// Whether an engine should draw the stream's next message.
bool Execution::is_drawn(const InstalledStream& out) const noexcept {
  EngineShare* const share = share_of(out);
  if (share == nullptr) return true;
  const std::int64_t now = now_ns();
  share->look(out.credits, now);
  return share->wants(now);
}

/// The engine of a message: towards another node one of the pair's own, otherwise (and on virtual time) the next of all
/// in rotation. What a short call has to say goes by one engine to everybody: both ends have to look at each engine
/// that carries something, and over sockets a look is a system call or two, more than two engines could save.
int Execution::engine_of(const InstalledStream& stream, std::uint64_t message) noexcept {
  if (!stream.remote || model_ != nullptr) return next_engine();
  if (shape_->layout.total_bytes() <= kShortCallBytes && !plan_->plan.sweep.exists()) return 0;
  return stream.first_engine + static_cast<int>(message % static_cast<std::uint64_t>(stream.engine_count));
}

/// Gives a put to an engine, and counts. A source is a slot's payload, and goes to the same place in the peer's slot.
void Execution::post(Put& put, int engine) noexcept {
  if (put.source != nullptr) {
    const bool is_inline = put.bytes <= kInlineBytes;
    put.target_offset = put.signal_offset + (is_inline ? sizeof(std::uint64_t) : kLineBytes);
    if (is_inline) put.line_before = false;
    if (put.bytes == 0) put.source = nullptr;
  }
  put.engine = engine;
  put.owner = puts_.count();
  count(static_cast<std::size_t>(engine), put.bytes);
  note(transport_.put(put), put.peer);
}

/// The same where engines share a stream: to the one that draws the message.
void Execution::post_shared(Put& put, EngineShare& share, std::uint64_t message) noexcept {
  const int engine = share.next();
  share.sent(engine, message, now_ns());
  post(put, engine);
}

void Execution::credit(int peer, std::uint64_t credits_offset, std::uint64_t message) noexcept {
  note(transport_.put_word(peer, credits_offset + slot(message) * sizeof(std::uint64_t), message + 1), peer);
}

/// Of a message that came through a slot: alone, or with the last one of its group to be taken.
void Execution::give_credit(InstalledStream& in, std::uint64_t message) noexcept {
  if (!in.remote || model_ != nullptr) return credit(in.peer, in.credits_offset, message);
  const std::uint64_t group = group_of(in);
  const std::uint64_t first = message & ~(group - 1);
  if (group > 1) {
    std::uint8_t& taken = in.taken[slot(first) / group];
    if (++taken < group) return;
    taken = 0;
  }
  give_credit_now(in, first, first + group - 1);
}

/// Towards another node it goes by the engines of the pair; where engines share the way back, not behind what a slow
/// one has yet to do.
void Execution::give_credit_now(const InstalledStream& in, std::uint64_t first, std::uint64_t message) noexcept {
  const EngineShare* const share = share_of(in);
  Put word;
  word.peer = in.peer;
  word.engine = share == nullptr ? engine_of(in, message) : share->least_busy(message);
  word.signal_offset = in.credits_offset + slot(first) * sizeof(std::uint64_t);
  word.signal = message + 1;
  word.owner = puts_.count();
  note(transport_.put(word), word.peer);
}

}  // namespace torii
