// SPDX-License-Identifier: Apache-2.0
// The executor's puts and credits, and the engines that carry them.
#include "runtime/execution.hpp"
#include "runtime/waiting.hpp"
#include "runtime/words.hpp"

namespace torii {

/// Whether an engine should draw the stream's next message.
bool Execution::is_drawn(const InstalledStream& out) const noexcept {
  EngineShare* const share = share_of(out);
  if (share == nullptr) return true;
  const std::int64_t now = now_ns();
  share->look(out.credits, now);
  return share->wants(now);
}

/// Gives a put to the engine that draws it or, without a share, to the next one in rotation, and counts. A source is a
/// slot's payload, and goes to the same place in the peer's slot.
void Execution::post(Put& put, EngineShare* share, std::uint64_t message) noexcept {
  if (put.source != nullptr) {
    const bool is_inline = put.bytes <= kInlineBytes;
    put.target_offset = put.signal_offset + (is_inline ? sizeof(std::uint64_t) : kLineBytes);
    if (is_inline) put.line_before = false;
    if (put.bytes == 0) put.source = nullptr;
  }
  if (share != nullptr) {
    put.engine = share->next();
    share->sent(put.engine, message, now_ns());
    count(static_cast<std::size_t>(put.engine), put.bytes);
  } else {
    put.engine = static_cast<int>(next_engine_);
    rotate(put.bytes);
  }
  note(transport_.put(put), put.peer);
}

void Execution::credit(int peer, std::uint64_t credits_offset, std::uint64_t message) noexcept {
  note(transport_.put_word(peer, credits_offset + slot(message) * sizeof(std::uint64_t), message + 1), peer);
}

/// Of a message that came through a slot. Where engines share the way back, not behind what a slow one has yet to do.
void Execution::give_credit(const InstalledStream& in, std::uint64_t message) noexcept {
  const EngineShare* const share = share_of(in);
  if (share == nullptr) return credit(in.peer, in.credits_offset, message);
  Put word;
  word.peer = in.peer;
  word.engine = share->least_busy(message);
  word.signal_offset = in.credits_offset + slot(message) * sizeof(std::uint64_t);
  word.signal = message + 1;
  note(transport_.put(word), word.peer);
}

}  // namespace torii
