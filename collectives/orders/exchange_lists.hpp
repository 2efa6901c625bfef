// SPDX-License-Identifier: Apache-2.0
// The order in which a rank sends to all others, as a list of offsets that is the same on every rank. Lists are pure
// tables, made once per shape and shared.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/topology/network_model.hpp"
#include "runtime/topology/topology.hpp"

namespace torii {

/// a2a           rank + 1, rank + 2, ...
/// a2and         all offsets in the order of their coordinates, the last dimension innermost
/// a2at_printed  the order of the A2AT paper, for the shapes that the paper covers, with two corrections: as printed,
/// it
///               misses some messages and sends others twice
/// a2at          a2at_printed on meshes; on tori, orders that keep all directions busy
/// docs/algorithms/a2at.md describes the constructions and their sources.
enum class ExchangeOrder { a2a, a2and, a2at_printed, a2at };

/// "a2a", "a2and", "a2at_printed", "a2at".
std::string_view name(ExchangeOrder order) noexcept;

/// The receiver of a transfer of a list, relative to the sender.
struct ExchangeOffset {
  /// Nodes along each dimension, modulo the extents. If the dimension wraps, the sign is the direction of travel and no
  /// value exceeds half the extent. A value of half the extent is a tie: the list chooses its direction.
  Coordinates steps = {0, 0, 0};
  /// The receiver's place on its node minus the sender's, modulo the ranks of a node.
  int place = 0;
  /// Senders at an odd coordinate (in the tie's dimension) send a tie in the other direction.
  bool by_parity = false;

  bool operator==(const ExchangeOffset&) const = default;
};

/// An order in which each rank sends to all others: one transfer per other rank.
struct ExchangeList {
  std::size_t transfers = 0;
  /// Empty if receivers are counted by rank: transfer t goes to rank + 1 + t.
  std::vector<ExchangeOffset> offsets;
};

/// The reason why the topology has no list of this order, as a sentence; empty if it has one. Only a2at_printed may
/// have none.
std::string why_no_exchange_list(ExchangeOrder order, const Topology& topology);

/// The list, which depends on the arguments only. It is made at the first call and kept until the process ends, so
/// references stay valid. `controllers` is the number of transfers in flight of each rank; lists that are selected by
/// simulation are selected for three, four or six. On one shared-memory node every order is rank + 1, rank + 2, ...
/// Thread-safe. Throws Error{unsupported} if there is no such list.
const ExchangeList& exchange_list(ExchangeOrder order, const Topology& topology, int controllers = 4);

/// The rank to which `rank` sends in this transfer (0 .. transfers-1). In each transfer every rank receives from
/// exactly one rank.
int receiver(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept;
/// The rank that sends to `rank` in this transfer.
int sender(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept;

/// The signed hops of that message along each dimension, as the list chooses them. All 0 within a node.
Coordinates exchange_hops(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept;

/// The directions that the list chooses for the ties of that message, if the topology lets the sender choose; otherwise
/// none. A list that counts receivers by rank chooses nothing and uses balanced_ties().
Ties exchange_ties(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept;

/// The list in the form that the network model simulates. The result refers to both arguments.
ExchangeTraffic exchange_traffic(const Topology& topology, const ExchangeList& list);

}  // namespace torii
