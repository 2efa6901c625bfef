// SPDX-License-Identifier: Apache-2.0
// What the UCX transport is made from; nothing here needs UCX.
#pragma once

#include "transports/network/engine_options.hpp"

namespace torii::ucx {

using transports::ProviderReport;

/// How payloads travel.
enum class Way {
  by_ability,  ///< what suits the provider, equal on all ranks
  messages,    ///< active messages, which the target's progress() takes in
  puts,        ///< those that do not fit into one message's first packet by ucp_put, a fence and a put of the signal
};

/// A provider is a list of UCX's transports as UCX_TLS takes them, with ';' between: tcp, posix, "posix;cma", ib.
/// Source addresses say which devices are used; UCX listens on the first address of such a device, and never on all.
struct Options : transports::EngineOptions {
  Way way = Way::by_ability;  ///< anything but by_ability is for tests and measurements
};

}  // namespace torii::ucx
