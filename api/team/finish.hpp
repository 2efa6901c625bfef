// SPDX-License-Identifier: Apache-2.0
// What a rank does to its own result once an operation has ended: each element alone, in place.
#pragma once

#include <cstddef>

#include "api/team/call_plan.hpp"

namespace torii {

/// Whether the result of this rank needs finish(): truth values that no fold has made 0 or 1. Every result is a fold of
/// at least two operands, except that of a team of one rank and those of the first ranks of a scan or exscan.
bool needs_finish(const CallArguments& arguments, int rank, int ranks) noexcept;

/// Finishes `count` elements of the result of a call whose plan says that they need it.
void finish(const CallPlan& call_plan, void* result, std::size_t count) noexcept;

}  // namespace torii
