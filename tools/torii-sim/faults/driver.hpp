// SPDX-License-Identifier: Apache-2.0
// Plays a history as one rank, and judges what every call returned.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/torii-sim/faults/simulated_job.hpp"
#include "tools/torii-sim/faults/vectors.hpp"

namespace torii::faults {

class Driver {
 public:
  Driver(SimulatedJob& job, torii_context* context, int rank);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  void play();

 private:
  /// One call and its vectors.
  struct Call {
    std::size_t step = 0;
    std::size_t team = 0;
    DrawnCall spec;
    Place place;
    bool is_checked = true;
    bool has_ended = false;
    CallVectors vectors;
    torii_request* request = nullptr;
    std::size_t due = 0;  ///< the step before which it is waited for
  };

  bool make_world();
  std::optional<bool> try_world(bool is_first);
  void split(std::size_t index);
  void run(std::size_t index);
  void run_streak(std::size_t index);
  Call& next_in_streak(std::size_t index, int number, std::vector<Call*>& made);
  torii_status make_in_streak(std::size_t index, Call& call);
  void lag(const Step& step, int number);
  void run_blocking(Call& call);
  void run_persistent(Call& call, const Words& words);
  void refuse(std::size_t index);
  void wait_until(std::size_t step);
  torii_status wait_for(Call& call);
  void end_team(std::size_t team);
  torii_status meet(std::size_t team);
  void go_on_with_survivors(std::size_t team);
  bool try_survivors(torii_team* failed, std::size_t team, std::vector<torii_team*>& made);
  torii_status ask_for_survivors(torii_team* failed, int attempt, std::vector<int>& without, torii_team*& next);
  void note_made(std::size_t team, std::size_t depth, const torii_team* made, int parent_ranks);
  Call& make(std::size_t index, const DrawnCall& spec, Memory where);
  bool is_served(torii_team* team, const Words& words) const;
  void judge(Call& call, torii_status status);
  bool lacks_memory(const std::string& cause) const;
  void judge_failure(std::size_t team, torii_status status, const std::string& where);
  void check_names_difference(std::size_t team, const std::string& cause, const std::string& at);
  void compare_causes(std::size_t team, const std::string& cause, const std::string& at);
  void check_sealed();
  void destroy(torii_team* team);
  std::string where(std::size_t step, std::size_t team) const;
  /// Calls the library, in time: no wait without progress is longer than the deadline, and some calls consist of
  /// several waits. `name` is what a reader of the history calls it.
  torii_status timed(Phase phase, const std::string& name, const std::function<torii_status()>& body);

  SimulatedJob& job_;
  const History& history_;
  torii_context* context_;
  int rank_;
  RankMemory memory_;  ///< given back when no peer reads it any more: every team is gone by then
  std::vector<torii_team*> teams_;
  std::deque<Call> calls_;
};

}  // namespace torii::faults
