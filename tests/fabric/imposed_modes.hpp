// SPDX-License-Identifier: Apache-2.0
// A layer over libfabric's tcp provider that imposes what devices impose that are not here: verbs, efa, cxi.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "transports/libfabric/api.hpp"

namespace torii::tests {

struct Modes {
  bool receives_for_data = false;   ///< FI_RX_CQ_DATA: a notice uses up a posted receive
  bool keys_by_provider = false;    ///< FI_MR_PROV_KEY and FI_MR_VIRT_ADDR
  bool regions_of_endpoint = false;  ///< FI_MR_ENDPOINT
  bool local_regions = false;       ///< FI_MR_LOCAL
  bool unordered = false;           ///< no FI_ORDER_WAW, and writes are indeed shuffled
  bool no_inject = false;
  bool busy = false;                ///< FI_EAGAIN now and then
};

std::vector<std::pair<std::string, Modes>> imposed_modes();
libfabric::Api impose(const Modes& modes);

}  // namespace torii::tests
