// SPDX-License-Identifier: Apache-2.0
// Makes the call that an Operation describes. Also the functions of the C interface that take a torii_request; no other
// file of the extension calls them.
#pragma once

#include <torii/torii.h>

#include "python/extension/blocking.hpp"
#include "python/extension/operation.hpp"

namespace torii_python {

/// A started or a persistent operation. `request` is nullptr once the library has freed it.
struct Handle {
  torii_request* request = nullptr;
  bool is_persistent = false;
};

/// Runs it to its end, or has it join the group of the calling thread.
torii_status run_operation(torii_team* team, const Operation& operation);
torii_status start_request(torii_team* team, const Operation& operation, Handle& handle);
torii_status restart_request(Handle& handle);
/// If the operation has ended, `done` is true and the status its own.
torii_status test_request(Handle& handle, bool& done);
/// Waits for `seconds` at the longest; negative: up to the team's deadline. `done` is false if the time was over, or if
/// a signal handler has raised, which has aborted the team.
torii_status wait_request(Handle& handle, double seconds, Blocking& blocking, bool& done);
/// Takes a receive back; `cancelled` is false if it has met a send.
torii_status cancel_request(Handle& handle, bool& cancelled);
/// A persistent operation that is not running.
torii_status free_request(Handle& handle);

}  // namespace torii_python
