// SPDX-License-Identifier: Apache-2.0
// What passes through the layer: writes, which are checked, held back and shuffled, and completions.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/fabric/imposed_objects.hpp"

namespace torii::tests {
namespace {

using libfabric::Info;

constexpr std::size_t kHeldMost = 24;

/// Keys of providers are the region's first page, with the real key below.
std::pair<std::uint64_t, std::uint64_t> real_place(const Endpoint& endpoint, std::uint64_t address, std::uint64_t key) {
  if (!endpoint.modes.keys_by_provider) return {address, key};
  return {address - (key & ~(kPage - 1)), key & (kPage - 1)};
}

ssize_t pass_on(Endpoint& endpoint, const Write& write) {
  std::vector<iovec> from = write.from;
  if (!write.injected.empty()) from[0].iov_base = const_cast<std::byte*>(write.injected.data());
  const auto [address, key] = real_place(endpoint, write.address, write.key);
  const bool has_data = (write.flags & FI_REMOTE_CQ_DATA) != 0;
  // Before it is sent: its receiver may take it at once.
  if (has_data) count_sent(endpoint, write.to, 1);
  const auto counted = [&](ssize_t code) {
    if (code != 0 && has_data) count_sent(endpoint, write.to, -1);
    return code;
  };
  if ((write.flags & FI_INJECT) != 0) {
    const auto [source, bytes] = from[0];
    return counted(has_data ? fi_inject_writedata(endpoint.real, source, bytes, write.data, write.to, address, key)
                            : fi_inject_write(endpoint.real, source, bytes, write.to, address, key));
  }
  fi_rma_iov to = {address, 0, key};
  for (const iovec& part : from) to.len += part.iov_len;
  std::vector<void*> descriptors(from.size(), nullptr);
  const fi_msg_rma message = {from.data(), descriptors.data(), from.size(), write.to, &to,
                              1,           write.context,      write.data};
  return counted(
      fi_writemsg(endpoint.real, &message, FI_COMPLETION | (write.flags & (FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE))));
}

void release_held(Endpoint& endpoint) {
  std::shuffle(endpoint.held.begin(), endpoint.held.end(), endpoint.random);
  std::erase_if(endpoint.held, [&](const Write& write) {
    const ssize_t code = pass_on(endpoint, write);
    demand(code == 0 || code == -FI_EAGAIN, "a held write failed");
    return code == 0;
  });
}

void demand_registered(const iovec& source, const void* descriptor) {
  demand(descriptor != nullptr, "a source must be registered");
  const auto& region = *static_cast<const Region*>(descriptor);
  const auto* const begin = static_cast<const std::byte*>(source.iov_base);
  demand(begin >= region.base && begin + source.iov_len <= region.base + region.bytes,
         "a source is outside its region");
}

/// One descriptor for each part of the write.
ssize_t post(Endpoint& endpoint, Write write, void* const* descriptors) {
  demand((write.flags & FI_REMOTE_CQ_DATA) == 0 || write.data <= UINT32_MAX, "data must fit into 4 bytes");
  if ((write.flags & FI_INJECT) != 0) {
    demand(!endpoint.modes.no_inject, "nothing may be injected");
  } else if (endpoint.modes.local_regions) {
    for (std::size_t i = 0; i < write.from.size(); ++i) demand_registered(write.from[i], descriptors[i]);
  }
  if (endpoint.modes.stuck || (endpoint.modes.busy && endpoint.random() % 4 == 0)) return -FI_EAGAIN;
  // Nothing is held back before the connection stands: devices have none, and a write that they took leaves.
  if (!endpoint.modes.unordered || !endpoint.reached.contains(write.to)) {
    const ssize_t code = pass_on(endpoint, write);
    if (code == 0) endpoint.reached.insert(write.to);
    return code;
  }
  if (endpoint.held.size() >= kHeldMost) return -FI_EAGAIN;
  if ((write.flags & FI_INJECT) != 0) {
    const auto* const source = static_cast<const std::byte*>(write.from[0].iov_base);
    write.injected.assign(source, source + write.from[0].iov_len);
  }
  endpoint.held.push_back(std::move(write));
  return 0;
}

Endpoint& endpoint_of(fid_ep* base) { return *reinterpret_cast<Endpoint*>(base); }

std::vector<iovec> whole(const void* source, std::size_t bytes) { return {{const_cast<void*>(source), bytes}}; }

ssize_t write_plain(fid_ep* base, const void* source, std::size_t bytes, void* descriptor, fi_addr_t to,
                    std::uint64_t address, std::uint64_t key, void* context) {
  return post(endpoint_of(base), {{}, whole(source, bytes), to, address, key, 0, 0, context}, &descriptor);
}

ssize_t write_data(fid_ep* base, const void* source, std::size_t bytes, void* descriptor, std::uint64_t data,
                   fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) {
  return post(endpoint_of(base), {{}, whole(source, bytes), to, address, key, data, FI_REMOTE_CQ_DATA, context},
              &descriptor);
}

ssize_t write_message(fid_ep* base, const fi_msg_rma* message, std::uint64_t flags) {
  return post(endpoint_of(base),
              {{},
               {message->msg_iov, message->msg_iov + message->iov_count},
               message->addr,
               message->rma_iov->addr,
               message->rma_iov->key,
               message->data,
               flags & (FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE),
               message->context},
              message->desc);
}

ssize_t inject_plain(fid_ep* base, const void* source, std::size_t bytes, fi_addr_t to, std::uint64_t address,
                     std::uint64_t key) {
  return post(endpoint_of(base), {{}, whole(source, bytes), to, address, key, 0, FI_INJECT, nullptr}, nullptr);
}

ssize_t inject_data(fid_ep* base, const void* source, std::size_t bytes, std::uint64_t data, fi_addr_t to,
                    std::uint64_t address, std::uint64_t key) {
  return post(endpoint_of(base),
              {{}, whole(source, bytes), to, address, key, data, FI_INJECT | FI_REMOTE_CQ_DATA, nullptr}, nullptr);
}

/// Into registered memory, from a registered region.
ssize_t read_remote(fid_ep* base, void* to, std::size_t bytes, void* descriptor, fi_addr_t from, std::uint64_t address,
                    std::uint64_t key, void* context) {
  Endpoint& endpoint = endpoint_of(base);
  if (endpoint.modes.local_regions) demand_registered({to, bytes}, descriptor);
  if (endpoint.modes.stuck || (endpoint.modes.busy && endpoint.random() % 4 == 0)) return -FI_EAGAIN;
  const auto [real_address, real_key] = real_place(endpoint, address, key);
  return fi_read(endpoint.real, to, bytes, nullptr, from, real_address, real_key, context);
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
  if (other->fclass == FI_CLASS_AV) endpoint.addresses = reinterpret_cast<fid_av*>(other);
  if (other->fclass != FI_CLASS_CQ) return fi_ep_bind(endpoint.real, other, flags);
  endpoint.queue = reinterpret_cast<Queue*>(other);
  endpoint.queue->endpoint = &endpoint;
  return fi_ep_bind(endpoint.real, &endpoint.queue->real->fid, flags);
}

int control_endpoint(fid* base, int command, void* argument) {
  auto& endpoint = *reinterpret_cast<Endpoint*>(base);
  fid& real = endpoint.real->fid;
  if (command == FI_ENABLE && imposed_engines() >= endpoint.modes.engines_most) return endpoint.modes.enabling_code;
  const int code = real.ops->control(&real, command, argument);
  if (command == FI_ENABLE && code == 0) count_enabled(endpoint);
  return code;
}

int close_endpoint(fid* base) {
  auto* const endpoint = reinterpret_cast<Endpoint*>(base);
  release_held(*endpoint);
  if (!endpoint->name.empty()) count_closed(*endpoint);
  endpoint->queue->endpoint = nullptr;
  return close_object<Endpoint>(base);
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
    count_taken(endpoint);
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

}  // namespace

void demand(bool kept, const char* rule) {
  if (kept) return;
  std::fprintf(stderr, "imposed modes: %s\n", rule);
  std::abort();
}

int open_endpoint(fid_domain* base, fi_info* info, fid_ep** opened, void* context) {
  auto& domain = *reinterpret_cast<Domain*>(base);
  const Info real_info = describe_real(info);
  fid_ep* real = nullptr;
  const int code = fi_endpoint(domain.newest(), real_info.get(), &real, context);
  if (code != 0) return code;
  auto* const endpoint = wrap<Endpoint>(real);
  endpoint->modes = domain.modes;
  endpoint->domain = &domain;
  endpoint->ops.close = close_endpoint;
  endpoint->ops.bind = bind_endpoint;
  endpoint->ops.control = control_endpoint;
  endpoint->rma_ops.size = sizeof(fi_ops_rma);
  endpoint->rma_ops.read = read_remote;
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

int open_queue(fid_domain* base, fi_cq_attr* attributes, fid_cq** opened, void* context) {
  auto& domain = *reinterpret_cast<Domain*>(base);
  if (!domain.is_first) {
    fid_domain* own = nullptr;
    const int code = fi_domain(domain.fabric->real, domain.real_info.get(), &own, nullptr);
    if (code != 0) return code;
    domain.others.push_back(own);
  }
  domain.is_first = false;
  fid_cq* real = nullptr;
  const int code = fi_cq_open(domain.newest(), attributes, &real, context);
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

}  // namespace torii::tests
