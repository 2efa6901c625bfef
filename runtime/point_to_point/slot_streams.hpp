// SPDX-License-Identifier: Apache-2.0
// Messages of sends and receives through slots: between nodes, and where a team has no standing rings.
#pragma once

#include <cstddef>

#include "runtime/point_to_point/messages.hpp"

namespace torii {

/// A pairwise exchange of all ranks without transfers: its streams are those of point-to-point messages.
Plan pair_plan(int rank, int ranks);

class SlotStreams final : public PairStreams {
 public:
  /// `peer` is of an installed pair_plan(), for slots of `slot_bytes`, and outlives this.
  SlotStreams(ExchangePeer& peer, std::size_t slot_bytes) noexcept
      : PairStreams({peer.rank, peer.context_rank, peer.remote}, {peer.their_lines, peer.own_lines}),
        peer_(peer),
        slot_bytes_(slot_bytes) {}

  bool may_send(const RunningCall& call, std::size_t /*bytes*/) noexcept override {
    return peer_.out.ring.may_fill(call, call.slots, peer_.sent);
  }
  void send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept override;
  Arrived arrived(const RunningCall& call) const noexcept override;
  void take(RunningCall& call, const Arrived& message) noexcept override;

 private:
  ExchangePeer& peer_;
  const std::size_t slot_bytes_;
};

}  // namespace torii
