// SPDX-License-Identifier: Apache-2.0
// The last touch to a rank's own result once an operation has ended: each element alone, in place. Plans know sums
// only. They do not mark the fold that makes an element final, and if several ranks fold an element, each of them would
// divide it. So every rank divides the same sum at the end, for one more pass over the result, and all have equal bits.
#pragma once

#include <cstddef>

#include "api/calls/call_plan.hpp"

namespace torii {

/// Whether the result of this rank needs finish(). Averages do, of which only the sum has been made, and truth values
/// that no fold has made 0 or 1. Every result is a fold of at least two operands, except that of a single rank or leaf,
/// and of the first ranks of a scan or exscan. `operands`: of ranks or leaves.
bool needs_finish(const CallSpec& spec, int rank, int operands) noexcept;

/// Finishes `count` elements of the result of a call whose plan says that they need it. They are at `from`, in the type
/// with which the call ran, and come to `result`. Both may be one address if the type is the same.
void finish(const CallPlan& call_plan, const void* from, void* result, std::size_t count) noexcept;

/// Widens `count` elements of the input of a call whose sums are made as float.
void widen(const CallPlan& call_plan, const void* input, void* floats, std::size_t count) noexcept;

}  // namespace torii
