// SPDX-License-Identifier: Apache-2.0
// In which order a rank sends to all others: lists of offsets that are the same on every rank. Pure tables, made once
// per shape and shared.
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
/// a2at_printed  the order of the A2AT paper where it has one, with the two corrections without which it is no alltoall
/// a2at          that order on meshes, and orders that keep all directions of all tori busy
/// docs/algorithms/a2at.md has the constructions and their sources.
enum class ExchangeOrder { a2a, a2and, a2at_printed, a2at };

/// "a2a", "a2and", "a2at_printed", "a2at".
std::string_view name(ExchangeOrder order) noexcept;

/// The receiver of a transfer of a list, relative to the sender.
struct ExchangeOffset {
  /// Nodes along each dimension, modulo the extents. Where the dimension wraps, the sign is the direction in which the
  /// message travels, and no value is more than half the extent; half the extent is a tie, whose direction the list
  /// chooses.
  Coordinates steps = {0, 0, 0};
  /// The receiver's place on its node minus the sender's, modulo the ranks of a node.
  int place = 0;
  /// Ties of senders at an odd coordinate (of the dimension of the tie) travel the other way round.
  bool by_parity = false;

  bool operator==(const ExchangeOffset&) const = default;
};

/// An order in which each rank sends to all others: one transfer per other rank.
struct ExchangeList {
  std::size_t transfers = 0;
  /// Empty when receivers are counted by rank: transfer e leads to rank + 1 + e.
  std::vector<ExchangeOffset> offsets;
};

/// Why there is no such list for the topology, as a sentence; empty when there is one. Only a2at_printed is refused.
std::string why_no_exchange_list(ExchangeOrder order, const Topology& topology);

/// The list, made at the first call and kept until the process ends, so references stay valid. A function of its
/// arguments only, not of time. `controllers` is the number of transfers in flight, which is the same on all ranks:
/// lists that are chosen by simulation are chosen for three, four or six of them. Any thread. On one shared-memory node
/// every order is rank + 1, rank + 2, ... Throws Error{unsupported} if there is none.
const ExchangeList& exchange_list(ExchangeOrder order, const Topology& topology, int controllers = 4);

/// The rank to which `rank` sends with this transfer (0 .. transfers-1). In each transfer every rank receives from
/// exactly one.
int receiver(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept;
/// The rank that sends to `rank` with this transfer: as far behind it as the receiver is ahead.
int sender(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept;

/// The hops of that message along each dimension, signed, as the list chooses them. All 0 within a node.
Coordinates exchange_hops(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept;

/// The ways that the list means that message to take half-way round, where the topology leaves the choice to the
/// sender; of receivers counted by rank balanced_ties(), since such a list says nothing. Otherwise nothing.
Ties exchange_ties(const Topology& topology, const ExchangeList& list, int rank, std::size_t transfer) noexcept;

/// The list as the network model simulates it; refers to both arguments.
ExchangeTraffic exchange_traffic(const Topology& topology, const ExchangeList& list);

}  // namespace torii
