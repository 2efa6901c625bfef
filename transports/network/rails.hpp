// SPDX-License-Identifier: Apache-2.0
// The source address of each engine, on which the ranks agree before engines are opened.
#pragma once

#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/devices/rails.hpp"
#include "transports/network/engine_options.hpp"

namespace torii::transports {

/// The source address of each engine; empty if the options of no rank have addresses. Collective.
std::vector<std::string> agree_on_sources(Bootstrap& bootstrap, const EngineOptions& options);

std::vector<Nic> nics_that_are_up();
/// This host's name, without rails.
RankRails rails_of_host();
/// The rails of every rank. Collective.
std::vector<RankRails> gather_rails(Bootstrap& bootstrap, const RankRails& mine);

}  // namespace torii::transports
