// SPDX-License-Identifier: Apache-2.0
// The configuration of UCX for one engine.
#pragma once

#include "transports/ucx/api.hpp"
#include "transports/ucx/providers.hpp"

namespace torii::ucx {

using Config = Owner<ucp_config_t*, ucp_config_release>;

/// `puts`: payloads are put and fenced. Throws Error{transport} for a value that UCX does not take.
Config make_config(const Selection& selection, bool puts);

}  // namespace torii::ucx
