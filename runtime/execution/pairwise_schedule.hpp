// SPDX-License-Identifier: Apache-2.0
// Runs pairwise exchanges: personalised messages between pairs of ranks, a bounded number of them in flight.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/execution/buffer_offers.hpp"
#include "runtime/execution/host.hpp"
#include "runtime/execution/length_fault.hpp"
#include "runtime/execution/running_call.hpp"
#include "runtime/plan/transfer_rules.hpp"

namespace torii {

template <class Host>
class PairwiseSchedule {
 public:
  PairwiseSchedule(Host host, RunningCall& call, BufferOffers& offers) : host_(host), call_(call), offers_(offers) {}

  void begin() noexcept;
  /// Takes room in the outbox for what this rank may send through slots. False: there is none yet.
  bool claim_extent() noexcept;
  Progress advance() noexcept;
  Stall stall() const noexcept;
  bool awaits(int peer) const noexcept;
  /// A slow check: true, with status `mismatch`, if a block for which the call waits is known to have another length at
  /// its other end.
  bool finds_other_length(const LengthEvidence& evidence) noexcept;
  /// The same for any call: true if the numbers of a ring differ between its ends.
  bool finds_ring_fault(const LengthEvidence& evidence) noexcept;
  /// With status `mismatch`.
  const LengthFault& length_fault() const noexcept { return length_fault_; }
  /// The most transfers that have been in flight at once. From any thread.
  int transfers_in_flight_most() const noexcept { return transfers_in_flight_most_.load(std::memory_order_relaxed); }

 private:
  using Way = TransferWay;
  /// A call's state towards a peer.
  struct Turn {
    Way out_way = Way::unknown;
    Way in_way = Way::unknown;
    bool makes_offer = false;  ///< a block of the pair that is not empty needs a buffer offer
    bool sent = false;         ///< the transfer has left the pool
    bool taken = false;
    std::size_t out_bytes = 0;  ///< sent so far
    std::size_t in_bytes = 0;
    std::uintptr_t peer_input = 0;  ///< where the peer's block for this rank is
    std::uintptr_t peer_result = 0;
  };
  /// The in-flight set: transfers that this rank has started and not finished.
  struct Pool {
    std::vector<std::uint32_t> active;
    std::size_t next = 0;  ///< in the order of the pairwise exchange
  };
  struct Block {
    std::size_t bytes = 0;
    std::int64_t offset = 0;
  };
  struct ExchangeOffer;
  class SendOperation;
  class TakeOperation;

  void choose_private_read() noexcept;
  void offer(const ExchangePeer& peer) noexcept;
  bool match(const ExchangePeer& peer, Turn& turn) noexcept;
  bool fits(const ExchangePeer& peer, const ExchangeOffer& offer) noexcept;
  LengthFault other_length(const ExchangePeer& peer, const Turn& turn, const LengthEvidence& evidence) const noexcept;
  LengthFault other_block(const ExchangePeer& peer, const Turn& turn, const LengthEvidence& evidence, bool has_ended,
                          bool has_offer) const noexcept;
  bool follows(const ReceiveRing& ring, std::uint64_t number, std::size_t bytes) const noexcept;
  bool pass(Pool& pool, const std::vector<std::uint32_t>& order, std::size_t limit, bool sends) noexcept;
  void send(ExchangePeer& peer, Turn& turn, bool& moved) noexcept;
  void take(ExchangePeer& peer, Turn& turn, bool& moved) noexcept;
  void store_in_peer(std::byte* to, const std::byte* from, std::size_t bytes, StoreChoice& stores,
                     bool is_first_touch) noexcept;
  void store_in_result(void* to, const void* from, std::size_t bytes) const noexcept;
  void keep_own_block() noexcept;
  bool operands_are_free() noexcept;
  std::uint64_t reach_of_input() const noexcept;
  std::uint32_t pair_signature(std::size_t bytes) const noexcept;
  /// Goes through slots without a buffer offer.
  bool is_short(const Block& block) const noexcept {
    return call_.buffers.blocks != nullptr && block.bytes <= kAtOnceBytes;
  }
  std::uint64_t messages_of(std::size_t bytes) const noexcept {
    return (bytes + call_.shape->layout.segment_bytes() - 1) / call_.shape->layout.segment_bytes();
  }
  Block block_to(int rank) const noexcept {
    const ExchangeBlocks* const blocks = call_.buffers.blocks;
    const Plan& plan = call_.plan->plan;
    if (blocks == nullptr) return even_block(plan.exchange.to >= 0 ? plan.rank : rank);
    const auto at = static_cast<std::size_t>(rank);
    return {blocks->send_bytes[at], blocks->send_offsets[at]};
  }
  Block block_from(int rank) const noexcept {
    const ExchangeBlocks* const blocks = call_.buffers.blocks;
    const Plan& plan = call_.plan->plan;
    if (blocks == nullptr) return even_block(plan.exchange.from >= 0 ? plan.rank : rank);
    const auto at = static_cast<std::size_t>(rank);
    return {blocks->take_bytes[at], blocks->take_offsets[at]};
  }
  Block even_block(int number) const noexcept {
    return {call_.shape->block_bytes, number * static_cast<std::int64_t>(call_.shape->block_bytes)};
  }

  [[no_unique_address]] Host host_;
  RunningCall& call_;
  BufferOffers& offers_;
  std::vector<Turn> turns_;              ///< by peer of the pairwise exchange
  std::vector<std::size_t> slot_bytes_;  ///< likewise: of the blocks for which room was taken in the outbox
  Pool sends_;
  Pool takes_;
  bool own_block_kept_ = false;
  std::size_t free_of_ = 0;  ///< so many of the first peers are known to have read the blocks that they read in place
  std::atomic<int> transfers_in_flight_most_ = 0;
  LengthFault length_fault_;
};

extern template class PairwiseSchedule<RealHost>;
extern template class PairwiseSchedule<ModelledHost>;

}  // namespace torii
