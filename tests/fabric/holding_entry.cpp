// SPDX-License-Identifier: Apache-2.0
// The module of libfabric with words that arrive and never count as having left, for whole teams.
#include <memory>

#include "tests/support/held_words.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/libfabric/providers.hpp"
#include "transports/network/entry.hpp"

namespace {

using Entry = torii::transports::Entry<torii::libfabric::Options>;

torii::Transport* make(torii::Bootstrap& bootstrap, const torii::libfabric::Options& options) {
  return new torii::tests::HeldWords(std::make_unique<torii::libfabric::Fabric>(bootstrap, options));
}

std::vector<torii::libfabric::ProviderReport> list(const std::vector<std::string>& source_addresses) {
  return torii::libfabric::list_providers({}, source_addresses);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const Entry torii_libfabric_entry = {{Entry::kVersion}, &make, &list};
