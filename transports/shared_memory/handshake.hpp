// SPDX-License-Identifier: Apache-2.0
// How processes of one node give each other their arenas and lives: memfds over abstract unix sockets, closed to
// strangers.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/own_descriptor.hpp"
#include "runtime/base/status.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::shared_memory {

using Token = std::array<std::byte, 16>;
/// From the kernel's random source.
Token random_token();

/// A listening SOCK_SEQPACKET socket with a random abstract name: it appears in no file system, and ends with this
/// process.
class Listener {
 public:
  /// Throws Error{no_resource}.
  explicit Listener(int ranks);
  int fd() const noexcept { return fd_.get(); }
  const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  OwnDescriptor fd_;
};

/// The descriptors that a rank gives to another rank.
struct Handed {
  Descriptor arena;
  Descriptor life;  ///< none of a rank of this process: its end is this rank's end
};

/// A process has so many descriptors open for each other rank while it takes theirs.
inline constexpr std::size_t kFilesPerPeer = 2;
/// This process cannot open as many; `peers`: the other ranks.
Error too_few_files(std::size_t peers);

struct HandshakePlan {
  int rank = 0;
  std::vector<std::string>
      names;  ///< listener of each rank; empty for ranks whose arena is not needed (the own process, other nodes)
  std::vector<std::string> who;  ///< each rank as errors name it
  Token job_token{};             ///< equal on all ranks of the job, unknown to others
  int arena_fd = -1;
  int life_fd = -1;
  double timeout_s = 30;
  std::function<bool(int rank)> lost;  ///< true if that rank is known to be dead
  /// Called once for each rank with a name, when its descriptors come: so few are open at a time. May throw.
  std::function<void(int rank, Handed handed)> take;
};

/// Collective over the ranks that need each other's arenas. Connections of other users, or without the job token, are
/// closed and change nothing. Throws Error: timeout or peer_lost naming the missing rank, no_resource.
void hand_over_arenas(const Listener& listener, const HandshakePlan& plan);

}  // namespace torii::shared_memory
