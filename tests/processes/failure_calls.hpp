// SPDX-License-Identifier: Apache-2.0
// What failure_rank makes its modes of: a rank with its team, calls on it, what it says of their ends, and damage to
// the streams of its process.
#pragma once

#include <torii/torii.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace torii::tests {

/// Writes a line to stdout in one piece, so that the lines of ranks on one pipe stay whole.
void say(const std::string& line);
/// Says that something has just happened, and when.
void say_time(const char* what);
/// Says when the damage is done.
void say_event();
/// Ends the TCP stream of this process that has carried most.
void cut_busiest_stream();
/// Nothing comes through that stream any more, answers to what it has sent included, and nobody is told: a cut cable.
void deafen_busiest_stream();

/// Makes the child process that FAILURE_CHILD names, which lives for 3 s: fork, background (exec'ed). `exec`: this
/// process becomes another program. Otherwise does nothing. (`adopts`: the chosen rank has adopted memory and a child
/// from the beginning.)
void leave_child();

struct Arguments {
  std::string mode;
  int rank = 0;
  int delay_us = 0;
  std::size_t count = 1000;
};

/// A rank of the job with its world team.
class FailureCalls {
 public:
  explicit FailureCalls(const Arguments& arguments);

 protected:
  bool chosen() const { return team_.rank() == arguments_.rank; }
  /// Runs `action` on the chosen rank, beside its calls, when the delay is over.
  std::thread later(std::function<void()> action) const;
  torii_call allreduce_call();
  void say_status(torii_status status) const;
  /// Calls until one fails, and says how.
  torii_status call_until_failure();
  /// Makes, starts and frees a persistent operation.
  torii_status run_persistent(const torii_call& call);
  /// The first bad status is said; all bad ones must be equal.
  torii_status worse(torii_status before, torii_status now);
  /// After the failure: every kind of call says poisoned.
  bool is_poisoned();
  bool knows_lost(int expected) const;
  /// A team of those that live, and calls on it whose results are checked.
  bool survivors_work(int expected_ranks);
  /// The chosen rank wants another algorithm for the survivors than the others.
  int survivors_differ();
  /// The team is poisoned and its survivors work: the exit code of the rank.
  int end(int expected_survivors);

  Arguments arguments_;
  torii::Context context_;
  torii::Team team_;
  std::vector<std::int64_t> input_;
  std::vector<torii::Region> adopted_;  ///< the memory of input_, or nothing
  std::vector<std::int64_t> result_;
};

}  // namespace torii::tests
