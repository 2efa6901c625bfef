// SPDX-License-Identifier: Apache-2.0
// Asks libfabric for providers that can do what an engine needs.
#include "transports/libfabric/providers.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "runtime/base/split.hpp"
#include "runtime/devices/address.hpp"
#include "transports/libfabric/device.hpp"
#include "transports/libfabric/endpoint.hpp"
#include "transports/network/environment.hpp"
#include "transports/network/providers.hpp"

namespace torii::libfabric {
namespace {

constexpr std::uint32_t kVersion = FI_VERSION(1, 15);

/// The order of `auto`: hardware first, then providers over sockets, the fewest layers first.
constexpr std::string_view kPreference[] = {"verbs;ofi_rxm", "efa", "cxi", "psm2", "net", "tcp;ofi_rxm", "sockets"};
/// It works, but is used only by name: it leaves named files behind if a rank is killed.
constexpr std::string_view kByNameOnly[] = {"shm"};
constexpr transports::KnownProviders kKnown = {kPreference, kByNameOnly, "fi_info"};
/// The most peers whose completions fit into the shortest queue that a device is known to have.
constexpr int kPeersLeast = 32767 / (128 + 128);

/// The address that a provider over IP must use.
void set_source(fi_info& hints, const std::string& text) {
  const Address address = Address::parse(text, 0);
  hints.addr_format = address.family() == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
  hints.src_addrlen = address.bytes();
  hints.src_addr = std::malloc(hints.src_addrlen);  // freed by fi_freeinfo
  if (hints.src_addr == nullptr) throw Error(Status::no_resource, "out of memory");
  std::memcpy(hints.src_addr, address.get(), hints.src_addrlen);
}

Info make_hints(const std::string& provider, const std::string& source_address, fi_threading threading) {
  Info hints(fi_allocinfo());
  if (hints == nullptr) throw Error(Status::no_resource, "out of memory");
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = threading;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // Ask for no provider thread if the provider can do without.
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  // Providers that are not over IP have their own addresses.
  if (!source_address.empty() && is_over_ip(provider)) set_source(*hints, source_address);
  return hints;
}

/// Why an engine cannot run over this provider; empty if it can.
std::string shortcoming(const fi_info& info) {
  if (info.domain_attr->cq_data_size < 4) {
    return "its completions carry " + std::to_string(info.domain_attr->cq_data_size) + " bytes of data; 4 are needed";
  }
  if ((info.domain_attr->mr_mode & FI_MR_RAW) != 0 || info.domain_attr->mr_key_size > sizeof(std::uint64_t)) {
    return "its keys are longer than 8 bytes";
  }
  return {};
}

/// Describes the devices of a provider. Asked for engines with a device each, libfabric locks nothing. Where
/// registering pins memory it is asked once more, for a device that engines share.
int describe(const Api& api, const std::string& provider, const std::string& source_address, Info& all) {
  const auto ask = [&](fi_threading threading, Info& answer) {
    const Info hints = make_hints(provider, source_address, threading);
    fi_info* first = nullptr;
    const int code = api.get_info(kVersion, nullptr, nullptr, 0, hints.get(), &first);
    answer.reset(first);
    return code;
  };
  const int code = ask(FI_THREAD_DOMAIN, all);
  Info shared;
  if (code == 0 && all != nullptr && Device::pins(*all) && ask(FI_THREAD_SAFE, shared) == 0) all = std::move(shared);
  return code;
}

/// Appends the usable providers; if there are none, returns the reason.
std::string ask(const Api& api, const std::string& provider, const std::string& source_address,
                std::vector<Info>& found) {
  Info all;
  const int code = describe(api, provider, source_address, all);
  if (code == -FI_ENODATA) {
    const bool is_somewhere = !source_address.empty() && is_over_ip(provider);
    return "no device here offers it" + (is_somewhere ? " at " + source_address : "") + " with remote writes";
  }
  if (code != 0) return code_text(code);
  std::string reason = "libfabric describes no device";
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    // For "tcp", libfabric also answers with providers layered over tcp, and each of them has its whole name.
    if (provider != info->fabric_attr->prov_name) continue;
    const std::string missing = shortcoming(*info);
    if (!missing.empty()) {
      reason = missing;
      continue;
    }
    const auto is_same = [info](const Info& other) {
      return std::string_view(other->domain_attr->name) == info->domain_attr->name;
    };
    const bool is_other_fabric =
        !found.empty() && std::string_view(found[0]->fabric_attr->name) != info->fabric_attr->name;
    if (is_other_fabric || std::any_of(found.begin(), found.end(), is_same)) continue;
    found.emplace_back(fi_dupinfo(info));
    if (found.back() == nullptr) throw Error(Status::no_resource, "out of memory");
  }
  return found.empty() ? reason : std::string();
}

/// The providers that are compiled in or can be loaded, with or without a device.
std::vector<std::string> built_in(const Api& api) {
  std::vector<std::string> names;
  fi_info* first = nullptr;
  if (api.get_info(kVersion, nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &first) != 0) return names;
  const Info all(first);
  for (const fi_info* info = first; info != nullptr; info = info->next) {
    names.emplace_back(info->fabric_attr->prov_name);
  }
  return names;
}

/// Whether every layer of "tcp;ofi_rxm" is among the names.
bool has_layers(const std::vector<std::string>& names, std::string_view provider) {
  return std::ranges::all_of(split(provider, ';'),
                             [&](std::string_view layer) { return std::ranges::find(names, layer) != names.end(); });
}

/// Tries to open an endpoint of this device.
void try_opening(const Api& api, fi_info& device, ProviderReport& result) {
  try {
    const Endpoint opened(std::make_shared<Device>(api, device), 1, true);
  } catch (const Error& error) {
    result.reason = error.what();
    result.fails = error.status() != Status::unsupported;
  }
}

/// `opens`: a provider counts as usable only if an endpoint can be opened.
ProviderReport report(const Api& api, const std::vector<std::string>& names, std::string_view provider,
                      const std::vector<std::string>& source_addresses, bool opens) {
  ProviderReport result;
  result.name = provider;
  if (!has_layers(names, provider)) {
    result.reason = "this libfabric has no such provider, or none that finds its device";
    return result;
  }
  const std::vector<std::string> any = {""};
  std::vector<Info> devices;
  for (const std::string& source : source_addresses.empty() ? any : source_addresses) {
    result.reason = ask(api, result.name, source, devices);
    if (!result.reason.empty()) return result;
  }
  if (opens) try_opening(api, *devices.front(), result);
  result.usable = result.reason.empty();
  const fi_info& first = *devices.front();
  if (Device::pins(first)) result.pinning = Device::is_shareable(first) ? transports::kPinsOnce : transports::kPinsEach;
  for (const Info& device : devices) result.devices.emplace_back(device->domain_attr->name);
  return result;
}

/// The function that is returned refers to its arguments. `opens`: providers are opened until one could be.
transports::ReportOn report_on(const Api& api, const std::vector<std::string>& source_addresses, bool opens) {
  return [&, opens](std::span<const std::string_view> providers) {
    const std::vector<std::string> names = built_in(api);
    std::vector<ProviderReport> reports;
    bool is_chosen = !opens;
    for (const std::string_view provider : providers) {
      reports.push_back(report(api, names, provider, source_addresses, !is_chosen));
      is_chosen = is_chosen || reports.back().usable || reports.back().fails;
    }
    return reports;
  };
}

}  // namespace

