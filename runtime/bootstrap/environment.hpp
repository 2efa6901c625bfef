// SPDX-License-Identifier: Apache-2.0
// Finds the job of a launcher in the environment.
#pragma once

#include <memory>
#include <optional>

#include "runtime/bootstrap/bootstrap.hpp"

namespace torii {

/// The whole number in an environment variable, or nothing when it is not set. Throws Error{invalid_argument}.
std::optional<int> number_in(const char* variable);

/// Joins by the way that the environment offers: TORII_RENDEZVOUS; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; a
/// PMIx server. Nothing when it speaks of no other ranks. Throws Error{unsupported} when it speaks of several and
/// offers no way to find them.
std::unique_ptr<Bootstrap> join_environment(const Settings& settings);

}  // namespace torii
