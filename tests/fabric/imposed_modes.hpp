// SPDX-License-Identifier: Apache-2.0
// A layer over libfabric's tcp provider that imposes what devices want that are not here: verbs, efa, cxi.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "transports/libfabric/api.hpp"

namespace torii::tests {

/// The layer ends the process with a sentence when its user breaks one of the modes. Completion data has 4 bytes
/// always.
struct Modes {
  bool receives_for_data = false;  ///< FI_RX_CQ_DATA: each notice uses up a posted receive
  bool keys_by_provider = false;   ///< FI_MR_PROV_KEY and FI_MR_VIRT_ADDR
  bool short_keys = false;         ///< keys of one byte, every other one of which is taken
  bool regions_of_engine = false;  ///< a region is bound to one engine, and has a key only then
  bool local_regions = false;      ///< FI_MR_LOCAL
  bool pins = false;               ///< FI_MR_ALLOCATED: what is registered is there, and stays
  bool unordered = false;          ///< no FI_ORDER_WAW, and writes are shuffled indeed
  bool no_inject = false;          ///< inject_size 0
  bool busy = false;               ///< FI_EAGAIN now and then
};

/// The rows of the suite, by name.
std::vector<std::pair<std::string, Modes>> imposed_modes();
/// What verbs asks for.
Modes verbs_modes();
/// One set of modes at a time in a process.
libfabric::Api impose(const Modes& modes);

}  // namespace torii::tests
