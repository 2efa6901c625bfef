// SPDX-License-Identifier: Apache-2.0
// Puts messages into entries of another node and finds them there.
#include "runtime/point_to_point/distant_streams.hpp"

#include <cstring>

namespace torii {
namespace {

/// The entries hold nothing else, so signatures only tell where the message is: in the signal's line or behind it.
constexpr std::uint32_t kInLine = 0x70743271;
constexpr std::uint32_t kBehindLine = 0x70743273;

constexpr std::size_t begin_of(bool is_in_line) noexcept { return is_in_line ? sizeof(std::uint64_t) : kLineBytes; }

}  // namespace

DistantStreams::DistantStreams(Transport& transport, const PairArea& area, const RingMembers& members,
                               int peer) noexcept
    : PairStreams({peer, members.context_ranks[static_cast<std::size_t>(peer)], true}, {}), sizes_(area.sizes()) {
  const int own = members.rank;
  const std::uint64_t own_offset = members.offsets[static_cast<std::size_t>(own)];
  const std::uint64_t peer_offset = members.offsets[static_cast<std::size_t>(peer)];
  std::byte* const memory = transport.mapped(transport.rank(), own_offset);
  leaving_ = memory + area.distant_leaving(own, peer);
  received_ = memory + area.distant_entries(own, peer);
  credits_ = memory + area.distant_credits(own, peer);
  entries_offset_ = peer_offset + area.distant_entries(peer, own);
  credits_offset_ = peer_offset + area.distant_credits(peer, own);
}

bool DistantStreams::may_send(const RunningCall& /*call*/, std::size_t /*bytes*/) noexcept {
  const auto places = static_cast<std::uint64_t>(sizes_.places);
  return sent_ < places || load_word(credits_ + place_of(sent_) * sizeof(std::uint64_t)) == sent_ - places + 1;
}

/// Messages use all engines in turn, their credits the first one.
void DistantStreams::put(RunningCall& call, Put put) const noexcept {
  put.peer = context_rank();
  put.owner = call.puts.count();
  call.note(call.transport.put(put), put.peer);
}

void DistantStreams::send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept {
  Put message;
  message.bytes = sizeof(heading) + bytes;
  const bool is_in_line = message.bytes <= kInlineBytes;
  std::byte* const to = leaving_ + entry_offset(sent_) + begin_of(is_in_line);
  std::memcpy(to, &heading, sizeof(heading));
  if (bytes != 0) kernels::copy(to + sizeof(heading), payload, bytes, false);
  message.source = to;
  message.signal_offset = entries_offset_ + entry_offset(sent_);
  message.target_offset = message.signal_offset + begin_of(is_in_line);
  message.signal = signal_word(is_in_line ? kInLine : kBehindLine, sent_++);
  message.line_before = !is_in_line;
  message.engine = call.engines.next();
  call.engines.count(message.engine, message.bytes);
  put(call, message);
}

Arrived DistantStreams::arrived(const RunningCall& /*call*/) const noexcept {
  const std::byte* const entry = received_ + entry_offset(taken_);
  const std::uint64_t word = load_word(entry);
  const bool is_in_line = word == signal_word(kInLine, taken_);
  if (!is_in_line && word != signal_word(kBehindLine, taken_)) return {};
  const std::byte* const heading = entry + begin_of(is_in_line);
  return {heading, heading + sizeof(Heading), is_in_line ? kPayloadInLineMost : sizes_.place_bytes - sizeof(Heading)};
}

void DistantStreams::take(RunningCall& call, const Arrived& /*message*/) noexcept {
  Put credit;
  credit.signal_offset = credits_offset_ + place_of(taken_) * sizeof(std::uint64_t);
  credit.signal = ++taken_;
  put(call, credit);
}

}  // namespace torii