/// The environment is restored afterwards. libfabric's memory hooks stay off unless the user has set them.
///
/// ofi_rxm makes a thousand buffers for messages, twice per engine, and touches them all. With the default of 16 KiB
/// each that is 34 MB, and most of the time of opening an engine. torii sends no messages.
///
/// ofi_rxm opens one queue per engine, with room for 128 sends and 128 receives of FI_UNIVERSE_SIZE peers. Its default
/// is 1024 peers, too many for some devices: rxe has queues of 32767 entries, and nothing tells the limit before.
/// libfabric 1.17 reserves the receives of each connection. With twice as many peers nothing is left for sends, and the
/// engines greet in vain; 2.x reserves nothing, so a queue may overflow. A larger job therefore asks for more, which a
/// device refuses or has. A later and larger context of a process needs the user's FI_UNIVERSE_SIZE.
void start_quietly(const Api& api, int ranks) {
  static std::once_flag once;
  std::call_once(once, [&api, ranks] {
    const std::string peers = std::to_string(std::max(ranks, kPeersLeast));
    const transports::EnvironmentMeanwhile quiet(
        {{"FI_MR_CACHE_MONITOR", "disabled"}, {"FI_OFI_RXM_BUFFER_SIZE", "1024"}, {"FI_UNIVERSE_SIZE", peers.c_str()}});
    fi_info* all = nullptr;
    if (api.get_info(kVersion, nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &all) == 0) fi_freeinfo(all);
  });
}

bool is_over_ip(std::string_view provider) {
  constexpr std::string_view kOverIp[] = {"tcp", "net", "sockets", "udp", "verbs"};
  const std::string_view lowest = provider.substr(0, provider.find(';'));
  return std::ranges::find(kOverIp, lowest) != std::end(kOverIp);
}

bool listens_on_tcp(std::string_view provider, std::uint32_t address_format) {
  constexpr std::string_view kListening[] = {"tcp", "net", "sockets"};
  const std::string_view lowest = provider.substr(0, provider.find(';'));
  return (address_format == FI_SOCKADDR_IN || address_format == FI_SOCKADDR_IN6) &&
         std::ranges::find(kListening, lowest) != std::end(kListening);
}

std::vector<ProviderReport> list_providers(const Api& api, const std::vector<std::string>& source_addresses) {
  start_quietly(api, 1);
  return transports::list_providers(kKnown, report_on(api, source_addresses, true));
}

std::vector<std::string> usable_providers(Bootstrap& bootstrap, const Api& api, const std::string& wanted,
                                          const std::vector<std::string>& source_addresses) {
  return transports::usable_providers(bootstrap, wanted, kKnown, report_on(api, source_addresses, false));
}

std::vector<Info> find_devices(const Api& api, const std::string& provider, const std::string& source_address) {
  start_quietly(api, 1);
  std::vector<Info> devices;
  const std::string reason = ask(api, provider, source_address, devices);
  if (devices.empty()) throw Error(Status::unsupported, "TORII_PROVIDER '" + provider + "': " + reason);
  return devices;
}

}  // namespace torii::libfabric
