// SPDX-License-Identifier: Apache-2.0
// Finds that the two ends of a standing ring number their messages differently: the calls of the two ranks differ, or
// the lengths that they gave to a block. Records of calls name the first difference if they reach back to it.
#pragma once

#include "runtime/execution/length_fault.hpp"
#include "runtime/execution/running_call.hpp"

namespace torii {

/// A slow check of a call that waits. It is certain: a message that this call still awaits has the call's own
/// signature, and a peer that has ended the call has sent all its messages and taken all those for it.
LengthFault find_ring_fault(const RunningCall& call, const LengthEvidence& evidence) noexcept;

}  // namespace torii
