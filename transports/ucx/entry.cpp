// SPDX-License-Identifier: Apache-2.0
// The function that the library finds when it opens the module.
#include "transports/network/entry.hpp"
#include "transports/ucx/providers.hpp"
#include "transports/ucx/transport.hpp"

namespace {

using Entry = torii::transports::Entry<torii::ucx::Options>;

torii::Transport* make(torii::Bootstrap& bootstrap, const torii::ucx::Options& options) {
  return new torii::ucx::UcxTransport(bootstrap, options);
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const Entry torii_ucx_entry = {{Entry::kVersion}, &make, &torii::ucx::list_providers};
