// SPDX-License-Identifier: Apache-2.0
// Chooses among the transports and devices that UCX finds here.
#include "transports/ucx/providers.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"
#include "transports/network/providers.hpp"
#include "transports/ucx/api.hpp"

namespace torii::ucx {
namespace {

constexpr std::string_view kPreference[] = {"ib", "tcp"};
/// These work within one machine, where torii's shared memory is faster; used only by name.
constexpr std::string_view kByNameOnly[] = {"posix", "posix;cma"};
constexpr transports::KnownProviders kKnown = {kPreference, kByNameOnly, "ucx_info -d"};
constexpr std::string_view kLoopback = "lo";

/// The words of "posix;cma".
std::vector<std::string> words_of_provider(std::string_view provider) {
  std::vector<std::string> words;
  for (const std::string_view word : split(provider, ';')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

/// The word that UCX gets. Its reliable transports connect by messages of an unreliable one, which must be in the list,
/// too; the short names stand for both.
std::string with_auxiliary(const std::string& word) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"rc_verbs", "rc_v"}, {"rc_mlx5", "rc_x"}, {"dc_mlx5", "dc_x"}};
  const auto* const found = std::ranges::find(kShort, word, [](const auto& pair) { return pair.first; });
  return found == std::end(kShort) ? word : std::string(found->second);
}

/// Whether one name of a list such as "rc,tcp" matches.
template <class Matches>
bool any_of_list(std::string_view list, const Matches& matches) {
  return std::ranges::any_of(split(list, ','), matches);
}

/// The resource of one word on the interface; without an interface the first that is not the loopback, or else the
/// loopback.
const Resource* find_resource(const std::vector<Resource>& all, const std::string& word, const std::string& interface) {
  const Resource* loopback = nullptr;
  for (const Resource& resource : all) {
    if (!is_of(resource, word)) continue;
    if (!resource.is_network) return &resource;
    if (interface.empty() && resource.name == kLoopback) loopback = &resource;
    if (interface.empty() ? resource.name != kLoopback : stands_on(resource, interface)) return &resource;
  }
  return loopback;
}

/// True for an InfiniBand or RoCE device for which UCX has no transports of its own, but those of the verbs library.
bool is_plain_verbs(const std::vector<Resource>& all, const Resource& resource) {
  const auto is_of_mlx5 = [&](const Resource& one) {
    return one.name == resource.name && one.transport.ends_with("_mlx5");
  };
  return resource.component == "ib" && std::ranges::none_of(all, is_of_mlx5);
}

/// True if the selection may use the resource.
bool is_in(const Selection& selection, const Resource& resource) {
  return any_of_list(selection.transports, [&](std::string_view word) { return is_of(resource, word); }) &&
         (!resource.is_network ||
          any_of_list(selection.devices, [&](std::string_view name) { return resource.name == name; }));
}

void add_abilities(std::vector<Selection>& selections) {
  const std::vector<Resource> opened = list_resources([&](const Resource& resource) {
    return std::any_of(selections.begin(), selections.end(),
                       [&](const Selection& selection) { return is_in(selection, resource); });
  });
  for (Selection& selection : selections) {
    selection.abilities.peer_errors = true;
    for (const Resource& resource : opened) {
      if (!is_in(selection, resource)) continue;
      selection.abilities.messages = selection.abilities.messages || resource.abilities.messages;
      selection.abilities.puts = selection.abilities.puts || resource.abilities.puts;
      selection.abilities.peer_errors = selection.abilities.peer_errors && resource.abilities.peer_errors;
    }
  }
}

/// The interface of each address; "" alone without addresses. Returns the reason if that is not possible, or nothing.
std::string find_interfaces(const std::vector<std::string>& source_addresses, std::vector<std::string>& interfaces) {
  for (const std::string& source : source_addresses) {
    interfaces.push_back(interface_of(source));
    if (interfaces.back().empty()) return "no interface here has the address " + source;
  }
  if (interfaces.empty()) interfaces.emplace_back();
  return {};
}

/// As select(), by addresses.
std::string find(const std::vector<Resource>& all, const std::string& provider,
                 const std::vector<std::string>& source_addresses, std::vector<Selection>& selections) {
  std::vector<std::string> interfaces;
  const std::string reason = find_interfaces(source_addresses, interfaces);
  return reason.empty() ? select(all, provider, interfaces, selections) : reason;
}

/// Builds of UCX without locks cannot.
bool may_share_devices() {
  ucp_lib_attr_t library{};
  library.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL;
  return ucp_lib_query(&library) == UCS_OK && library.max_thread_level == UCS_THREAD_MODE_MULTI;
}

ProviderReport report(const std::vector<Resource>& all, std::string_view provider,
                      const std::vector<std::string>& source_addresses) {
  ProviderReport result;
  result.name = provider;
  std::vector<Selection> selections;
  result.reason = find(all, result.name, source_addresses, selections);
  result.usable = result.reason.empty();
  if (result.usable && std::ranges::any_of(selections, pins_memory)) {
    result.pinning = may_share_devices() ? transports::kPinsOnce : transports::kPinsEach;
  }
  for (const Selection& selection : selections) {
    if (result.usable && !selection.devices.empty()) result.devices.push_back(selection.devices);
  }
  return result;
}

std::vector<Resource> all_resources() {
  return list_resources([](const Resource&) { return false; });
}

/// The function that is returned refers to the addresses.
transports::ReportOn report_on(const std::vector<std::string>& source_addresses) {
  return [&](std::span<const std::string_view> providers) {
    const std::vector<Resource> all = all_resources();
    std::vector<ProviderReport> reports;
    for (const std::string_view provider : providers) reports.push_back(report(all, provider, source_addresses));
    return reports;
  };
}

}  // namespace

