// SPDX-License-Identifier: Apache-2.0
// Buffer offers: the ranks of a node tell each other where their vectors are in this call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/execution/running_call.hpp"

namespace torii {

class BufferOffers {
 public:
  /// A peer's buffer offer for this call.
  struct PeerBuffer {
    bool seen = false;
    bool input_in_place = false;
    bool input_readable = false;  ///< in place too, but in the peer's private memory
    bool result_in_place = false;
    std::uintptr_t input = 0;
    std::uintptr_t result = 0;
  };

  explicit BufferOffers(RunningCall& call) : call_(call) {}

  /// Tells the peers of the plan where this rank's vectors are.
  void begin() noexcept;
  /// Whether the peer's buffer offer has come. False with a bad status if the offer is impossible (accepts()).
  bool has_come(std::size_t offer) noexcept { return offers_[offer].seen || poll(offer); }
  const PeerBuffer& of(int offer) const noexcept { return offers_[static_cast<std::size_t>(offer)]; }
  /// A message of an operand that is read in place has been taken. True for the last message of the call.
  bool is_last_read(std::uint16_t stream) noexcept { return --reads_left_[stream] == 0; }
  /// With status `transport`: the impossible offer of the failed peer as text, or nothing.
  std::string refusal() const;

 private:
  bool poll(std::size_t offer) noexcept;
  bool accepts_operands(const OfferLine& from, std::int64_t offset) noexcept;
  /// `offset` is that of byte 0 of the vector, which may lie before the arena; what the plan touches may not.
  bool accepts(int peer, std::int64_t offset, const BlockRange& blocks) noexcept;

  RunningCall& call_;
  std::vector<PeerBuffer> offers_;
  std::vector<std::uint64_t> reads_left_;  ///< per in-stream: messages not yet read of an operand read in place
};

}  // namespace torii
