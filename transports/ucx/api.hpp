// SPDX-License-Identifier: Apache-2.0
// Owners of UCX's objects, and UCX's status codes as exceptions.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <type_traits>

#include "runtime/base/status.hpp"

namespace torii::ucx {

/// Releases an object by the matching function of UCX.
template <auto kFunction>
struct GiveBack {
  template <class Object>
  void operator()(Object* object) const noexcept {
    kFunction(object);
  }
};
template <class Handle, auto kFunction>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, GiveBack<kFunction>>;

/// Throws Error{transport} naming the step, unless `status` is UCS_OK.
inline void check(ucs_status_t status, const std::string& step) {
  if (status != UCS_OK) throw Error(Status::transport, "UCX: " + step + ": " + ucs_status_string(status));
}

}  // namespace torii::ucx
