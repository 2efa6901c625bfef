// SPDX-License-Identifier: Apache-2.0
// The one place where exceptions of the parts of a team become statuses of its calls.
#pragma once

#include <exception>

#include "api/calls/last_error.hpp"
#include "runtime/base/status.hpp"

namespace torii {

/// Runs `body`. An exception becomes the status, with last_error(): anything but Error is a lack of memory.
template <class Body>
Status caught(Body&& body) noexcept {
  try {
    body();
    return Status::ok;
  } catch (const Error& error) {
    set_last_error(error.what());
    return error.status();
  } catch (const std::exception& error) {
    set_last_error(error.what());
    return Status::no_resource;
  }
}

}  // namespace torii
