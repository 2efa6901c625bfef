// SPDX-License-Identifier: Apache-2.0
// Writes messages into slots and finds them there.
#include "runtime/point_to_point/messages.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/execution/sending.hpp"

namespace torii {
namespace {

/// The streams carry nothing else, so signatures only tell where the message is: in the signal's line or behind it.
constexpr std::uint32_t kInLine = 0x70743271;
constexpr std::uint32_t kBehindLine = 0x70743273;

constexpr int kSlots = 8;
constexpr std::size_t kSlotsBytesMost = std::size_t{1} << 20;
/// A line for the heading, so that sends of a power of two go whole.
constexpr std::size_t kSlotBytesMost = 16384 + kLineBytes;

/// No transfer is known when a team is made.
class NoTransfers final : public TransferOrder {
 public:
  std::string_view name() const noexcept override { return "point to point"; }
  int transfers() const noexcept override { return 0; }
  int receiver(int /*rank*/, int /*transfer*/) const noexcept override { return -1; }
  int sender(int /*rank*/, int /*transfer*/) const noexcept override { return -1; }
};

constexpr std::size_t kWithdrawnAt = 0;
constexpr std::size_t kReadsAt = sizeof(std::uint64_t);

std::atomic_ref<std::uint64_t> word_at(const std::byte* line, std::size_t offset) noexcept {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(line) + offset));
}

}  // namespace

Plan pair_plan(int rank, int ranks) {
  Plan plan;
  plan.rank = rank;
  plan.ranks = ranks;
  plan.slots = kSlots;
  plan.in_streams_max = plan.out_streams_max = ranks - 1;
  // Shared by all, and so without an allocation that could fail.
  static const NoTransfers order;
  plan.exchange.order = {std::shared_ptr<const TransferOrder>(), &order};
  return plan;
}

std::size_t pair_slot_bytes(int ranks) noexcept {
  const std::size_t share = kSlotsBytesMost / (static_cast<std::size_t>(ranks) * kSlots);
  return std::clamp(share / kLineBytes * kLineBytes, kLineBytes, kSlotBytesMost);
}

void PairStreams::send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept {
  const SendRing& ring = peer_->out.ring;
  const std::size_t all_bytes = sizeof(heading) + bytes;
  std::byte* const to = ring.payload(call.slots, peer_->sent, all_bytes);
  std::memcpy(to, &heading, sizeof(heading));
  if (bytes != 0) kernels::copy(to + sizeof(heading), payload, bytes, false);
  ring.signal(call, Ring::is_inline(all_bytes) ? kInLine : kBehindLine, peer_->sent, all_bytes);
  ++peer_->sent;
}

void PairStreams::take(RunningCall& call) noexcept { peer_->in.ring.release(call, peer_->taken++); }

/// As in a sequence lock: who has read a byte that was changed after the word was stored finds the word. The fence here
/// keeps the caller's stores behind it, that of has_peer_withdrawn() the loads of the bytes before it.
void PairStreams::withdraw_announcements() noexcept {
  if (peer_->their_lines == nullptr) return;
  word_at(peer_->their_lines, kWithdrawnAt).store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool PairStreams::has_peer_withdrawn() const noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);
  return word_at(peer_->own_lines, kWithdrawnAt).load(std::memory_order_relaxed) != 0;
}

/// Relaxed: the words order nothing, they only show that something goes on.
void PairStreams::tell_reading() noexcept {
  word_at(peer_->their_lines, kReadsAt).store(++reads_told_, std::memory_order_relaxed);
}

bool PairStreams::is_peer_reading() noexcept {
  if (peer_->own_lines == nullptr) return false;
  const std::uint64_t reads = word_at(peer_->own_lines, kReadsAt).load(std::memory_order_relaxed);
  return std::exchange(reads_seen_, reads) != reads;
}

const std::byte* PairStreams::arrived(const RunningCall& call) const noexcept {
  const ReceiveRing& ring = peer_->in.ring;
  const std::size_t offset = ring.offset(call.slots, peer_->taken);
  if (ring.arrived_at(offset, kInLine, peer_->taken)) return ring.first_payload(sizeof(Heading)) + offset;
  if (ring.arrived_at(offset, kBehindLine, peer_->taken)) return ring.first_payload(slot_bytes_) + offset;
  return nullptr;
}

}  // namespace torii
