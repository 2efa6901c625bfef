// SPDX-License-Identifier: Apache-2.0
// Cross-memory attach: reading the private memory of a peer's process, if the kernel allows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/shared_memory/node_peers.hpp"

namespace torii::shared_memory {

/// Immutable once made, so any thread may read.
class CrossMemory {
 public:
  /// Collective: every rank tries to read a random word of every rank of its node. `allowed` is equal on all ranks, so
  /// lenders know what their readers can do.
  CrossMemory(Bootstrap& bootstrap, const NodePeers& peers);

  bool allowed() const noexcept { return why_not_.empty(); }
  /// Which rank cannot read which, and the kernel's reason; equal on all ranks.
  const std::string& why_not() const noexcept { return why_not_; }
  /// Status::peer_lost if the process has ended, or its number now means another program; unsupported if the kernel has
  /// come to refuse; transport if the peer has no memory there.
  Status read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) const noexcept;

 private:
  /// By which a reader knows the process that it reads.
  struct Proof {
    std::uint64_t address;
    std::uint64_t word;
  };
  static Proof own_proof();

  std::vector<int> pids_;
  std::vector<Proof> proofs_;
  std::string why_not_;
};

}  // namespace torii::shared_memory
