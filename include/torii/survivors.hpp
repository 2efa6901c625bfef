// SPDX-License-Identifier: Apache-2.0
// The team of the living members for C++: torii_team_survivors and its questions. Included by torii.hpp.
#pragma once

#include <torii/request.hpp>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

namespace torii {
inline namespace cpp {

/// A part of Team.
template <typename OneTeam>
class HasSurvivors {
 public:
  /// The members that are known to be lost, ascending. From any thread.
  std::vector<int> lost() const { return list(torii_team_lost); }
  /// The members that the last TORII_TIMEOUT of the team names: they did not come, or did not move. From any thread.
  std::vector<int> absent() const { return list(torii_team_absent); }

  /// The living members of a team on which a call failed. Collective over them: all have the team, or all get the same
  /// Failure, after which it can be called again.
  OneTeam survivors(const torii_team_options* options = nullptr) const {
    torii_team* part = nullptr;
    check(torii_team_survivors(team().handle(), options, &part));
    return OneTeam(part, team().handle_.get_deleter().context);
  }
  /// The same without these ranks of the team, though they may live, such as absent(). Equal on all survivors.
  OneTeam survivors(std::span<const int> without, const torii_team_options* options = nullptr) const {
    torii_team_options all = options == nullptr ? torii_team_options{} : *options;
    all.size = sizeof(all);
    all.without = without.data();
    all.without_count = static_cast<int>(without.size());
    return survivors(&all);
  }
  OneTeam survivors(std::initializer_list<int> without, const torii_team_options* options = nullptr) const {
    return survivors(std::span<const int>(without.begin(), without.size()), options);
  }

 private:
  const OneTeam& team() const noexcept { return static_cast<const OneTeam&>(*this); }
  std::vector<int> list(int (*ask)(const torii_team*, int*, int)) const {
    const int ranks = torii_team_ranks(team().handle());
    std::vector<int> members(static_cast<std::size_t>(ranks < 0 ? 0 : ranks));
    const int count = ask(team().handle(), members.data(), ranks);
    members.resize(static_cast<std::size_t>(count < 0 ? 0 : count));
    return members;
  }
};

}  // namespace cpp
}  // namespace torii
