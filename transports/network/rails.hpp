// SPDX-License-Identifier: Apache-2.0
// Which address each engine stands on: what the ranks agree on before engines are opened.
#pragma once

#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/devices/rails.hpp"
#include "transports/network/engine_options.hpp"

namespace torii::transports {

/// The source address of each engine; no entry where no rank has been given addresses. Collective.
std::vector<std::string> agree_on_sources(Bootstrap& bootstrap, const EngineOptions& options);

/// The devices of this machine that can be used now.
std::vector<Nic> nics_that_are_up();
/// This host's name, and no rails yet.
RankRails rails_of_host();
/// Those of every rank. Collective.
std::vector<RankRails> gather_rails(Bootstrap& bootstrap, const RankRails& mine);

}  // namespace torii::transports
