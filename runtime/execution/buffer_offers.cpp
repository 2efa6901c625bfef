// SPDX-License-Identifier: Apache-2.0
// Buffer offers between the ranks of a node, written and read once per pair of ranks and call.
#include "runtime/execution/buffer_offers.hpp"

#include <cstring>

#include "runtime/plan/shortcuts.hpp"
#include "runtime/plan/transfer_rules.hpp"

namespace torii {
namespace {

/// A buffer offer's payload: where the peer finds this rank's vectors, as offsets into this rank's arena, or a readable
/// input by its address in this process.
struct BufferOffer {
  std::uint64_t input;
  std::uint64_t result_in_place;
  std::int64_t input_offset;
  std::int64_t result_offset;
};
static_assert(sizeof(BufferOffer) <= kInlineBytes, "an offer fits into its signal's line");

}  // namespace

void BufferOffers::begin() noexcept {
  offers_.assign(call_.plan->offers_in.size(), PeerBuffer{});
  reads_left_.resize(call_.plan->in.size());
  const bool reachable = call_.buffers.input_reachable;
  const BufferOffer told = {reachable                     ? kInArena
                            : call_.private_read.readable ? kReadable
                                                          : kByValue,
                            call_.buffers.result_reachable,
                            reachable ? call_.buffers.input_offset : static_cast<std::int64_t>(call_.buffers.input),
                            call_.buffers.result_offset};
  for (const OfferLine& to : call_.plan->offers_out) {
    if (!makes_offer(to.writes_result, told.input == kByValue)) continue;
    std::memcpy(to.line + sizeof(std::uint64_t), &told, sizeof(told));
    Put put;
    put.peer = to.peer;
    put.signal_offset = to.line_offset;
    put.signal = signal_word(call_.signature, call_.offer_number());
    call_.note(call_.transport.put(put), put.peer);
  }
}

bool BufferOffers::poll(std::size_t offer) noexcept {
  const OfferLine& from = call_.plan->offers_in[offer];
  if (load_word(from.line) != signal_word(call_.signature, call_.offer_number())) return false;
  BufferOffer told;
  std::memcpy(&told, from.line + sizeof(std::uint64_t), sizeof(told));
  if (told.input != kByValue && told.input != kReadable && !accepts_operands(from, told.input_offset)) return false;
  if (told.result_in_place != 0 && !accepts(from.peer, told.result_offset, from.stores)) return false;
  PeerBuffer& state = offers_[offer];
  const auto base = reinterpret_cast<std::uintptr_t>(call_.transport.mapped(from.peer, 0));
  state.seen = true;
  state.input_in_place = told.input != kByValue;
  state.input_readable = told.input == kReadable;
  state.result_in_place = told.result_in_place != 0;
  state.input = (state.input_readable ? 0 : base) + static_cast<std::uintptr_t>(told.input_offset);
  state.result = base + static_cast<std::uintptr_t>(told.result_offset);
  const auto messages = static_cast<std::uint64_t>(call_.shape->layout.segments());
  for (std::size_t i = 0; i < call_.plan->in.size(); ++i) {
    const InstalledIn& in = call_.plan->in[i];
    if (in.stream.delivery == Delivery::read_in_place && in.offer == static_cast<int>(offer)) {
      reads_left_[i] = messages * static_cast<std::uint64_t>(in.stream.messages_per_segment);
    }
  }
  return true;
}

/// The operands lie one behind the other, so the first and the last one are enough.
bool BufferOffers::accepts_operands(const OfferLine& from, std::int64_t offset) noexcept {
  if (!accepts(from.peer, offset, from.reads)) return false;
  const auto distance = static_cast<std::int64_t>(call_.operand_distance(from.operand_last));
  return distance == 0 || accepts(from.peer, offset + distance, from.reads);
}

bool BufferOffers::accepts(int peer, std::int64_t offset, const BlockRange& blocks) noexcept {
  if (blocks.last < 0) return true;
  const Piece span = call_.shape->layout.span(blocks.first, blocks.last);
  return call_.accepts(peer, static_cast<std::uint64_t>(offset) + call_.memory_bytes(span.offset_bytes),
                       call_.memory_bytes(span.length_bytes));
}

std::string BufferOffers::refusal() const {
  if (call_.refused.bytes == 0) return {};
  return "it says that " + std::to_string(call_.refused.bytes) + " bytes of its vector stand at offset " +
         std::to_string(static_cast<std::int64_t>(call_.refused.offset)) + " of its arena, which has " +
         std::to_string(call_.transport.arena_bytes()) + " bytes";
}

}  // namespace torii
