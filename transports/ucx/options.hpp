// SPDX-License-Identifier: Apache-2.0
// Options of the UCX transport; this header does not need UCX.
#pragma once

#include "transports/network/engine_options.hpp"

namespace torii::ucx {

using transports::ProviderReport;

/// How payloads travel.
enum class Way {
  by_ability,  ///< chosen for the provider, equal on all ranks
  messages,    ///< active messages, which the target's progress() receives
  puts,        ///< payloads too long for one message's first packet by ucp_put, a fence and a put of the signal
};

/// A provider is a list of UCX's transports as in UCX_TLS, separated by ';': tcp, posix, "posix;cma", ib. Source
/// addresses select the devices; UCX listens on the first address of such a device, and never on all.
struct Options : transports::EngineOptions {
  Way way = Way::by_ability;  ///< values other than by_ability are for tests and measurements
};

}  // namespace torii::ucx
