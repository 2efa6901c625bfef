// SPDX-License-Identifier: Apache-2.0
// The findings about other machines: interfaces, ports, devices, and the libraries that reach them.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/settings.hpp"
#include "runtime/devices/rails.hpp"
#include "tools/torii-info/findings.hpp"

namespace torii::tools {

/// Fills interfaces, ports, nics, fabrics and pmix. Opens libraries, so call it after all forks.
void look_at_network(const Settings& settings, Findings& found);

/// The addresses that engines may use by the settings, best first; empty if the selection names nothing.
std::vector<RailSource> rail_sources(const Settings& settings);

}  // namespace torii::tools
