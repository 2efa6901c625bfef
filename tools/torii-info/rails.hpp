// SPDX-License-Identifier: Apache-2.0
// Describes the network devices, and the device of each engine of a rank on these CPUs.
#pragma once

#include <string>
#include <vector>

#include "runtime/devices/nics.hpp"
#include "runtime/devices/rails.hpp"

namespace torii::tools {

/// The device of one engine. In a job it may differ, because the ranks agree on networks when they open their engines.
struct EngineRail {
  int engine = 0;
  std::string device;   ///< empty: not known
  std::string address;  ///< empty if the fabric has addresses of its own
};

/// Engines over IP: on the sources that preferred_sources() gives, in turn.
std::vector<EngineRail> rails_over_ip(const std::vector<RailSource>& sources, const std::vector<MachineNic>& nics,
                                      const CpuList& allowed, bool named, int engines);

/// Engines over InfiniBand and similar: on the devices that are up and near, in turn. Empty without such a device.
std::vector<EngineRail> rails_over_openfabrics(const std::vector<MachineNic>& nics, const CpuList& allowed,
                                               int engines);

/// "mlx5_0: InfiniBand or its like, up, 100000 Mbit/s, NUMA node 0, CPUs 0-1".
std::string device_text(const MachineNic& device);
/// "0-3,8".
std::string cpus_text(const CpuList& cpus);
/// "engine 0: eth0 10.0.0.1, engine 1: eth1 10.0.1.1"; engines on one rail are named together.
std::string rails_text(const std::vector<EngineRail>& rails);

}  // namespace torii::tools
