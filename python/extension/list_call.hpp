// SPDX-License-Identifier: Apache-2.0
// Calls whose blocks are in lists of arrays: all_gather_list, alltoall_list, scatter_list and gather_list.
#pragma once

#include "python/extension/operation.hpp"

namespace torii_python {

/// Fills `operation`, whose collective and root have been read. False, with an exception set that names the wrong value
/// and what would be right.
bool describe_lists(const torii_team* team, const Arguments& arguments, Operation& operation);

}  // namespace torii_python
