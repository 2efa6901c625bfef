// SPDX-License-Identifier: Apache-2.0
// Checks the options of all ranks.
#include "transports/network/setup.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "runtime/base/descriptor.hpp"
#include "runtime/base/status.hpp"
#include "runtime/devices/address.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/network/together.hpp"

namespace torii::transports {
namespace {

/// Throws Error{invalid_argument} unless this host has the address: networks notice late and do not name the address.
void check_source(const std::string& text) {
  const Address address = Address::parse(text, 0);
  const Descriptor trial(socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!trial.open() || bind(trial.get(), address.get(), address.bytes()) == 0) return;
  if (errno != EADDRNOTAVAIL) return;  // the provider reports other errors
  throw Error(Status::invalid_argument, "the source address " + text + " is none of this host's");
}

/// Values that must be equal on all ranks.
struct RankCard {
  std::uint64_t engines;
  std::uint64_t arena_bytes;
};

}  // namespace

void check_options(Bootstrap& bootstrap, const EngineOptions& options) {
  together(bootstrap, [&] {
    if (options.engines < 1 || options.engines > kEnginesMax) {
      throw Error(Status::invalid_argument,
                  std::to_string(options.engines) + " engines; they must be 1 to " + std::to_string(kEnginesMax));
    }
    for (const std::string& source : options.source_addresses) check_source(source);
  });
  const RankCard mine = {static_cast<std::uint64_t>(options.engines), options.arena_bytes};
  const std::vector<RankCard> cards = gather_values(bootstrap, mine);
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].engines == mine.engines && cards[rank].arena_bytes == mine.arena_bytes) continue;
    throw Error(Status::mismatch,
                "rank " + std::to_string(rank) + " has " + std::to_string(cards[rank].engines) +
                    " engines and an arena of " + std::to_string(cards[rank].arena_bytes) + " bytes, rank " +
                    std::to_string(bootstrap.rank()) + " " + std::to_string(mine.engines) + " and " +
                    std::to_string(mine.arena_bytes),
                static_cast<int>(rank));
  }
}

}  // namespace torii::transports
