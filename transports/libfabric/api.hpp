// SPDX-License-Identifier: Apache-2.0
// libfabric's two entry functions, owners of its objects, and its error codes as text.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/status.hpp"

namespace torii::libfabric {

/// All of libfabric is reached through this. Tests replace it by a layer that imposes a device's modes.
struct Api {
  int (*get_info)(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                  const fi_info* hints, fi_info** info) = fi_getinfo;
  int (*open_fabric)(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) = fi_fabric;
};

struct FreeInfo {
  void operator()(fi_info* info) const noexcept { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// Closes any object of libfabric.
template <class Object>
struct Close {
  void operator()(Object* object) const noexcept { fi_close(&object->fid); }
};
template <class Object>
using Fid = std::unique_ptr<Object, Close<Object>>;

/// libfabric returns negative codes.
inline std::string code_text(std::int64_t code) { return fi_strerror(static_cast<int>(code < 0 ? -code : code)); }

/// Throws Error{transport} naming the step, unless `code` is 0.
inline void check(int code, const std::string& step) {
  if (code != 0) throw Error(Status::transport, "libfabric: " + step + ": " + code_text(code));
}

}  // namespace torii::libfabric
