// SPDX-License-Identifier: Apache-2.0
// The module of libfabric with what verbs asks for imposed on tcp: a fabric that pins memory, for whole teams.
#include "tests/fabric/imposed_modes.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/libfabric/providers.hpp"
#include "transports/network/entry.hpp"

namespace {

using Entry = torii::transports::Entry<torii::libfabric::Options>;

torii::Transport* make(torii::Bootstrap& bootstrap, const torii::libfabric::Options& given) {
  torii::libfabric::Options options = given;
  options.provider = "tcp;ofi_rxm";
  return new torii::libfabric::Fabric(bootstrap, options, torii::tests::impose(torii::tests::verbs_modes()));
}

std::vector<torii::libfabric::ProviderReport> list(const std::vector<std::string>& source_addresses) {
  return torii::libfabric::list_providers({}, source_addresses);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const Entry torii_libfabric_entry = {{Entry::kVersion}, &make, &list};
