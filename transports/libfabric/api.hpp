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

#include <cerrno>
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
inline const char* code_text(std::int64_t code) { return fi_strerror(static_cast<int>(code < 0 ? -code : code)); }

/// Error codes of a connection whose other end is gone. No code here cancels a write, so a cancelled write was flushed
/// with its connection.
inline bool is_lost_connection(std::int64_t code) noexcept {
  switch (code < 0 ? -code : code) {
    case FI_ECANCELED:
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_EHOSTUNREACH:
    case FI_EHOSTDOWN:
    case FI_ENETUNREACH:
    case FI_ETIMEDOUT:
    case EPIPE:
    case FI_EIO:
      return true;
    default:
      return false;
  }
}

/// Throws Error naming the step, unless `code` is 0.
inline void check(int code, const std::string& step, Status status = Status::transport) {
  if (code != 0) throw Error(status, "libfabric: " + step + ": " + code_text(code));
}

}  // namespace torii::libfabric
