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

/// The turn of a message among the engines that its peer on another node has.
int Execution::engine_of(const InstalledStream& stream, std::uint64_t message) const noexcept {
  const auto engines =
      (engines_ - static_cast<unsigned>(stream.first_engine) + static_cast<unsigned>(stream.engine_step) - 1) /
      static_cast<unsigned>(stream.engine_step);
  return stream.first_engine + stream.engine_step * static_cast<int>(message % engines);
}

/// Gives a put to an engine, and counts: the one that draws it where engines share a stream, one of the peer's own
/// towards other nodes, otherwise (and on virtual time) the next of all in rotation. A source is a slot's payload, and
/// goes to the same place in the peer's slot.
void Execution::post(Put& put, const InstalledStream* stream, std::uint64_t message) noexcept {
  if (put.source != nullptr) {
    const bool is_inline = put.bytes <= kInlineBytes;
    put.target_offset = put.signal_offset + (is_inline ? sizeof(std::uint64_t) : kLineBytes);
    if (is_inline) put.line_before = false;
    if (put.bytes == 0) put.source = nullptr;
  }
  EngineShare* const share = stream == nullptr ? nullptr : share_of(*stream);
  if (share != nullptr) {
    put.engine = share->next();
    share->sent(put.engine, message, now_ns());
    count(static_cast<std::size_t>(put.engine), put.bytes);
  } else if (stream != nullptr && stream->remote && model_ == nullptr) {
    put.engine = engine_of(*stream, message);
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

/// Of a message that came through a slot. Towards another node it goes by the peer's own engines; where engines share
/// the way back, not behind what a slow one has yet to do.
void Execution::give_credit(const InstalledStream& in, std::uint64_t message) noexcept {
  if (!in.remote || model_ != nullptr) return credit(in.peer, in.credits_offset, message);
  const EngineShare* const share = share_of(in);
  Put word;
  word.peer = in.peer;
  word.engine = share == nullptr ? engine_of(in, message) : share->least_busy(message);
  word.signal_offset = in.credits_offset + slot(message) * sizeof(std::uint64_t);
  word.signal = message + 1;
  note(transport_.put(word), word.peer);
}

}  // namespace torii
