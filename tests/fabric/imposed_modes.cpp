// SPDX-License-Identifier: Apache-2.0
// The layer: objects of libfabric whose functions check, hold back, shuffle, and pass on to the tcp provider's objects.
#include "tests/fabric/imposed_modes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <set>

namespace torii::tests {
namespace {

using libfabric::Info;

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kHeldMost = 24;

Modes imposed;
std::mutex imposed_mutex;

Modes current_modes() {
  const std::lock_guard lock(imposed_mutex);
  return imposed;
}

void demand(bool kept, const char* rule) {
  if (kept) return;
  std::fprintf(stderr, "imposed modes: %s\n", rule);
  std::abort();
}

struct Endpoint;

struct Region {
  fid_mr fid;  // first, as in all objects here: libfabric's inline functions find the rest by it
  fi_ops ops;
  fid_mr* real;
  Modes modes;
  std::byte* base;
  std::size_t bytes;
  std::uint64_t real_key;
  bool bound = false;
};

struct Queue {
  fid_cq fid;
  fi_ops ops;
  fi_ops_cq queue_ops;
  fid_cq* real;
  Endpoint* endpoint = nullptr;
  std::deque<fi_cq_data_entry> unmatched;  ///< notices for which no receive was posted
};

/// A write as the caller posted it.
struct Write {
  std::vector<std::byte> injected;
  const void* source;
  std::size_t bytes;
  fi_addr_t to;
  std::uint64_t address;
  std::uint64_t key;
  std::uint64_t data;
  std::uint64_t flags;  ///< FI_INJECT, FI_REMOTE_CQ_DATA, FI_DELIVERY_COMPLETE
  void* context;
};

struct Endpoint {
  fid_ep fid;
  fi_ops ops;
  fi_ops_rma rma_ops;
  fi_ops_msg msg_ops;
  fi_ops_cm cm_ops;
  fid_ep* real;
  Queue* queue = nullptr;
  Modes modes;
  std::mt19937 random{7};
  std::vector<Write> held;
  std::deque<void*> receives;
  std::set<fi_addr_t> reached;  ///< peers that have taken a write
};

struct Domain {
  fid_domain fid;
  fi_ops ops;
  fi_ops_domain domain_ops;
  fi_ops_mr mr_ops;
  fid_domain* real;
  Modes modes;
  std::uint64_t keys = 0;
};

struct Fabric {
  fid_fabric fid;
  fi_ops ops;
  fi_ops_fabric fabric_ops;
  fid_fabric* real;
  Modes modes;
};

template <class Object>
int close_object(fid* base) {
  auto* const object = reinterpret_cast<Object*>(base);
  const int code = fi_close(&object->real->fid);
  delete object;
  return code;
}

/// Makes an object around a real one.
template <class Object, class Real>
Object* wrap(Real* real) {
  auto* const object = new Object{};
  object->real = real;
  object->fid.fid = real->fid;
  object->ops.size = sizeof(fi_ops);
  object->ops.close = close_object<Object>;
  object->fid.fid.ops = &object->ops;
  return object;
}

ssize_t pass_on(Endpoint& endpoint, const Write& write) {
  const void* const source = write.injected.empty() ? write.source : write.injected.data();
  std::uint64_t address = write.address;
  std::uint64_t key = write.key;
  if (endpoint.modes.keys_by_provider) {
    // Such a key is the region's first page, with the real key below.
    address -= key & ~(kPage - 1);
    key &= kPage - 1;
  }
  const bool has_data = (write.flags & FI_REMOTE_CQ_DATA) != 0;
  if ((write.flags & FI_INJECT) != 0) {
    return has_data ? fi_inject_writedata(endpoint.real, source, write.bytes, write.data, write.to, address, key)
                    : fi_inject_write(endpoint.real, source, write.bytes, write.to, address, key);
  }
  iovec from = {const_cast<void*>(source), write.bytes};
  fi_rma_iov to = {address, write.bytes, key};
  void* descriptor = nullptr;
  const fi_msg_rma message = {&from, &descriptor, 1, write.to, &to, 1, write.context, write.data};
  return fi_writemsg(endpoint.real, &message,
                     FI_COMPLETION | (write.flags & (FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE)));
}

void release_held(Endpoint& endpoint) {
  std::shuffle(endpoint.held.begin(), endpoint.held.end(), endpoint.random);
  std::erase_if(endpoint.held, [&](const Write& write) {
    const ssize_t code = pass_on(endpoint, write);
    demand(code == 0 || code == -FI_EAGAIN, "a held write failed");
    return code == 0;
  });
}

ssize_t post(Endpoint& endpoint, Write write, void* descriptor) {
  demand((write.flags & FI_REMOTE_CQ_DATA) == 0 || write.data <= UINT32_MAX, "data must fit into 4 bytes");
  if ((write.flags & FI_INJECT) != 0) {
    demand(!endpoint.modes.no_inject, "nothing may be injected");
  } else if (endpoint.modes.local_regions) {
    demand(descriptor != nullptr, "a source must be registered");
    const auto& region = *static_cast<const Region*>(descriptor);
    const auto* const source = static_cast<const std::byte*>(write.source);
    demand(source >= region.base && source + write.bytes <= region.base + region.bytes, "a source is outside its region");
  }
  if (endpoint.modes.busy && endpoint.random() % 4 == 0) return -FI_EAGAIN;
  // Nothing is held back before the connection stands: devices have none, and a write that they took leaves.
  if (!endpoint.modes.unordered || !endpoint.reached.contains(write.to)) {
    const ssize_t code = pass_on(endpoint, write);
    if (code == 0) endpoint.reached.insert(write.to);
    return code;
  }
  if (endpoint.held.size() >= kHeldMost) return -FI_EAGAIN;
  if ((write.flags & FI_INJECT) != 0) {
    const auto* const source = static_cast<const std::byte*>(write.source);
    write.injected.assign(source, source + write.bytes);
  }
  endpoint.held.push_back(std::move(write));
  return 0;
}

Endpoint& endpoint_of(fid_ep* base) { return *reinterpret_cast<Endpoint*>(base); }

ssize_t write_plain(fid_ep* base, const void* source, std::size_t bytes, void* descriptor, fi_addr_t to,
                    std::uint64_t address, std::uint64_t key, void* context) {
  return post(endpoint_of(base), {{}, source, bytes, to, address, key, 0, 0, context}, descriptor);
}

ssize_t write_data(fid_ep* base, const void* source, std::size_t bytes, void* descriptor, std::uint64_t data,
                   fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) {
  return post(endpoint_of(base), {{}, source, bytes, to, address, key, data, FI_REMOTE_CQ_DATA, context}, descriptor);
}

ssize_t write_message(fid_ep* base, const fi_msg_rma* message, std::uint64_t flags) {
  return post(endpoint_of(base),
              {{},
               message->msg_iov->iov_base,
               message->msg_iov->iov_len,
               message->addr,
               message->rma_iov->addr,
               message->rma_iov->key,
               message->data,
               flags & (FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE),
               message->context},
              message->desc[0]);
}

ssize_t inject_plain(fid_ep* base, const void* source, std::size_t bytes, fi_addr_t to, std::uint64_t address,
                     std::uint64_t key) {
  return post(endpoint_of(base), {{}, source, bytes, to, address, key, 0, FI_INJECT, nullptr}, nullptr);
}

ssize_t inject_data(fid_ep* base, const void* source, std::size_t bytes, std::uint64_t data, fi_addr_t to,
                    std::uint64_t address, std::uint64_t key) {
  return post(endpoint_of(base), {{}, source, bytes, to, address, key, data, FI_INJECT | FI_REMOTE_CQ_DATA, nullptr},
              nullptr);
}

ssize_t post_receive(fid_ep* base, void*, std::size_t, void* descriptor, fi_addr_t, void* context) {
  Endpoint& endpoint = endpoint_of(base);
  demand(endpoint.modes.receives_for_data, "nobody asked for receives");
  demand(!endpoint.modes.local_regions || descriptor != nullptr, "a receive must be registered");
  if (endpoint.modes.busy && endpoint.random() % 4 == 0) return -FI_EAGAIN;
  endpoint.receives.push_back(context);
  return 0;
}

int get_name(fid* base, void* name, std::size_t* bytes) {
  return fi_getname(&reinterpret_cast<Endpoint*>(base)->real->fid, name, bytes);
}

int bind_endpoint(fid* base, fid* other, std::uint64_t flags) {
  auto& endpoint = *reinterpret_cast<Endpoint*>(base);
  if (other->fclass != FI_CLASS_CQ) return fi_ep_bind(endpoint.real, other, flags);
  endpoint.queue = reinterpret_cast<Queue*>(other);
  endpoint.queue->endpoint = &endpoint;
  return fi_ep_bind(endpoint.real, &endpoint.queue->real->fid, flags);
}

int control_endpoint(fid* base, int command, void* argument) {
  fid& real = reinterpret_cast<Endpoint*>(base)->real->fid;
  return real.ops->control(&real, command, argument);
}

int close_endpoint(fid* base) {
  auto* const endpoint = reinterpret_cast<Endpoint*>(base);
  release_held(*endpoint);
  endpoint->queue->endpoint = nullptr;
  return close_object<Endpoint>(base);
}

int open_endpoint(fid_domain* base, fi_info* info, fid_ep** opened, void* context) {
  auto& domain = *reinterpret_cast<Domain*>(base);
  const Info real_info(fi_dupinfo(info));
  real_info->mode = 0;
  real_info->domain_attr->mr_mode = 0;
  fid_ep* real = nullptr;
  const int code = fi_endpoint(domain.real, real_info.get(), &real, context);
  if (code != 0) return code;
  auto* const endpoint = wrap<Endpoint>(real);
  endpoint->modes = domain.modes;
  endpoint->ops.close = close_endpoint;
  endpoint->ops.bind = bind_endpoint;
  endpoint->ops.control = control_endpoint;
  endpoint->rma_ops.size = sizeof(fi_ops_rma);
  endpoint->rma_ops.write = write_plain;
  endpoint->rma_ops.writemsg = write_message;
  endpoint->rma_ops.inject = inject_plain;
  endpoint->rma_ops.writedata = write_data;
  endpoint->rma_ops.injectdata = inject_data;
  endpoint->msg_ops.size = sizeof(fi_ops_msg);
  endpoint->msg_ops.recv = post_receive;
  endpoint->cm_ops.size = sizeof(fi_ops_cm);
  endpoint->cm_ops.getname = get_name;
  endpoint->fid.rma = &endpoint->rma_ops;
  endpoint->fid.msg = &endpoint->msg_ops;
  endpoint->fid.cm = &endpoint->cm_ops;
  *opened = &endpoint->fid;
  return 0;
}

/// Hands out what has come, each notice with the receive that it uses up.
ssize_t read_queue(fid_cq* base, void* buffer, std::size_t count) {
  auto& queue = *reinterpret_cast<Queue*>(base);
  Endpoint& endpoint = *queue.endpoint;
  release_held(endpoint);
  auto* const entries = static_cast<fi_cq_data_entry*>(buffer);
  std::size_t given = 0;
  if (!endpoint.modes.receives_for_data) return fi_cq_read(queue.real, buffer, count);
  std::array<fi_cq_data_entry, 8> fresh;
  const ssize_t got = fi_cq_read(queue.real, fresh.data(), std::min(count, fresh.size()));
  if (got < 0 && got != -FI_EAGAIN) return got;
  for (ssize_t i = 0; i < got; ++i) {
    const fi_cq_data_entry& entry = fresh[static_cast<std::size_t>(i)];
    if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
      queue.unmatched.push_back(entry);
    } else {
      entries[given++] = entry;
    }
  }
  while (given < count && !queue.unmatched.empty() && !endpoint.receives.empty()) {
    entries[given] = queue.unmatched.front();
    entries[given++].op_context = endpoint.receives.front();
    queue.unmatched.pop_front();
    endpoint.receives.pop_front();
  }
  return given == 0 ? -FI_EAGAIN : static_cast<ssize_t>(given);
}

ssize_t read_error(fid_cq* base, fi_cq_err_entry* entry, std::uint64_t flags) {
  return fi_cq_readerr(reinterpret_cast<Queue*>(base)->real, entry, flags);
}

int control_queue(fid* base, int command, void* argument) {
  fid& real = reinterpret_cast<Queue*>(base)->real->fid;
  return real.ops->control(&real, command, argument);
}

int open_queue(fid_domain* base, fi_cq_attr* attributes, fid_cq** opened, void* context) {
  fid_cq* real = nullptr;
  const int code = fi_cq_open(reinterpret_cast<Domain*>(base)->real, attributes, &real, context);
  if (code != 0) return code;
  auto* const queue = wrap<Queue>(real);
  queue->ops.control = control_queue;
  queue->queue_ops.size = sizeof(fi_ops_cq);
  queue->queue_ops.read = read_queue;
  queue->queue_ops.readerr = read_error;
  queue->fid.ops = &queue->queue_ops;
  *opened = &queue->fid;
  return 0;
}

int open_addresses(fid_domain* base, fi_av_attr* attributes, fid_av** opened, void* context) {
  return fi_av_open(reinterpret_cast<Domain*>(base)->real, attributes, opened, context);
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

int control_region(fid* base, int command, void*) {
  auto& region = *reinterpret_cast<Region*>(base);
  demand(command == FI_ENABLE && region.bound, "a region is enabled after it was bound");
  publish_key(region);
  return 0;
}

int register_region(fid* base, const void* buffer, std::size_t bytes, std::uint64_t access, std::uint64_t offset,
                    std::uint64_t key, std::uint64_t flags, fid_mr** opened, void* context) {
  auto& domain = *reinterpret_cast<Domain*>(base);
  demand(reinterpret_cast<std::uintptr_t>(buffer) % kPage == 0, "this layer wants regions of whole pages");
  const std::uint64_t real_key = domain.modes.keys_by_provider ? ++domain.keys : key;
  fid_mr* real = nullptr;
  const int code = fi_mr_reg(domain.real, buffer, bytes, access, offset, real_key, flags, &real, context);
  if (code != 0) return code;
  auto* const region = wrap<Region>(real);
  region->modes = domain.modes;
  region->ops.bind = bind_region;
  region->ops.control = control_region;
  region->base = static_cast<std::byte*>(const_cast<void*>(buffer));
  region->bytes = bytes;
  region->real_key = real_key;
  region->fid.mem_desc = region;
  region->fid.key = FI_KEY_NOTAVAIL;
  if (!domain.modes.regions_of_endpoint) publish_key(*region);
  *opened = &region->fid;
  return 0;
}

int open_domain(fid_fabric* base, fi_info* info, fid_domain** opened, void* context) {
  auto& fabric = *reinterpret_cast<Fabric*>(base);
  const Info real_info(fi_dupinfo(info));
  real_info->mode = 0;
  real_info->domain_attr->mr_mode = 0;
  fid_domain* real = nullptr;
  const int code = fi_domain(fabric.real, real_info.get(), &real, context);
  if (code != 0) return code;
  auto* const domain = wrap<Domain>(real);
  domain->modes = fabric.modes;
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
  fid_fabric* real = nullptr;
  const int code = fi_fabric(attributes, &real, context);
  if (code != 0) return code;
  auto* const fabric = wrap<Fabric>(real);
  fabric->modes = current_modes();
  fabric->fabric_ops.size = sizeof(fi_ops_fabric);
  fabric->fabric_ops.domain = open_domain;
  fabric->fabric_ops.trywait = try_wait;
  fabric->fid.ops = &fabric->fabric_ops;
  *opened = &fabric->fid;
  return 0;
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             fi_info** found) {
  const int code = fi_getinfo(version, node, service, flags, hints, found);
  if (code != 0 || hints == nullptr) return code;
  const Modes modes = current_modes();
  for (fi_info* info = *found; info != nullptr; info = info->next) {
    info->domain_attr->cq_data_size = 4;
    if (modes.receives_for_data) info->mode |= FI_RX_CQ_DATA;
    if (modes.keys_by_provider) info->domain_attr->mr_mode |= FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    if (modes.regions_of_endpoint) info->domain_attr->mr_mode |= FI_MR_ENDPOINT;
    if (modes.local_regions) info->domain_attr->mr_mode |= FI_MR_LOCAL;
    if (modes.no_inject) info->tx_attr->inject_size = 0;
    if (!modes.unordered) continue;
    info->tx_attr->msg_order = 0;
    info->rx_attr->msg_order = 0;
    info->ep_attr->max_order_waw_size = 0;
  }
  return 0;
}

}  // namespace

std::vector<std::pair<std::string, Modes>> imposed_modes() {
  Modes verbs;
  verbs.keys_by_provider = verbs.local_regions = verbs.receives_for_data = true;
  Modes efa = verbs;
  efa.unordered = true;
  Modes cxi;
  cxi.regions_of_endpoint = cxi.unordered = cxi.busy = true;
  Modes all = efa;
  all.regions_of_endpoint = all.no_inject = all.busy = true;
  return {{"like_verbs", verbs}, {"like_efa", efa}, {"like_cxi", cxi}, {"all_modes", all}};
}

libfabric::Api impose(const Modes& modes) {
  const std::lock_guard lock(imposed_mutex);
  imposed = modes;
  return {get_info, open_fabric};
}

}  // namespace torii::tests
