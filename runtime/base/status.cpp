// SPDX-License-Identifier: Apache-2.0
// Names of status codes.
#include "runtime/base/status.hpp"

namespace torii {

std::string_view name(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::invalid_argument:
      return "invalid_argument";
    case Status::not_registered:
      return "not_registered";
    case Status::mismatch:
      return "mismatch";
    case Status::unsupported:
      return "unsupported";
    case Status::no_resource:
      return "no_resource";
    case Status::timeout:
      return "timeout";
    case Status::peer_lost:
      return "peer_lost";
    case Status::aborted:
      return "aborted";
    case Status::poisoned:
      return "poisoned";
    case Status::transport:
      return "transport";
    case Status::internal:
      return "internal";
  }
  return "unknown";  // a number from outside, through the C ABI
}

void invalid(const std::string& text) { throw Error(Status::invalid_argument, text); }

}  // namespace torii
