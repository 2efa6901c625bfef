// SPDX-License-Identifier: Apache-2.0
// Agreement between ranks on options.
#include "transports/network/setup.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/descriptor.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/execution/transport.hpp"

namespace torii::transports {
namespace {

constexpr const char* kFine = "fine";

/// Throws Error{invalid_argument} unless it is an address of this host: networks find out late and name it not.
void check_source(const std::string& text) {
  const sockaddr_storage address = parse_source(text);
  const socklen_t bytes = address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const Descriptor trial(socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!trial.open() || bind(trial.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0) return;
  if (errno != EADDRNOTAVAIL) return;  // the provider will say what else is wrong
  throw Error(Status::invalid_argument, "the source address " + text + " is none of this host's");
}

/// What must be equal on all ranks.
struct RankCard {
  std::uint64_t engines;
  std::uint64_t arena_bytes;
};

}  // namespace

void together(Bootstrap& bootstrap, const std::function<void()>& step) {
  std::string mine = kFine;
  try {
    step();
  } catch (const Error& error) {
    mine = std::to_string(static_cast<int>(error.status())) + " " + error.what();
  }
  const std::vector<std::string> all = gather_texts(bootstrap, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == kFine) continue;
    std::string_view text = all[rank];
    const int status = take_number<int>(text).value_or(static_cast<int>(Status::internal));
    if (text.starts_with(' ')) text.remove_prefix(1);
    throw Error(static_cast<Status>(status), "rank " + std::to_string(rank) + ": " + std::string(text),
                static_cast<int>(rank));
  }
}

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

sockaddr_storage parse_source(const std::string& text) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    address.ss_family = AF_INET;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    address.ss_family = AF_INET6;
  } else {
    throw Error(Status::invalid_argument,
                "the source address '" + text + "' must be numeric, such as 127.0.0.1 or fd00::1");
  }
  return address;
}

}  // namespace torii::transports
