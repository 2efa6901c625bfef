// SPDX-License-Identifier: Apache-2.0
// Writes messages into slots and finds them there.
#include "runtime/point_to_point/slot_streams.hpp"

#include <cstring>
#include <memory>

#include "runtime/execution/sending.hpp"

namespace torii {
namespace {

/// The streams carry nothing else, so signatures only tell where the message is: in the signal's line or behind it.
constexpr std::uint32_t kInLine = 0x70743271;
constexpr std::uint32_t kBehindLine = 0x70743273;

/// No transfer is known when a team is made.
class NoTransfers final : public TransferOrder {
 public:
  std::string_view name() const noexcept override { return "point to point"; }
  int transfers() const noexcept override { return 0; }
  int receiver(int /*rank*/, int /*transfer*/) const noexcept override { return -1; }
  int sender(int /*rank*/, int /*transfer*/) const noexcept override { return -1; }
};

}  // namespace

Plan pair_plan(int rank, int ranks) {
  Plan plan;
  plan.rank = rank;
  plan.ranks = ranks;
  plan.slots = kPairPayloads;
  plan.in_streams_max = plan.out_streams_max = ranks - 1;
  // Shared by all, and so without an allocation that could fail.
  static const NoTransfers order;
  plan.exchange.order = {std::shared_ptr<const TransferOrder>(), &order};
  return plan;
}

void SlotStreams::send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept {
  const SendRing& ring = peer_.out.ring;
  const std::size_t all_bytes = sizeof(heading) + bytes;
  std::byte* const to = ring.payload(call.slots, peer_.sent, all_bytes);
  std::memcpy(to, &heading, sizeof(heading));
  if (bytes != 0) kernels::copy(to + sizeof(heading), payload, bytes, false);
  ring.signal(call, Ring::is_inline(all_bytes) ? kInLine : kBehindLine, peer_.sent, all_bytes);
  ++peer_.sent;
}

Arrived SlotStreams::arrived(const RunningCall& call) const noexcept {
  const ReceiveRing& ring = peer_.in.ring;
  const std::size_t offset = ring.offset(call.slots, peer_.taken);
  const auto at = [offset](const std::byte* first, std::size_t payload_most) {
    return Arrived{first + offset, first + offset + sizeof(Heading), payload_most};
  };
  if (ring.arrived_at(offset, kInLine, peer_.taken)) return at(ring.first_payload(0), kPayloadInLineMost);
  if (!ring.arrived_at(offset, kBehindLine, peer_.taken)) return {};
  return at(ring.first_payload(kInlineBytes + 1), slot_bytes_ - sizeof(Heading));
}

void SlotStreams::take(RunningCall& call, const Arrived& /*message*/) noexcept {
  peer_.in.ring.release(call, peer_.taken++);
}

}  // namespace torii
