// SPDX-License-Identifier: Apache-2.0
// Calls for survivors of teams that have failed, on one node and on several.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {

using Ranks = std::vector<int>;

struct Place {
  const char* name;
  int per_node;  ///< ranks; 0: one node
};

inline void PrintTo(const Place& place, std::ostream* stream) { *stream << place.name; }

/// What one call returned.
struct Answer {
  torii_status status = TORII_OK;
  std::string text;
  torii_team* team = nullptr;
};

inline Answer survivors_of(torii_team* team, const Ranks& without = {}, bool allow_minority = false) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.without = without.data();
  options.without_count = static_cast<int>(without.size());
  options.allow_minority = allow_minority ? 1 : 0;
  Answer answer;
  answer.status = torii_team_survivors(team, &options, &answer.team);
  if (answer.status != TORII_OK) answer.text = last_error();
  EXPECT_EQ(answer.team != nullptr, answer.status == TORII_OK);
  return answer;
}

inline Ranks list_of(int (*ask)(const torii_team*, int*, int), const torii_team* team) {
  Ranks ranks(static_cast<std::size_t>(torii_team_ranks(team)));
  ranks.resize(static_cast<std::size_t>(ask(team, ranks.data(), static_cast<int>(ranks.size()))));
  return ranks;
}

/// A team of so many ranks works, and goes.
inline void expect_works(const Answer& made, int ranks) {
  ASSERT_EQ(made.status, TORII_OK) << made.text;
  EXPECT_EQ(torii_team_ranks(made.team), ranks);
  const std::int64_t one = 1;
  std::int64_t sum = 0;
  EXPECT_EQ(torii_allreduce(made.team, &one, &sum, 1, TORII_I64, TORII_SUM), TORII_OK) << last_error();
  EXPECT_EQ(sum, ranks);
  EXPECT_EQ(torii_team_destroy(made.team), TORII_OK) << last_error();
}

class Survivors : public testing::TestWithParam<Place> {
 protected:
  /// So many ranks, on nodes as the parameter says.
  static ThreadTeam ranks_here(int ranks, const std::string& timeout_s) {
    ThreadTeam options;
    options.ranks = ranks;
    options.settings = "TIMEOUT=" + timeout_s;
    for (int rank = 0; rank < ranks && is_divided(); ++rank) options.nodes.push_back(rank / GetParam().per_node);
    return options;
  }
  /// A team of all ranks, which rank 0 has aborted. The others may not have heard of it.
  static torii_team* aborted_team(torii_team* whole, std::barrier<>& meet) {
    torii_team* team = nullptr;
    EXPECT_EQ(torii_team_split(whole, 0, 0, nullptr, &team), TORII_OK) << last_error();
    meet.arrive_and_wait();
    if (team != nullptr && torii_team_rank(team) == 0) {
      EXPECT_EQ(torii_team_abort(team, "enough"), TORII_OK);
    }
    meet.arrive_and_wait();
    return team;
  }
  /// Each rank runs `body` on a team that has failed; `meet` waits for all ranks.
  void on_failed_team(int ranks, const std::string& timeout_s,
                      const std::function<void(torii_team*, int, std::barrier<>&)>& body) {
    std::barrier meet(ranks);
    run_as_threads(ranks_here(ranks, timeout_s), [&](torii_context*, torii_team* whole) {
      torii_team* const team = aborted_team(whole, meet);
      ASSERT_NE(team, nullptr);
      EXPECT_EQ(torii_barrier(team), TORII_ABORTED) << last_error();
      body(team, torii_team_rank(team), meet);
      meet.arrive_and_wait();
      EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
    });
  }
  /// All answers of one attempt are alike.
  void note(int attempt, const Answer& answer) {
    const std::lock_guard lock(mutex_);
    answers_[attempt].insert(std::to_string(answer.status) + ": " + answer.text);
    EXPECT_EQ(answers_[attempt].size(), 1U) << answer.text << "\nattempt " << attempt;
  }
  static bool is_divided() { return GetParam().per_node != 0; }

 private:
  std::mutex mutex_;
  std::map<int, std::set<std::string>> answers_;
};

inline std::vector<Place> places() {
  std::vector<Place> all = {{"one_node", 0}};
#ifdef TORII_TEST_LIBFABRIC
  all.insert(all.end(), {{"two_to_a_node", 2}, {"a_node_each", 1}});
#endif
  return all;
}

inline std::string place_name(const testing::TestParamInfo<Place>& place) { return place.param.name; }

}  // namespace torii::tests
