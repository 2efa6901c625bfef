// SPDX-License-Identifier: Apache-2.0
// The expected result of an operation, bit for bit: the declared expression evaluated with plain reference kernels.
#pragma once

#include <cstddef>

#include "api/team/team.hpp"

namespace torii {

/// Writes `rank`'s input elements [first, first + count) to `out`.
using OperandFunction = void (*)(int rank, std::size_t first, std::size_t count, void* out, void* data);

/// Elements [first, first + count) of this rank's result. `user`: the call's function, or nullptr. Throws
/// Error{invalid_argument} when they are not in it.
void expect(Team& team, const CallPlan& call_plan, const kernels::UserFunction* user, std::size_t first,
            std::size_t count, OperandFunction operand, void* operand_data, std::byte* out);

}  // namespace torii
