// SPDX-License-Identifier: Apache-2.0
// Settings that UCX needs for an engine's devices. Those of the user win where they may.
#include "transports/ucx/config.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace torii::ucx {
namespace {

/// UCX settings that an engine needs if a component is used. UCX warns of settings that no component reads.
struct Demand {
  std::string_view component;
  const char* name;
  const char* value;
  const char* user = nullptr;  ///< the variable with which the user may choose otherwise
  const char* domain = "";     ///< the prefix of a setting of the memory domain; see name_of()
};
constexpr Demand kDemands[] = {
    {"posix", "MM_ERROR_HANDLING", "yes"},
    {"sysv", "MM_ERROR_HANDLING", "yes"},
    // How often UCX checks the process behind shared memory; connections report by themselves.
    {"posix", "KEEPALIVE_INTERVAL", "100ms"},
    {"sysv", "KEEPALIVE_INTERVAL", "100ms"},
    // Lets cma carry payloads although errors are watched. A peer is lost only when its process has ended, and then it
    // no longer reads memory.
    {"cma", "MEMORY_INVALIDATE", "yes", nullptr, "CMA_"},
    // Packets that a sender may be ahead; with UCX's 64, long payloads stop and go.
    {"posix", "MM_FIFO_SIZE", "256", "UCX_POSIX_FIFO_SIZE"},
    {"sysv", "MM_FIFO_SIZE", "256", "UCX_SYSV_FIFO_SIZE"},
    // Two writes of one engine become visible in their order, also on buses that may reorder them.
    {"ib", "PCI_RELAXED_ORDERING", "no", nullptr, "IB_"},
};

bool is_older_than(unsigned minor_version) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return std::pair(major, minor) < std::pair(1U, minor_version);
}

/// UCX before 1.17 knows settings of a memory domain only without the prefix of their variable, later ones only with
/// it.
std::string name_of(const char* domain, const char* name) {
  return std::string(is_older_than(17) ? "" : domain) + name;
}

/// UCX before 1.19 reads the type of a RoCE packet from bits that only mlx5 devices set, and so drops all UD packets
/// over IPv4 on others. Without its check, only the numbers of a connection tell that outdated tables brought a packet
/// to the wrong host.
bool drops_own_packets(const Selection& selection) { return selection.is_plain_verbs && is_older_than(19); }

}  // namespace

Config make_config(const Selection& selection, bool puts) {
  ucp_config_t* made = nullptr;
  check(ucp_config_read(nullptr, nullptr, &made), "reading its configuration");
  Config config(made);
  const auto set = [made](const std::string& name, const std::string& value) {
    check(ucp_config_modify(made, name.c_str(), value.c_str()), "setting " + name + "=" + value);
  };
  const auto set_by_user = [](const char* variable) { return std::getenv(variable) != nullptr; };
  set("TLS", selection.transports);
  if (!selection.devices.empty()) set("NET_DEVICES", selection.devices);
  for (const Demand& demand : kDemands) {
    const auto& found = selection.components;
    if (std::find(found.begin(), found.end(), demand.component) == found.end()) continue;
    if (demand.user == nullptr || !set_by_user(demand.user)) {
      set(name_of(demand.domain, demand.name), demand.value);
    }
  }
  // With the protocols that are the default since UCX 1.16, puts to one peer may take several ways, so a fence waits
  // until all peers have confirmed all puts: also those that are dead, until UCX knows it. With the older ones all take
  // one way, and a fence waits for nobody.
  if (puts && !set_by_user("UCX_PROTO_ENABLE")) set("PROTO_ENABLE", "no");
  const bool chooses_check = set_by_user("UCX_UD_VERBS_ETH_DGID_CHECK") || set_by_user("UCX_UD_ETH_DGID_CHECK");
  if (drops_own_packets(selection) && !chooses_check) set("UD_ETH_DGID_CHECK", "no");
  // rxe of Linux 6.12 says more than once that a queue pair has ended, upon which UCX up to 1.20 aborts the process.
  // Queue pairs of closed connections then stay until their engine is closed.
  if (selection.is_plain_verbs && !set_by_user("UCX_IB_ASYNC_EVENTS")) set(name_of("IB_", "ASYNC_EVENTS"), "no");
  // rxe of Linux 6.12 puts off the repetition of a lost packet by each packet that it sends meanwhile. Ranks that wait
  // send a word a second, and UCX sets 1 s, so it would never come.
  const bool chooses_timeout = set_by_user("UCX_RC_VERBS_TIMEOUT") || set_by_user("UCX_RC_TIMEOUT");
  if (selection.is_plain_verbs && !chooses_timeout) set("RC_TIMEOUT", "500ms");
  // Left to itself, UCX takes the first address of the port, which may be in another VLAN.
  if (!selection.gid_index.empty() && !set_by_user("UCX_IB_GID_INDEX")) {
    set(name_of("IB_", "GID_INDEX"), selection.gid_index);
  }
  return config;
}

}  // namespace torii::ucx
