// SPDX-License-Identifier: Apache-2.0
// A TCP connection between each two ranks, for the hand-written loops between hosts.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "perf/common/job.hpp"
#include "runtime/base/descriptor.hpp"

namespace torii::perf {

/// Bytes that go to one rank, and bytes that come from it.
struct Transfer {
  const std::byte* out = nullptr;
  size_t out_bytes = 0;
  std::byte* in = nullptr;
  size_t in_bytes = 0;
  size_t sent = 0;
  size_t received = 0;

  bool is_done() const { return sent == out_bytes && received == in_bytes; }
};

class Sockets {
 public:
  /// Collective. Listens on the first interface that TORII_INTERFACE selects. Throws Failure(kNotPossible) where ranks
  /// cannot reach each other.
  explicit Sockets(const Job& job);

  /// Moves what can move now of all transfers, one for each rank, that of this rank empty. Waits for a socket if
  /// nothing has moved for long. Returns false when all are done. Throws Failure: kTimeout if nothing moved for 30 s,
  /// kPeerLost when a connection has ended.
  bool advance(std::span<Transfer> transfers);

 private:
  void wait_for_one(std::span<const Transfer> transfers);

  std::vector<Descriptor> sockets_;  ///< by rank
  int polls_before_sleep_;
  int idle_ = 0;  ///< calls of advance() in a row that moved nothing
};

}  // namespace torii::perf
