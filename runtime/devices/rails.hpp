// SPDX-License-Identifier: Apache-2.0
// Assigns a device to each engine: pure functions of the ranks' knowledge of their devices.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/devices/cpus.hpp"

namespace torii {

/// A network device.
struct Nic {
  std::string name;       ///< the system's name: eth0, mlx5_0
  CpuList near_cpus;      ///< empty if unknown
  double mbit_per_s = 0;  ///< 0 if unknown
};

/// The devices that a rank with these CPUs should use, as ascending indices into `nics`. Devices slower than half the
/// fastest are left out; unknown speeds count as fast. Those of the rest that share a CPU with `allowed` are used,
/// or all if none does.
std::vector<std::size_t> preferred_nics(const std::vector<Nic>& nics, const CpuList& allowed);

/// An address of this host that engines could use.
struct RailSource {
  std::string address;
  std::string network;    ///< from network_of()
  std::string interface;  ///< empty if unknown
};

/// The sources that a rank should use, as ascending indices: in each network, the sources of preferred_nics(). If the
/// user has not `named` the interfaces, only physical devices count, without those slower than half the fastest. If the
/// first source is not on a physical device, it is the only one.
std::vector<std::size_t> preferred_sources(const std::vector<RailSource>& sources, const std::vector<Nic>& nics,
                                           const CpuList& allowed, bool named);

/// A source address or a device that engines of a rank may use.
struct Rail {
  std::string network;  ///< "10.90.1.0/24"; empty: reaches the rails of every other rank
  std::string name;     ///< the address or device
};

/// The rails of a rank, which it sends to the other ranks before engines are opened.
struct RankRails {
  std::string host;         ///< equal for ranks of one machine and network namespace
  std::vector<Rail> rails;  ///< in order of preference
};

/// The rail of each engine of rank `rank`, as indices into its own rails. Engine e of a rank puts to engine e of its
/// peers, so both must be in one network. With K networks that all ranks have, in rank 0's order, engine e is in
/// network e mod K. A network in which two hosts have the same address (a bridge inside each host) is left out. Engines
/// alternate between several rails in one network; the ranks of a host with the same rails continue where the previous
/// one ended. Empty on all ranks if they have no common network.
std::vector<std::size_t> engine_rails(const std::vector<RankRails>& ranks, int rank, int engines);

/// RankRails as one line of words, and back. Any other text gives no rails.
std::string rails_text(const RankRails& rails);
RankRails parse_rails(const std::string& text);

}  // namespace torii