bool pins_memory(const Selection& selection) {
  constexpr std::string_view kPinNothing[] = {"tcp", "posix", "sysv", "cma"};
  return std::ranges::any_of(selection.components, [&](const std::string& component) {
    return std::ranges::find(kPinNothing, component) == std::end(kPinNothing);
  });
}

std::string select(const std::vector<Resource>& all, const std::string& provider,
                   const std::vector<std::string>& interfaces, std::vector<Selection>& selections) {
  const std::vector<std::string> words = words_of_provider(provider);
  if (words.empty()) return "it names no transport";
  for (const std::string& interface : interfaces) {
    Selection selection;
    for (const std::string& word : words) {
      const auto is_known = [&](const Resource& resource) { return is_of(resource, word); };
      if (std::none_of(all.begin(), all.end(), is_known)) {
        return "this UCX has no transport '" + word + "', or none that finds its device or is allowed to use it";
      }
      const Resource* const resource = find_resource(all, word, interface);
      if (resource == nullptr) return "its transport '" + word + "' has no device on interface " + interface;
      if (!selection.transports.empty()) selection.transports += ",";
      selection.transports += with_auxiliary(word);
      selection.components.push_back(resource->component);
      const auto is_it = [&](std::string_view name) { return resource->name == name; };
      const bool is_new = resource->is_network && !any_of_list(selection.devices, is_it);
      if (is_new) selection.devices += (selection.devices.empty() ? "" : ",") + resource->name;
      selection.is_plain_verbs = selection.is_plain_verbs || is_plain_verbs(all, *resource);
    }
    selections.push_back(std::move(selection));
  }
  return {};
}

std::vector<ProviderReport> list_providers(const std::vector<std::string>& source_addresses) {
  return transports::list_providers(kKnown, report_on(source_addresses));
}

std::string choose_provider(Bootstrap& bootstrap, const std::string& wanted,
                            const std::vector<std::string>& source_addresses) {
  return transports::choose_provider(bootstrap, wanted, kKnown, report_on(source_addresses));
}

std::vector<Selection> find_selections(const std::string& provider, const std::vector<std::string>& source_addresses) {
  std::vector<Selection> selections;
  const std::string reason = find(all_resources(), provider, source_addresses, selections);
  if (!reason.empty()) throw Error(Status::unsupported, "TORII_PROVIDER '" + provider + "': " + reason);
  for (std::size_t source = 0; source < source_addresses.size(); ++source) {
    Selection& selection = selections[source];
    // UCX takes one number for all ports.
    if (selection.devices.find(',') != std::string::npos) continue;
    selection.gid_index = gid_index(selection.devices, source_addresses[source]);
  }
  add_abilities(selections);
  for (const Selection& selection : selections) {
    if (selection.abilities.messages) continue;
    throw Error(Status::unsupported, "TORII_PROVIDER '" + provider +
                                         "': none of its transports carries active messages; name one beside it, such "
                                         "as posix or tcp");
  }
  return selections;
}

}  // namespace torii::ucx
