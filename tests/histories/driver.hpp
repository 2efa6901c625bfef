// SPDX-License-Identifier: Apache-2.0
// Plays a history as one rank, and judges what every call returned.
#pragma once

#include <torii/torii.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/histories/forked_child.hpp"
#include "tests/histories/gapped_call.hpp"
#include "tools/torii-sim/faults/history.hpp"
#include "tools/torii-sim/faults/vectors.hpp"

namespace torii::tests {

using faults::CallVectors;
using faults::Deviation;
using faults::DrawnCall;
using faults::History;
using faults::Manner;
using faults::Place;
using faults::Step;
using faults::Vector;
using faults::Words;

/// What the ranks of one history have in common.
struct HistoryJob {
  const History& history;
  bool causes_agree = true;  ///< on one node all members report the same cause
  std::mutex mutex;
  std::map<std::pair<std::size_t, int>, std::string>
      causes;  ///< by team and its lowest rank: the first that was reported
};

class Driver {
 public:
  /// `base` is a team of all ranks that no history fails.
  Driver(HistoryJob& job, torii_context* context, torii_team* base);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  void play();

 private:
  /// One call and its vectors, which stay until the end of the history: a call that failed may still be read from.
  struct Call {
    std::size_t step = 0;
    std::size_t team = 0;
    DrawnCall spec;
    Place place;
    bool is_checked = true;
    CallVectors vectors;
    std::unique_ptr<GappedCall> gaps;  ///< nullptr: the call is made with the vectors themselves
    torii_request* request = nullptr;
    std::size_t due = 0;  ///< the step before which it is waited for
  };

  void split(const Step& step);
  void run(std::size_t index);
  void run_persistent(Call& call, const torii_call& made);
  void abort(torii_team* team) const;
  void refuse(std::size_t index);
  void wait_until(std::size_t step);
  void end(std::size_t team);
  void make_survivors(std::size_t team);
  torii_status ask_for_survivors(std::size_t team, bool is_first, torii_team*& survivors);
  void fork_child(std::size_t team);
  Call& make(std::size_t index, const DrawnCall& spec, bool in_arena);
  Vector memory(std::size_t bytes, bool in_arena);
  void judge(Call& call, torii_status status);
  void judge_failure(std::size_t team, torii_status status, const std::string& where);
  std::string where(std::size_t step, std::size_t team) const;

  HistoryJob& job_;
  const History& history_;
  torii_context* context_;
  torii_team* base_;
  int rank_;
  std::vector<torii_team*> teams_;
  std::deque<Call> calls_;
  std::deque<std::vector<std::byte>> private_memory_;
  std::vector<void*> arena_memory_;
  std::deque<ForkedChild> children_;
};

}  // namespace torii::tests
