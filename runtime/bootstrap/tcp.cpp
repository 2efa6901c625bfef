// SPDX-License-Identifier: Apache-2.0
// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT: finds the address on which rank 0 listens, and demands a token if needed.
#include "runtime/bootstrap/tcp.hpp"

#include <algorithm>

#include "runtime/base/log.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

/// Listens on the first of the name's addresses that this host has.
Descriptor listen_on_first(const std::vector<Address>& addresses, const std::string& host, int ranks) {
  for (std::size_t i = 0;; ++i) {
    try {
      return listen_on(addresses[i], {}, queue_length(ranks));
    } catch (const Error& error) {
      if (error.status() == Status::unsupported && i + 1 < addresses.size()) continue;
      std::string sentence = "MASTER_ADDR=" + host + ": rank 0 must listen there, but ";
      sentence += error.what();
      if (error.status() == Status::no_resource) {
        sentence += "; another job or the launcher itself uses MASTER_PORT, so set it to a free one";
      }
      throw Error(error.status(), sentence, 0);
    }
  }
}

void check_token(const Settings& settings, const std::vector<Address>& addresses, const std::string& host) {
  if (!settings.job_token.empty() || settings.insecure) return;
  for (const Address& one : addresses) {
    if (one.is_loopback()) continue;
    throw Error(Status::invalid_argument,
                "MASTER_ADDR=" + host + " is " + one.host() +
                    ", which other hosts can reach, and TORII_JOB_TOKEN is empty: set it to the same random text on "
                    "all ranks, or TORII_INSECURE=1 where everybody on the network is trusted");
  }
}

/// Fewer bytes cannot hold 128 random bits. A reader of one handshake can try such tokens off line.
constexpr std::size_t kTokenLeast = 16;

/// A warning only, because those who reach the port may be trusted. The default level shows only errors.
void warn_of_short_token(const std::string& token) {
  if (token.empty() || token.size() >= kTokenLeast) return;
  log(LogLevel::error, "TORII_JOB_TOKEN has only " + std::to_string(token.size()) +
                           " bytes and can be guessed; openssl rand -hex 16 makes a good one");
}

}  // namespace

std::unique_ptr<Bootstrap> join_tcp(const Settings& settings, int rank, int ranks, const std::string& host, int port) {
  const TcpIdentity identity{rank, ranks, settings.timeout_s};
  const wire::Key key = wire::job_key(settings.job_token);
  if (rank != 0) {
    // Each attempt resolves the name again: a resolver may learn it after this rank has started.
    const auto find = [&](std::string& why_not) -> std::optional<Rendezvous> {
      std::vector<Address> addresses;
      try {
        addresses = Address::resolve(host, port);
      } catch (const Error& error) {
        why_not = error.what();
        return std::nullopt;
      }
      check_token(settings, addresses, host);
      return Rendezvous{std::move(addresses), key};
    };
    std::vector<TcpLink> links;
    links.push_back(dial_rank_0(identity, {find, true}));
    return make_tcp_bootstrap(identity, std::move(links));
  }
  warn_of_short_token(settings.job_token);
  const std::vector<Address> addresses = Address::resolve(host, port);
  check_token(settings, addresses, host);
  std::vector<Descriptor> listeners;
  listeners.push_back(listen_on_first(addresses, host, ranks));
  return make_tcp_bootstrap(identity, admit_ranks(identity, std::move(listeners), key));
}

}  // namespace torii
