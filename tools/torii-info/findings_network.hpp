// SPDX-License-Identifier: Apache-2.0
// The part of the findings that leaves this machine: interfaces, ports, devices, and libraries that reach them.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/settings.hpp"
#include "runtime/devices/rails.hpp"
#include "tools/torii-info/findings.hpp"

namespace torii::tools {

/// Fills interfaces, ports, nics, fabrics and pmix. Opens libraries, so what forks comes before.
void look_at_network(const Settings& settings, Findings& found);

/// The addresses that engines may stand on by the settings, best first; empty when the selection names nothing.
std::vector<RailSource> rail_sources(const Settings& settings);

}  // namespace torii::tools
