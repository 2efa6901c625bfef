// SPDX-License-Identifier: Apache-2.0
// Where this rank has memory for members of other nodes: a message to each, in a line that is written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "api/agreement/membership.hpp"
#include "runtime/fabric/put_owner.hpp"

namespace torii {

/// For the team's caller.
class ToldPlaces {
 public:
  /// `members` must outlive this.
  explicit ToldPlaces(const Membership& members) : members_(members) {}
  ToldPlaces(const ToldPlaces&) = delete;
  ToldPlaces& operator=(const ToldPlaces&) = delete;

  /// Puts the word of a place into the line at that offset of the member's arena, where read_told() finds it. Throws
  /// Error{transport | peer_lost}.
  void tell(int member, std::uint64_t line_offset, std::uint64_t place);
  /// Whether all that was told has left this rank: it may be served by nobody when the rank has left the call.
  bool have_left() const noexcept { return puts_.drained(); }
  /// For GoneTeam.
  PutOwner take_puts() noexcept { return std::move(puts_); }

 private:
  const Membership& members_;
  PutOwner puts_;
};

}  // namespace torii
