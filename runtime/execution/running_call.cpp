// SPDX-License-Identifier: Apache-2.0
// Places the payloads of a call in the outbox.
#include "runtime/execution/running_call.hpp"

#include <algorithm>
#include <optional>

namespace torii {
namespace {

/// One part for all messages of a ring, with a place for every slot of the plan, or for every message if these are
/// fewer. Rings that carry the same payloads share a part.
[[gnu::noinline]] void divide_extent(RingUses& uses, std::size_t message_bytes) noexcept {
  RingUses::Parts& parts = uses.parts;
  parts.readers = 0;
  parts.extent_bytes = 0;
  for (RingUses::PayloadUse& use : uses.payloads) {
    use.is_used = !(use.is_operand && parts.reads_input);
    if (!use.is_used) continue;
    if (use.is_awaited) ++parts.readers;
    if (use.leader >= 0) continue;
    use.part = parts.extent_bytes;
    use.bytes =
        round_up(widened(message_bytes, use.widening) * use.bundle, kLineBytes) + (use.is_distant ? kLineBytes : 0);
    const std::uint64_t places = use.is_distant ? uses.entries.count : uses.places.count;
    parts.extent_bytes += std::min(places, use.messages * static_cast<std::uint64_t>(parts.segments)) * use.bytes;
  }
  for (RingUses::PayloadUse& use : uses.payloads) {
    if (!use.is_used || use.leader < 0) continue;
    use.part = uses.payloads[static_cast<std::size_t>(use.leader)].part;
    use.bytes = uses.payloads[static_cast<std::size_t>(use.leader)].bytes;
  }
}

}  // namespace

bool RunningCall::claim_extent() noexcept {
  RingUses& uses = plan->uses;
  RingUses::Parts& parts = uses.parts;
  const Layout& layout = shape->layout;
  if (parts.longest_bytes != layout.longest_bytes() || parts.segments != layout.segments() ||
      parts.element_bytes != shape->element_bytes || parts.reads_input != buffers.input_reachable) [[unlikely]] {
    parts = {layout.longest_bytes(), layout.segments(), shape->element_bytes, buffers.input_reachable};
    divide_extent(uses, memory_bytes(std::min(layout.longest_bytes(), layout.segment_bytes())));
    if (parts.extent_bytes != 0) {
      const std::size_t more_bytes = plan->rings->outbox().reach_for(parts.extent_bytes);
      if (more_bytes != 0) Counters::add(transport.counters().staging_bytes, more_bytes);
    }
  }
  if (parts.extent_bytes == 0) return true;
  Outbox& outbox = plan->rings->outbox();
  const std::size_t touched_bytes = outbox.touched_bytes();
  const std::optional<std::size_t> begin = outbox.claim(parts.extent_bytes, parts.readers);
  if (!begin) return false;
  on_rings.touches_outbox_first = outbox.touched_bytes() != touched_bytes;
  for (const RingUses::PayloadUse& use : uses.payloads) {
    if (!use.is_used) continue;
    use.ring->part = *begin + use.part;
    use.ring->payload_bytes = use.bytes;
    if (!use.is_awaited) continue;
    outbox.add_reader(*use.ring, use.ring->first + use.messages * static_cast<std::uint64_t>(parts.segments));
  }
  return true;
}

}  // namespace torii
