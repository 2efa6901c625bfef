// SPDX-License-Identifier: Apache-2.0
// Which device each engine goes through: pure functions of what the ranks know about their devices.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/devices/cpus.hpp"

namespace torii {

/// A device that a rank's puts can leave by.
struct Nic {
  std::string name;       ///< as the system calls it: eth0, mlx5_0
  CpuList near_cpus;      ///< CPUs on its side of the machine; empty: not known
  double mbit_per_s = 0;  ///< 0: not known
};

/// The devices that a rank with these CPUs should use, as indices into `nics` in their order: of those that are at
/// least half as fast as the fastest (not known counts as fast) the ones that share a CPU with `allowed`; all of them
/// where none is known to.
std::vector<std::size_t> preferred_nics(const std::vector<Nic>& nics, const CpuList& allowed);

/// An address of this host that engines could stand on.
struct RailSource {
  std::string address;
  std::string network;    ///< as network_of() gives it
  std::string interface;  ///< empty: not known
};

/// The sources that a rank should use, as indices in their order. In each network: preferred_nics(). Where the user has
/// not `named` the interfaces, an interface beside the first one joins only if both are physical devices, and none that
/// is less than half as fast as the fastest, the first included.
std::vector<std::size_t> preferred_sources(const std::vector<RailSource>& sources, const std::vector<Nic>& nics,
                                           const CpuList& allowed, bool named);

/// One place that a rank's engines may stand on: an address, or a device whose addresses are its own.
struct Rail {
  std::string network;  ///< "10.90.1.0/24"; empty: reaches the rails of every other rank
  std::string name;     ///< the address or device
};

/// What a rank tells the others when engines are opened.
struct RankRails {
  std::string host;         ///< ranks of one machine and network namespace have the same
  std::vector<Rail> rails;  ///< in order of preference
};

/// The rail of each engine of rank `rank`, as indices into its own rails. Engine e of one rank
/// puts to engine e of another, so both must stand in one network: with K networks that all ranks have, in rank 0's
/// order, engine e is in network e mod K. A network in which two hosts have the same address (a bridge that every host
/// has for itself) joins nobody and is left out. Several rails in one network are taken in turn, ranks of a host with
/// the same rails starting where the one before has stopped. Empty, on all ranks, where no network is common to all.
std::vector<std::size_t> engine_rails(const std::vector<RankRails>& ranks, int rank, int engines);

/// RankRails as one line of words for an exchange, and back. What is not such a line gives no rails.
std::string rails_text(const RankRails& rails);
RankRails parse_rails(const std::string& text);

}  // namespace torii
