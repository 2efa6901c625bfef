// SPDX-License-Identifier: Apache-2.0
// The objects of the layer that imposes modes: each stands before an object of the tcp provider.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fabric/imposed_modes.hpp"

namespace torii::tests {

inline constexpr std::uint64_t kPage = 4096;

/// Ends the process, naming the rule that was broken.
void demand(bool kept, const char* rule);

struct Endpoint;
struct Domain;
struct Fabric;

struct Region {
  fid_mr fid;  // first, as in all objects here: libfabric's inline functions find the rest by it
  fi_ops ops;
  fid_mr* real;
  std::vector<fid_mr*> others;  ///< the same memory with the domains of other endpoints
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
  std::vector<iovec> from;
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
  fid_av* addresses = nullptr;
  std::string name;  ///< set when it is enabled
  Domain* domain = nullptr;
};

/// A device may be shared by endpoints. The provider below drives the sockets of one domain together, so behind the
/// device each endpoint has a domain of its own: the first object of an endpoint, its queue, makes it.
struct Domain {
  fid_domain fid;
  fi_ops ops;
  fi_ops_domain domain_ops;
  fi_ops_mr mr_ops;
  fid_domain* real;  ///< of the first endpoint
  std::vector<fid_domain*> others;
  bool is_first = true;  ///< no queue was opened
  fid_domain* newest() const { return others.empty() ? real : others.back(); }
  libfabric::Info real_info;
  Modes modes;
  std::uint64_t keys = 0;
  Fabric* fabric = nullptr;
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

/// A description for the provider below, without what the layer adds.
libfabric::Info describe_real(const fi_info* info);

/// The notices to each endpoint, by its name.
void count_enabled(Endpoint& endpoint);
void count_sent(Endpoint& endpoint, fi_addr_t to, int more);
void count_taken(Endpoint& endpoint);
void count_closed(Endpoint& endpoint);
void count_registered(const void* base, std::size_t bytes);
void forget_registrations() noexcept;

/// Functions of a Domain.
int open_endpoint(fid_domain* base, fi_info* info, fid_ep** opened, void* context);
int open_queue(fid_domain* base, fi_cq_attr* attributes, fid_cq** opened, void* context);

}  // namespace torii::tests
