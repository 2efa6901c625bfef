// SPDX-License-Identifier: Apache-2.0
// A send or receive behind a request of the C interface.
#pragma once

#include <torii/torii.h>

#include "api/calls/pair_call.hpp"

namespace torii::c {

struct PairRequest {
  PairCall call;
  torii_received* received;  ///< the caller's; may be nullptr
};

/// Tells what a receive has got.
void tell_received(const PairCall& call, torii_received* received);

}  // namespace torii::c
