// SPDX-License-Identifier: Apache-2.0
// Asks the lower layer of UCX (uct) for its transports.
#include "transports/ucx/resources.hpp"

#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "runtime/base/text_file.hpp"
#include "runtime/devices/address.hpp"
#include "transports/ucx/api.hpp"

namespace torii::ucx {
namespace {

/// Opens the transport on its device. All abilities are false if that fails.
Abilities ask(uct_md_h domain, const uct_md_attr_t& attributes, const Resource& resource) {
  Abilities abilities;
  ucs_async_context_t* async = nullptr;
  if (ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async) != UCS_OK) return abilities;
  const Owner<ucs_async_context_t*, ucs_async_context_destroy> async_owner(async);
  uct_worker_h worker = nullptr;
  if (uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker) != UCS_OK) return abilities;
  const Owner<uct_worker_h, uct_worker_destroy> worker_owner(worker);
  uct_iface_config_t* config = nullptr;
  if (uct_md_iface_config_read(domain, resource.transport.c_str(), nullptr, nullptr, &config) != UCS_OK)
    return abilities;
  // The same as in the engine; UCS_ERR_NO_ELEM if the transport has no such setting.
  (void)uct_config_modify(config, "MM_ERROR_HANDLING", "y");
  uct_iface_params_t how{};
  how.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
  how.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
  how.mode.device.tl_name = resource.transport.c_str();
  how.mode.device.dev_name = resource.name.c_str();
  uct_iface_h opened = nullptr;
  const ucs_status_t status = uct_iface_open(domain, worker, &how, config, &opened);
  uct_config_release(config);
  if (status != UCS_OK) return abilities;
  const Owner<uct_iface_h, uct_iface_close> owner(opened);
  uct_iface_attr_t found{};
  if (uct_iface_query(opened, &found) != UCS_OK) return abilities;
  // The abilities that ucp requires of a transport for puts without the peer's CPU.
  constexpr auto kPuts = UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_GET_BCOPY;
  abilities.messages = (found.cap.flags & UCT_IFACE_FLAG_AM_BCOPY) != 0;
  abilities.puts = (found.cap.flags & kPuts) == kPuts && (attributes.cap.flags & UCT_MD_FLAG_REG) != 0;
  abilities.peer_errors = (found.cap.flags & UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE) != 0;
  return abilities;
}

void list_domain(uct_component_h component, const std::string& component_name, const char* domain_name,
                 const std::function<bool(const Resource&)>& opens, std::vector<Resource>& found) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  uct_md_h domain = nullptr;
  const ucs_status_t status = uct_md_open(component, domain_name, config, &domain);
  uct_config_release(config);
  if (status != UCS_OK) return;
  const Owner<uct_md_h, uct_md_close> owner(domain);
  uct_md_attr_t attributes{};
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query(domain, &attributes) != UCS_OK) return;
  if (uct_md_query_tl_resources(domain, &resources, &count) != UCS_OK) return;
  const std::unique_ptr<uct_tl_resource_desc_t, GiveBack<uct_release_tl_resource_list>> list(resources);
  for (unsigned i = 0; i < count; ++i) {
    Resource resource{
        component_name, resources[i].tl_name, resources[i].dev_name, resources[i].dev_type == UCT_DEVICE_TYPE_NET, {}};
    if (opens(resource)) resource.abilities = ask(domain, attributes, resource);
    found.push_back(std::move(resource));
  }
}

/// "mlx5_0:1" has its folder in that of the adapter.
struct PortPlace {
  std::filesystem::path adapter;
  std::string port;
  std::filesystem::path folder() const { return adapter / "ports" / port; }
};

PortPlace place_of(const std::string& name, const std::string& sysfs) {
  const std::size_t colon = name.find(':');
  const auto adapters = std::filesystem::path(sysfs) / "class/infiniband";
  return {adapters / name.substr(0, colon), colon == std::string::npos ? "" : name.substr(colon + 1)};
}

