// SPDX-License-Identifier: Apache-2.0
// Random words that only the ranks of a job know.
#pragma once

#include <cstdint>

namespace torii {

/// 64 random bits that nobody can predict. Only the ranks of the job learn them, through a Bootstrap: no log and no
/// error text contains them. Throws Error{no_resource} if the system has no source of random bytes.
std::uint64_t random_secret();

}  // namespace torii
