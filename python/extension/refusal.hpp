// SPDX-License-Identifier: Apache-2.0
// Calls that the package refuses itself count as this rank's calls.
#pragma once

#include "python/extension/team.hpp"

namespace torii_python {

/// Tells the team about a refused call, so that the other ranks fail at once and do not wait for this one. The current
/// exception is the reason and stays set. Returns nullptr.
PyObject* refuse(TeamObject* team);
/// Tells it when no thread is in a call on the team, perhaps at once. Raises nothing and keeps the current exception.
void refuse_later(TeamObject* team, const char* reason);

}  // namespace torii_python