/// As the kernel writes it: "0000:0000:0000:0000:0000:ffff:0a00:0001".
std::string gid_of(const std::string& address) {
  const Address parsed = Address::parse(address, 0);
  std::string number(parsed.number());
  if (parsed.family() == AF_INET) number.insert(0, std::string(10, '\0') + "\xff\xff");
  std::string text;
  for (std::size_t at = 0; at < number.size(); ++at) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(number[at]);
    if (at != 0 && at % 2 == 0) text += ':';
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text;
}

/// True if an address of the interface is one of the port's. So RoCE names its interfaces: the adapter's own, VLANs and
/// bonds above it, and those under a device of software (rxe).
bool has_address_of(const std::filesystem::path& port, const std::string& interface) {
  std::error_code ignored;
  const std::filesystem::directory_iterator entries(port / "gid_attrs/ndevs", ignored);
  // Most entries are empty, and the kernel lets nobody read those.
  return std::any_of(begin(entries), end(entries),
                     [&](const auto& entry) { return first_line(entry.path()) == interface; });
}

/// True if the adapter's driver made the interface for this port. Addresses of InfiniBand name none, so nothing else
/// tells whose the interface of IP over InfiniBand is.
bool made(const PortPlace& place, const std::filesystem::path& interface) {
  std::error_code ignored;
  if (!std::filesystem::exists(place.adapter / "device/net" / interface.filename(), ignored)) return false;
  // Interfaces count the ports of an adapter from 0, InfiniBand from 1.
  return place.port == std::to_string(first_value<int>(interface / "dev_port").value_or(0) + 1);
}

}  // namespace

std::vector<Resource> list_resources(const std::function<bool(const Resource& resource)>& opens) {
  std::vector<Resource> found;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  check(uct_query_components(&components, &count), "asking for components");
  const std::unique_ptr<uct_component_h, GiveBack<uct_release_component_list>> list(components);
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t about{};
    about.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(components[i], &about) != UCS_OK) continue;
    std::vector<uct_md_resource_desc_t> domains(about.md_resource_count);
    about.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    about.md_resources = domains.data();
    if (domains.empty() || uct_component_query(components[i], &about) != UCS_OK) continue;
    for (const uct_md_resource_desc_t& domain : domains) {
      list_domain(components[i], about.name, domain.md_name, opens, found);
    }
  }
  return found;
}

bool is_of(const Resource& resource, std::string_view word) {
  if (resource.transport == word || resource.component == word) return true;
  // UCX's groups: rc for rc_verbs and rc_mlx5, rc_v and rc_x for one of them; likewise ud and dc.
  const std::size_t under = resource.transport.find('_');
  if (under == std::string::npos || resource.component != "ib") return false;
  const std::string_view family = std::string_view(resource.transport).substr(0, under);
  const std::string_view kind = std::string_view(resource.transport).substr(under + 1);
  if (word == family) return true;
  return (kind == "verbs" && word == std::string(family) + "_v") ||
         (kind == "mlx5" && word == std::string(family) + "_x");
}

std::string interface_of(const std::string& address) {
  for (const Interface& one : interfaces_of_host()) {
    if (one.address.host() == address) return one.name;
  }
  return {};
}

bool stands_on(const Resource& resource, const std::string& interface, const std::string& sysfs) {
  if (resource.name == interface) return true;
  const PortPlace place = place_of(resource.name, sysfs);
  return made(place, std::filesystem::path(sysfs) / "class/net" / interface) ||
         has_address_of(place.folder(), interface);
}

std::string gid_index(const std::string& port, const std::string& address, const std::string& sysfs) {
  const auto folder = place_of(port, sysfs).folder();
  const std::string gid = gid_of(address);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "gids", ignored)) {
    const auto number = entry.path().filename();
    if (first_line(entry.path()) == gid && first_line(folder / "gid_attrs/types" / number) == "RoCE v2") return number;
  }
  return {};
}

}  // namespace torii::ucx
