// SPDX-License-Identifier: Apache-2.0
// Rounds of an all-gather between fibers.
#include "transports/fibers/meeting.hpp"

#include <algorithm>

#include "runtime/base/deadline.hpp"
#include "runtime/base/status.hpp"

namespace torii::fibers {
namespace {

constexpr std::int64_t kLookEveryNs = 100 * kMicrosecond;

}  // namespace

/// The lowest rank that has not come to the round.
int Meeting::missing(const Round& round) const noexcept {
  return static_cast<int>(std::ranges::find(round.here, false) - round.here.begin());
}

void Meeting::all_gather(int rank, std::size_t number, std::span<const std::byte> mine, std::span<std::byte> all) {
  fibers_.pass();
  Round& round = rounds_[number];
  round.parts.resize(static_cast<std::size_t>(ranks_));
  round.here.resize(static_cast<std::size_t>(ranks_));
  round.parts[static_cast<std::size_t>(rank)].assign(mine.begin(), mine.end());
  round.here[static_cast<std::size_t>(rank)] = true;
  ++round.came;
  Deadline deadline = Deadline::after_s(timeout_s_);
  while (round.came < ranks_ && round.lost < 0) {
    for (int peer = 0; peer < ranks_ && round.lost < 0; ++peer) {
      if (!round.here[static_cast<std::size_t>(peer)] && fibers_.is_gone(peer)) round.lost = peer;
    }
    if (round.lost >= 0) break;
    if (deadline.is_over()) {
      const int absent = missing(round);
      throw Error(Status::timeout, "rank " + std::to_string(absent) + " has not joined in time", absent);
    }
    fibers_.sleep(kLookEveryNs);
  }
  if (round.lost >= 0) throw Error(Status::peer_lost, "rank " + std::to_string(round.lost) + " has ended", round.lost);
  auto to = all.begin();
  for (const std::vector<std::byte>& part : round.parts) {
    if (part.size() != mine.size()) throw Error(Status::mismatch, "ranks exchange blobs of different sizes");
    to = std::ranges::copy(part, to).out;
  }
}

}  // namespace torii::fibers
