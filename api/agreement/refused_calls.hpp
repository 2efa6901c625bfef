// SPDX-License-Identifier: Apache-2.0
// The calls that a rank refused: how its peers learn of them.
//
// A refused call (a bad argument, no memory) counts as that rank's call. If all members refuse the same call, the team
// goes on. If one member made it, the team fails with `mismatch` and the refusing rank's reason. CallHistory keeps
// messages of other calls out meanwhile, so the ranks wait, and a wait compares what everybody has refused. A rank that
// ignores statuses refuses call after call: one notice covers a run of them, so that the first reasons are not lost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/fabric/words.hpp"

namespace torii {

/// A rank's message to its peers about a run: calls refused one after the other, for one reason. Where reasons change
/// often, the last run of a row has several. The message is written anew for each call. Peers may read it while
/// it is written, or before all of it has come: they believe it where `check` fits.
struct alignas(kLineBytes) RefusalNotice {
  static constexpr std::size_t kTextBytes = 96;
  std::uint64_t number;  ///< the runs of the rank count from 1; 0: none
  std::uint64_t first;   ///< the calls from this one to `last` are refused, as all calls of the team are counted
  std::uint64_t last;
  std::array<char, kTextBytes> text;  ///< why the first one was
  std::uint64_t check;
};
static_assert(sizeof(RefusalNotice) == 2 * kLineBytes);

/// The last runs of a rank: number n stands in place n % kNotices. Zeroed memory holds none.
inline constexpr std::size_t kNotices = 8;
/// The most places for the notices of one rank. Between nodes each run has two of them (AgreementMessages).
inline constexpr std::size_t kNoticePlacesMost = 2 * kNotices;
/// The most runs of refused calls one after the other; so many runs before them are still known.
inline constexpr int kRunsInARow = 4;
using RefusalNotices = std::array<RefusalNotice, kNotices>;

void write_notice(RefusalNotice& place, const RefusalNotice& notice) noexcept;
/// Nothing where the place holds none, or not all of one.
std::optional<RefusalNotice> read_notice(const RefusalNotice& place) noexcept;

/// The latest of a rank's notices.
std::optional<RefusalNotice> last_notice(std::span<const RefusalNotice> notices) noexcept;

/// A call that one rank refused and another one made.
struct RefusedCall {
  std::uint64_t sequence;
  RefusalNotice notice;  ///< of its run
};

/// One per team and rank; for the team's caller.
class RefusedCalls {
 public:
  /// Call number `sequence` is refused. Returns the notice that peers have to see, which may be the last one again.
  const RefusalNotice& add(std::uint64_t sequence, std::string_view reason) noexcept;
  std::optional<RefusalNotice> last() const noexcept { return last_notice(own_); }
  bool is_empty() const noexcept { return number_ == 0; }
  // The earliest call that one of two ranks refused and the other one made, as far as their last notices tell.
  /// Refused by the peer. This rank's last call is `own_sequence`.
  std::optional<RefusedCall> refused_by_peer_alone(std::span<const RefusalNotice> peer,
                                                   std::uint64_t own_sequence) const noexcept;
  /// Refused by this rank. `peer_settled`: as CallBoard::settled_by(), read before the peer's notices.
  std::optional<RefusedCall> refused_here_alone(std::span<const RefusalNotice> peer,
                                                std::uint64_t peer_settled) const noexcept;

 private:
  const RefusalNotice& latest() const noexcept { return own_[number_ % kNotices]; }

  RefusalNotices own_{};
  std::uint64_t number_ = 0;
  int in_a_row_ = 0;  ///< runs that follow each other, up to the latest
};

}  // namespace torii
