// SPDX-License-Identifier: Apache-2.0
// The end of the process: what becomes of contexts and teams that are alive.
#pragma once

#include <torii/torii.h>

#include "python/extension/python.hpp"

namespace torii_python {

/// Contexts and teams that this process has. With the GIL.
void note_context(torii_context* context);
void note_team(torii_team* team);
/// Gives them up, and forgets them if that succeeds.
torii_status destroy_context(torii_context* context);
torii_status destroy_team(torii_team* team);

/// From now on objects that die call nothing, so that peers see that this process has ended.
void leave_without_goodbye();
bool is_leaving();

/// Registers a function that destroys the contexts and teams that are alive at the interpreter's very end, unless
/// leave_without_goodbye() was called. A PMIx server reports a process as failed if the process has not left its job.
/// False, with an exception set, on failure.
bool register_farewell();

}  // namespace torii_python
