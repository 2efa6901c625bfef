// SPDX-License-Identifier: Apache-2.0
// Plays a history as one rank, and judges what every call returned.
#pragma once

#include <torii/torii.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/torii-sim/faults/history.hpp"
#include "transports/fibers/fibers.hpp"

namespace torii::faults {

/// What the ranks of one history have in common, and what was found wrong.
struct Stage {
  const History& history;
  fibers::Fibers& fibers;
  std::vector<std::string> failures = {};
  /// By team and its lowest rank: the first cause that a member reported.
  std::map<std::pair<std::size_t, int>, std::string> causes = {};
  std::uint64_t calls = 0;  ///< that returned ok
  std::uint64_t failed_calls = 0;
  std::uint64_t survivors = 0;         ///< teams of survivors that were made
  std::vector<std::size_t> left = {};  ///< by team: members that have left it, or its survivors, in peace
  bool waits_in_vain = false;          ///< a rank has waited for a member that had left in peace
  std::vector<Phase> phases = {};      ///< by rank: what it is doing
  std::vector<bool> has_played = {};   ///< by rank
  std::vector<std::array<int, kPhases>> visits = {};  ///< by rank: how often it has come to each phase

  void fail(int rank, const std::string& what);
  /// The rank that runs comes to a phase, and maybe to what happens to it there.
  void enter(int rank, Phase phase);
};

class Player {
 public:
  Player(Stage& stage, torii_context* context, int rank);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;
  void play();

 private:
  /// One call and its vectors, which stay until the end of the history: a call that failed may still be read from.
  struct Call {
    std::size_t step = 0;
    std::size_t team = 0;
    CallSpec spec;
    bool is_checked = true;
    bool was_right = false;
    std::byte* input = nullptr;
    std::byte* result = nullptr;
    int ranks = 0;  ///< of the team, and this rank in it
    int rank = 0;
    torii_request* request = nullptr;
    std::size_t due = 0;  ///< the step before which it is waited for
  };

  bool make_world();
  void split(const Step& step);
  void run(std::size_t index);
  void refuse(std::size_t index);
  void wait_until(std::size_t step);
  void end_team(std::size_t team);
  void go_on_with_survivors(std::size_t team);
  Call& make(std::size_t index, const CallSpec& spec, Memory where);
  std::byte* memory(std::size_t bytes, Memory where);
  torii_call words_of(const Call& call) const;
  /// Empty, or where the result is wrong.
  std::string difference(const Call& call) const;
  void judge(Call& call, torii_status status);
  void judge_failure(std::size_t team, torii_status status, const std::string& where);
  std::string where(std::size_t step, std::size_t team) const;
  /// Calls the library, in time.
  template <class Body>
  torii_status timed(Phase phase, const Body& body);

  Stage& stage_;
  const History& history_;
  torii_context* context_;
  int rank_;
  std::vector<torii_team*> teams_;
  std::deque<Call> calls_;
  std::deque<std::vector<std::byte>> private_memory_;
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::vector<std::unique_ptr<void, Free>> adopted_memory_;
  std::vector<void*> arena_memory_;
  std::vector<torii_region*> regions_;
};

}  // namespace torii::faults
