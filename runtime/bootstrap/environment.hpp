// SPDX-License-Identifier: Apache-2.0
// Finds the job of a launcher in the environment.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/bootstrap/bootstrap.hpp"

namespace torii {

/// The whole number in an environment variable; nothing if it is not set. Throws Error{invalid_argument}.
std::optional<int> number_in(const char* variable);

/// "OMPI_COMM_WORLD_SIZE=4" or the like if the environment says that this process is one of several ranks of a job, or
/// perhaps one of several; empty otherwise. Throws Error{invalid_argument}.
std::string launched_job();

/// Joins with these numbers, which the environment does not say, by TORII_RENDEZVOUS or by MASTER_ADDR and MASTER_PORT.
/// Throws Error{invalid_argument} if neither is set.
std::unique_ptr<Bootstrap> join_as(const Settings& settings, int rank, int ranks);

/// Joins by TORII_RENDEZVOUS, by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or by a PMIx server. Returns nullptr if
/// the environment names no other ranks. Throws Error{unsupported} if it names several and offers no way to join.
std::unique_ptr<Bootstrap> join_environment(const Settings& settings);

}  // namespace torii
