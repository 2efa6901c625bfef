// SPDX-License-Identifier: Apache-2.0
// The layer's doors, and the objects that say what a device wants: descriptions, domains, regions.
#include "tests/fabric/imposed_modes.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "tests/fabric/imposed_objects.hpp"

namespace torii::tests {
namespace {

using libfabric::Info;

Modes imposed;
std::mutex imposed_mutex;

Modes current_modes() {
  const std::lock_guard lock(imposed_mutex);
  return imposed;
}

constexpr const char* kBelow = "tcp;ofi_rxm";

bool is_called(const fi_fabric_attr* attributes, const char* name) {
  return attributes->prov_name != nullptr && std::string_view(attributes->prov_name) == name;
}

void call(fi_fabric_attr& attributes, const char* name) {
  std::free(attributes.prov_name);
  attributes.prov_name = strdup(name);
}

int open_addresses(fid_domain* base, fi_av_attr* attributes, fid_av** opened, void* context) {
  return fi_av_open(reinterpret_cast<Domain*>(base)->newest(), attributes, opened, context);
}

void publish_key(Region& region) {
  const auto base = reinterpret_cast<std::uintptr_t>(region.base);
  region.fid.key = region.modes.keys_by_provider ? base | region.real_key : region.real_key;
}

int bind_region(fid* base, fid* other, std::uint64_t) {
  demand(other->fclass == FI_CLASS_EP, "a region is bound to an endpoint");
  reinterpret_cast<Region*>(base)->bound = true;
  return 0;
}

int close_region(fid* base) {
  for (fid_mr* const other : reinterpret_cast<Region*>(base)->others) demand(fi_close(&other->fid) == 0, "it closes");
  return close_object<Region>(base);
}

int close_domain(fid* base) {
  for (fid_domain* const other : reinterpret_cast<Domain*>(base)->others) {
    demand(fi_close(&other->fid) == 0, "all objects of a domain are closed before it");
  }
  return close_object<Domain>(base);
}

int control_region(fid* base, int command, void*) {
  auto& region = *reinterpret_cast<Region*>(base);
  demand(command == FI_ENABLE && region.bound, "a region is enabled after it was bound");
  publish_key(region);
  return 0;
}

int register_region(fid* base, const void* buffer, std::size_t bytes, std::uint64_t access, std::uint64_t offset,
                    std::uint64_t key, std::uint64_t flags, fid_mr** opened, void* context) {
  auto& domain = *reinterpret_cast<Domain*>(base);
  if (const int code = current_modes().registering_code; code != 0) return code;
  demand(reinterpret_cast<std::uintptr_t>(buffer) % kPage == 0, "this layer wants regions of whole pages");
  const std::uint64_t real_key = domain.modes.keys_by_provider ? ++domain.keys : key;
  if (domain.modes.short_keys) {
    demand(key <= UINT8_MAX, "keys have one byte");
    if (++domain.keys % 2 != 0) return -FI_ENOKEY;
  }
  fid_mr* real = nullptr;
  const int code = fi_mr_reg(domain.real, buffer, bytes, access, offset, real_key, flags, &real, context);
  if (code != 0) return code;
  auto* const region = wrap<Region>(real);
  region->ops.close = close_region;
  for (fid_domain* const other : domain.others) {
    demand(
        fi_mr_reg(other, buffer, bytes, access, offset, real_key, flags, &region->others.emplace_back(), context) == 0,
        "a key that is free in one domain is free in all");
  }
  count_registered(buffer, bytes);
  region->modes = domain.modes;
  region->ops.bind = bind_region;
  region->ops.control = control_region;
  region->base = static_cast<std::byte*>(const_cast<void*>(buffer));
  region->bytes = bytes;
  region->real_key = real_key;
  region->fid.mem_desc = region;
  region->fid.key = FI_KEY_NOTAVAIL;
  if (!domain.modes.regions_of_engine) publish_key(*region);
  *opened = &region->fid;
  return 0;
}

int open_domain(fid_fabric* base, fi_info* info, fid_domain** opened, void* context) {
  auto& fabric = *reinterpret_cast<Fabric*>(base);
  Info real_info = describe_real(info);
  fid_domain* real = nullptr;
  const int code = fi_domain(fabric.real, real_info.get(), &real, context);
  if (code != 0) return code;
  auto* const domain = wrap<Domain>(real);
  domain->real_info = std::move(real_info);
  domain->ops.close = close_domain;
  domain->modes = fabric.modes;
  domain->fabric = &fabric;
  domain->domain_ops.size = sizeof(fi_ops_domain);
  domain->domain_ops.av_open = open_addresses;
  domain->domain_ops.cq_open = open_queue;
  domain->domain_ops.endpoint = open_endpoint;
  domain->mr_ops.size = sizeof(fi_ops_mr);
  domain->mr_ops.reg = register_region;
  domain->fid.ops = &domain->domain_ops;
  domain->fid.mr = &domain->mr_ops;
  *opened = &domain->fid;
  return 0;
}

int try_wait(fid_fabric* base, fid** waited, int count) {
  std::vector<fid*> real;
  for (int i = 0; i < count; ++i) {
    auto& queue = *reinterpret_cast<Queue*>(waited[i]);
    if (!queue.endpoint->held.empty() || !queue.unmatched.empty()) return -FI_EAGAIN;
    real.push_back(&queue.real->fid);
  }
  return fi_trywait(reinterpret_cast<Fabric*>(base)->real, real.data(), count);
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** opened, void* context) {
  const Modes modes = current_modes();
  if (modes.as_verbs && !is_called(attributes, provider_of(modes))) return fi_fabric(attributes, opened, context);
  fi_fabric_attr below = *attributes;
  std::string name = kBelow;
  below.prov_name = name.data();
  fid_fabric* real = nullptr;
  const int code = fi_fabric(&below, &real, context);
  if (code != 0) return code;
  auto* const fabric = wrap<Fabric>(real);
  fabric->modes = modes;
  fabric->fabric_ops.size = sizeof(fi_ops_fabric);
  fabric->fabric_ops.domain = open_domain;
  fabric->fabric_ops.trywait = try_wait;
  fabric->fid.ops = &fabric->fabric_ops;
  *opened = &fabric->fid;
  return 0;
}

/// Adds a provider to a list of names.
void add_name(const char* name, fi_info** names) {
  fi_info* const added = fi_dupinfo(*names);
  call(*added->fabric_attr, name);
  added->next = *names;
  *names = added;
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             fi_info** found) {
  const Modes modes = current_modes();
  if (hints == nullptr) {
    const int code = fi_getinfo(version, node, service, flags, hints, found);
    if (code == 0 && modes.as_verbs) add_name("verbs", found);
    return code;
  }
  if (modes.as_verbs && !is_called(hints->fabric_attr, provider_of(modes))) {
    return fi_getinfo(version, node, service, flags, hints, found);
  }
  const Info below(fi_dupinfo(hints));
  call(*below->fabric_attr, kBelow);
  const int code = fi_getinfo(version, node, service, flags, below.get(), found);
  if (code != 0) return code;
  for (fi_info* info = *found; info != nullptr; info = info->next) {
    if (modes.as_verbs && is_called(info->fabric_attr, kBelow)) call(*info->fabric_attr, provider_of(modes));
    info->domain_attr->cq_data_size = 4;
    if (modes.receives_for_data) info->mode |= FI_RX_CQ_DATA;
    if (modes.keys_by_provider) info->domain_attr->mr_mode |= FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    if (modes.short_keys) info->domain_attr->mr_key_size = 1;
    if (modes.regions_of_engine) info->domain_attr->mr_mode |= FI_MR_ENDPOINT;
    if (modes.local_regions) info->domain_attr->mr_mode |= FI_MR_LOCAL;
    if (modes.pins) info->domain_attr->mr_mode |= FI_MR_ALLOCATED;
    if (modes.no_inject) info->tx_attr->inject_size = 0;
    if (!modes.unordered) continue;
    info->tx_attr->msg_order = 0;
    info->rx_attr->msg_order = 0;
    info->ep_attr->max_order_waw_size = 0;
  }
  return 0;
}

}  // namespace

Info describe_real(const fi_info* info) {
  Info real(fi_dupinfo(info));
  real->mode = 0;
  real->domain_attr->mr_mode = 0;
  call(*real->fabric_attr, kBelow);
  return real;
}

Modes verbs_modes() {
  Modes verbs;
  verbs.keys_by_provider = verbs.local_regions = verbs.pins = verbs.receives_for_data = verbs.busy = true;
  return verbs;
}

Modes named_verbs_modes() {
  Modes named = verbs_modes();
  named.as_verbs = true;
  return named;
}

std::vector<std::pair<std::string, Modes>> imposed_modes() {
  const Modes verbs = verbs_modes();
  Modes efa = verbs;
  efa.unordered = true;
  Modes cxi;
  cxi.short_keys = cxi.regions_of_engine = cxi.unordered = cxi.busy = true;
  Modes all = efa;
  all.regions_of_engine = all.no_inject = all.busy = true;
  return {{"like_verbs", named_verbs_modes()}, {"like_efa", efa}, {"like_cxi", cxi}, {"all_modes", all}};
}

void refuse_registrations(int code) {
  const std::lock_guard lock(imposed_mutex);
  imposed.registering_code = code;
}

libfabric::Api impose(const Modes& modes) {
  const std::lock_guard lock(imposed_mutex);
  imposed = modes;
  forget_registrations();
  return {get_info, open_fabric};
}

}  // namespace torii::tests
