// SPDX-License-Identifier: Apache-2.0
// Joins over TCP: rank 0 listens on one port, the others connect, and all-gathers pass through rank 0.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/deadline.hpp"
#include "runtime/base/descriptor.hpp"
#include "runtime/base/own_descriptor.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/bootstrap/wire.hpp"
#include "runtime/devices/address.hpp"

namespace torii {

struct TcpIdentity {
  int rank = 0;
  int ranks = 1;
  double timeout_s = 30;  ///< for all ranks to join, and for each all-gather
};

/// One end of a connection between rank 0 and another rank. Both ends have proved that they know the key.
struct TcpLink {
  OwnDescriptor socket;
  wire::Key send_key{};
  wire::FrameReader reader;
  std::vector<std::byte> unsent;  ///< the end of a frame that was given up; goes before the next one
};

/// The length of the kernel's queue of connections that rank 0 has not accepted yet; the kernel lowers it to its own
/// limit. If the queue is full, the kernel retries a connection after 1 s, so strangers must not fill it easily.
constexpr int queue_length(int ranks) noexcept { return ranks + 1024; }

/// Rank 0: admits every other rank once, then closes the listeners. Drops connections that are silent, slow or not from
/// this job; answers and logs a wrong token or number of ranks. Returns the links by rank; element 0 is unused. Throws
/// Error: timeout naming the missing ranks, no_resource, which it tells the ranks that come within a moment.
std::vector<TcpLink> admit_ranks(const TcpIdentity& identity, std::vector<Descriptor> listeners, const wire::Key& key);

/// The addresses at which rank 0 may be found.
struct Rendezvous {
  std::vector<Address> addresses;  ///< tried in this order
  wire::Key key{};
};

struct DialPlan {
  /// The current addresses of rank 0, or nothing with the reason; called before each attempt.
  std::function<std::optional<Rendezvous>(std::string& why_not)> find;
  /// Whether a refusal ends the attempts; false if rank 0 may be at another address later.
  bool refusals_are_final = true;
};

/// The other ranks: tries to connect to rank 0 until the deadline. Throws Error: timeout about rank 0 with the last
/// reason, mismatch if refused for the token or the number of ranks, invalid_argument if the rank is taken.
TcpLink dial_rank_0(const TcpIdentity& identity, const DialPlan& plan);

/// A bootstrap over links: those of rank 0 to all others, or the one link of another rank to rank 0.
std::unique_ptr<Bootstrap> make_tcp_bootstrap(const TcpIdentity& identity, std::vector<TcpLink> links);

/// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Rank 0 listens on `host`, which must be an address of its host; the key
/// is that of TORII_JOB_TOKEN. Without a token only an address that other hosts cannot reach is allowed, unless
/// TORII_INSECURE=1. Rank 0 logs a token of fewer than 16 bytes. Throws Error: those above, and invalid_argument.
std::unique_ptr<Bootstrap> join_tcp(const Settings& settings, int rank, int ranks, const std::string& host, int port);

/// The result of a read.
enum class Received { some, nothing_yet, closed };

/// Reads what the socket has; `some` if a frame is complete. Throws like FrameReader.
Received receive_frame(TcpLink& link);

/// "rank 3 has", "ranks 1, 2, 5 and 4 more have".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace torii
