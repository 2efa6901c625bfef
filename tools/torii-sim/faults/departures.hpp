// SPDX-License-Identifier: Apache-2.0
// How long members of a team waited for one that was away, at work in other teams or between calls. A visit is a step
// in which a rank calls the team, or the wait for a call; as long as the team has not failed, every member makes the
// same ones in the same order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "transports/fibers/fibers.hpp"

namespace torii::faults {

class Departures {
 public:
  Departures(std::size_t teams, int ranks)
      : ranks_(static_cast<std::size_t>(ranks)), members_(teams * static_cast<std::size_t>(ranks)) {}

  void come(std::size_t team, int rank, fibers::Time now) {
    Member& own = member(team, rank);
    own.visits.push_back({own.left, now});
    own.is_there = true;
  }
  void leave(std::size_t team, int rank, fibers::Time now) {
    Member& own = member(team, rank);
    own.left = now;
    own.is_there = false;
  }

  /// The longest time for which the first of `members` to come to a visit waited while another one was away from the
  /// team. Only visits to which that one came after `since`, or has not come yet.
  fibers::Time longest_wait(std::size_t team, const std::vector<int>& members, fibers::Time since,
                            fibers::Time now) const {
    fibers::Time longest = 0;
    for (const int late : members) {
      const Member& own = member(team, late);
      for (std::size_t visit = 0; visit <= own.visits.size(); ++visit) {
        const bool has_come = visit < own.visits.size();
        if (!has_come && own.is_there) continue;  // still in the visit before, so it is not away
        const Visited one = has_come ? own.visits[visit] : Visited{own.left, now};
        const fibers::Time first = first_arrival(team, members, visit, one.came);
        if (one.came >= since) longest = std::max(longest, one.came - std::max(first, one.left_before));
      }
    }
    return longest;
  }

 private:
  struct Visited {
    fibers::Time left_before;  ///< the end of the visit before
    fibers::Time came;
  };
  struct Member {
    bool is_there = false;
    fibers::Time left = 0;  ///< at the end of its last visit, or when it became a member
    std::vector<Visited> visits;
  };
  std::size_t index(std::size_t team, int rank) const { return team * ranks_ + static_cast<std::size_t>(rank); }
  Member& member(std::size_t team, int rank) { return members_[index(team, rank)]; }
  const Member& member(std::size_t team, int rank) const { return members_[index(team, rank)]; }

  /// When the first member came to the visit of this number, at most `latest`.
  fibers::Time first_arrival(std::size_t team, const std::vector<int>& members, std::size_t visit,
                             fibers::Time latest) const {
    for (const int rank : members) {
      const std::vector<Visited>& visits = member(team, rank).visits;
      if (visit < visits.size()) latest = std::min(latest, visits[visit].came);
    }
    return latest;
  }

  std::size_t ranks_;
  std::vector<Member> members_;
};

}  // namespace torii::faults
