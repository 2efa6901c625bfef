// SPDX-License-Identifier: Apache-2.0
// An open endpoint with all that it needs.
#pragma once

#include "transports/libfabric/api.hpp"

namespace torii::libfabric {

/// Closed from the last to the first.
struct Opened {
  Fid<fid_fabric> fabric;
  Fid<fid_domain> domain;
  Fid<fid_cq> queue;
  Fid<fid_cq> watch;  ///< has the descriptor for sleeping if the one of `queue` is of no use
  Fid<fid_av> addresses;
  Fid<fid_ep> endpoint;
};

/// Opens the device of a description. The queue has a descriptor for sleeping if that is wanted and the provider offers
/// one. Throws Error: no_resource if memory is short, otherwise unsupported, after which `auto` tries another provider.
Opened open_endpoint(const Api& api, fi_info& info, int ranks, bool sleeps);

}  // namespace torii::libfabric
