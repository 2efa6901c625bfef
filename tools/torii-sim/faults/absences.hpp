// SPDX-License-Identifier: Apache-2.0
// For how long each rank stayed away from a team between two visits. A visit is a step in which it calls the team, or
// the wait for a call; every member makes the same ones in the same order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "transports/fibers/fibers.hpp"

namespace torii::faults {

class Absences {
 public:
  Absences(std::size_t teams, int ranks)
      : ranks_(static_cast<std::size_t>(ranks)), members_(teams * static_cast<std::size_t>(ranks)) {}

  void come(std::size_t team, int rank, fibers::Time now) {
    Member& own = member(team, rank);
    own.visits.push_back({now, now - own.left});
  }
  void leave(std::size_t team, int rank, fibers::Time now) { member(team, rank).left = now; }
  std::size_t visits(std::size_t team, int rank) const { return member(team, rank).visits.size(); }

  /// The longest absence of the rank before one of its first `visits` visits, if it lasts or ended after `since`.
  fibers::Time longest(std::size_t team, int rank, std::size_t visits, fibers::Time since, fibers::Time now) const {
    const Member& own = member(team, rank);
    fibers::Time longest = own.visits.size() < visits ? now - own.left : 0;
    for (std::size_t i = 0; i < std::min(visits, own.visits.size()); ++i) {
      if (own.visits[i].came >= since) longest = std::max(longest, own.visits[i].away);
    }
    return longest;
  }

 private:
  struct Visited {
    fibers::Time came;
    fibers::Time away;  ///< for how long, before
  };
  struct Member {
    fibers::Time left = 0;  ///< at the end of its last visit, or when it became a member
    std::vector<Visited> visits;
  };
  std::size_t index(std::size_t team, int rank) const { return team * ranks_ + static_cast<std::size_t>(rank); }
  Member& member(std::size_t team, int rank) { return members_[index(team, rank)]; }
  const Member& member(std::size_t team, int rank) const { return members_[index(team, rank)]; }

  std::size_t ranks_;
  std::vector<Member> members_;
};

}  // namespace torii::faults
