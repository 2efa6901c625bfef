// SPDX-License-Identifier: Apache-2.0
// A layer over libfabric's tcp provider that imposes what devices want that are not here: verbs, efa, cxi.
#pragma once

#include <climits>
#include <cstddef>
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
  bool stuck = false;              ///< FI_EAGAIN always
  /// The provider is called verbs;ofi_rxm; others are as they are. An engine is closed only when it has taken every
  /// notice that was sent to it, and no peer sends one afterwards.
  bool as_verbs = false;
  int engines_most = INT_MAX;  ///< that can be enabled at once
  int enabling_code = 0;       ///< if more are enabled
  int registering_code = 0;    ///< if it is not 0, nothing can be registered
};

/// The name by which the setting PROVIDER asks for a layer of these modes.
inline const char* provider_of(const Modes& modes) { return modes.as_verbs ? "verbs;ofi_rxm" : "tcp;ofi_rxm"; }

/// The rows of the suite, by name.
std::vector<std::pair<std::string, Modes>> imposed_modes();
/// What verbs asks for.
Modes verbs_modes();
/// The same of a provider that is called as verbs'.
Modes named_verbs_modes();
/// One set of modes at a time in a process.
libfabric::Api impose(const Modes& modes);
/// Changes what registering returns from now on; 0: nothing is refused.
void refuse_registrations(int code);
/// Enabled and not yet closed, in this process.
int imposed_engines() noexcept;
/// Registrations since the last call of impose(), and their bytes, of memory in [base, base + bytes).
struct Registered {
  int count = 0;
  std::size_t bytes = 0;
};
Registered imposed_registrations(const void* base, std::size_t bytes) noexcept;

}  // namespace torii::tests
