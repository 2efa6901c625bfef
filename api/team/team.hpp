// SPDX-License-Identifier: Apache-2.0
// An ordered set of ranks with a topology: the calls of the interface.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/agreement/membership.hpp"
#include "api/agreement/team_agreement.hpp"
#include "api/agreement/trouble.hpp"
#include "api/calls/last_error.hpp"
#include "api/calls/plan_maker.hpp"
#include "api/calls/request.hpp"
#include "api/calls/team_options.hpp"
#include "api/context/context.hpp"
#include "api/installation/plan_cache.hpp"
#include "api/installation/staging_budget.hpp"
#include "api/running/operations.hpp"
#include "runtime/plan/leaves.hpp"

namespace torii {

class Team final {
 public:
  /// Ranks of equal colour, ordered by (key, rank); nullptr for colour -1. Collective over this team.
  std::unique_ptr<Team> split(int color, int key, const TeamOptions& options);
  /// For split(): Bootstrap::decide() over this team's members.
  bool decide_split(bool agreed);
  /// The living members of a poisoned team, but those that the options leave out. Collective over them. `trouble`: why
  /// this rank's call makes no sense, which fails the others' calls too.
  std::unique_ptr<Team> survivors(const TeamOptions& options, const Trouble& trouble);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const noexcept { return members_.rank(); }
  int ranks() const noexcept { return members_.ranks(); }
  Context& context() noexcept { return members_.context(); }
  const Membership& members() const noexcept { return members_; }
  const TeamHealth& health() const noexcept { return operations_.health(); }
  const Topology& topology() const noexcept { return maker_.topology(); }

  /// Reads the request's lengths, checks the call and makes a call plan for the caller alone. nullptr with last_error()
  /// set, and the status.
  std::unique_ptr<const CallPlan> prepare(Request& request, Status& status) noexcept {
    return operations_.prepare(request, status);
  }
  /// Whether the call can be made; otherwise last_error() and the status are set.
  bool may_make(Request& request, Status& status) noexcept { return operations_.may_make(request, status); }
  /// Starts or queues, and lets other threads move the operation. The request must stay where it is until it is done.
  Status submit(Request& request) noexcept { return operations_.submit(request); }
  /// A channel of its own for a persistent operation; collective.
  Status open_channel(Request& request) noexcept { return operations_.open_channel(request); }
  /// Gives the channel to the next persistent operation. Collective in the sense of order only: nobody waits.
  Status close_channel(const Request& request) noexcept { return operations_.close_channel(request); }
  /// Waits for the end. Returns ok, or why the caller may not wait now, as all functions for requests below.
  Status wait(Request& request) noexcept { return operations_.waits().wait(request); }
  /// Waits for `most_ns` at the longest. If the request has not ended by then, last_error() says what it waits for.
  HasEnded wait(Request& request, std::int64_t most_ns) noexcept { return operations_.waits().wait(request, most_ns); }
  /// wait() for a request of which this call keeps the memory. A request that has started must not be left behind
  /// because another caller, against the rules, is inside.
  void wait_to_end(Request& request) noexcept;
  /// submit() and wait().
  Status run(Request& request) noexcept { return operations_.run(request); }
  /// run() for a call like the last one, the most frequent case: its call plan exists, and only the buffers are new.
  /// False for another call, or if other operations are in flight: the caller then uses run(). (An optional status
  /// would be returned through memory, written as two words and read as one, for which processors wait.)
  bool run_cached(const CallKey& call, Status& status) noexcept { return operations_.run_cached(call, status); }
  /// The same for a plain pairwise exchange of unequal blocks of any lengths.
  bool run_blocks(const CallArguments& arguments, Status& status) noexcept {
    return operations_.block_calls().run(arguments, status);
  }
  /// Moves this team's operations once.
  HasEnded test(Request& request) noexcept { return operations_.waits().test(request); }
  /// Takes a receive back, unless it has met its send.
  Status cancel(Request& request, bool& is_cancelled) noexcept { return operations_.cancel(request, is_cancelled); }
  /// invalid_argument, with last_error(), if every call would be refused now. That is so in a forked child, and while
  /// another thread is inside a team with one caller at a time.
  Status check_caller() noexcept { return operations_.waits().check_caller(); }
  /// For several calls that are one to the caller, and for code that counts the calls that it refuses. Refuses as
  /// check_caller() does, and keeps others out between its calls.
  [[nodiscard]] Hold hold() noexcept { return operations_.waits().hold(); }

  /// For a request that has been started: calls `done` once when it ends, or now if it has.
  Status call_when_done(Request& request, torii_done_function done, void* data) noexcept {
    return operations_.call_when_done(request, done, data);
  }
  /// Grows whenever an operation of this team moves, whoever moves it. From any thread.
  std::uint64_t moves() const noexcept { return operations_.moves(); }

  /// The owner leaves the team while its requests are still there. Operations in flight end with status `aborted`, and
  /// the members learn that this rank makes no more calls. Nothing may be started afterwards.
  Status leave() noexcept;
  void abort(const std::string& reason) noexcept { operations_.abort(reason); }
  /// A call of this rank cannot go on: the team fails. Returns the cause that all members report; last_error() has its
  /// text.
  Status give_up(Status status, const std::string& reason) noexcept { return operations_.give_up(status, reason); }
  /// Sets last_error() to why the team failed: for requests that ended with the team, before anybody waited for them.
  void tell_cause() const noexcept;
  /// A call was refused, for this reason, before it came to submit(), run() or open_channel(), which count what they
  /// refuse themselves. It counts as this rank's call: the team fails if other ranks made that call.
  void count_refusal(const char* reason) noexcept { operations_.count_refusal(reason); }
  /// How many calls this rank has made or refused.
  std::uint64_t calls() const noexcept { return operations_.calls(); }
  /// Agrees with all members on which leaves each has, and keeps the intervals for as long as the team lives; equal
  /// ones have one address. Collective, blocking. Throws Error{invalid_argument} with the same text on all members if
  /// the claims do not fit together, and the Error of the exchange.
  const LeafIntervals& agree_on_leaves(const LeafClaim& own);
  /// How many calls of this team move at once.
  std::size_t shared_channels() noexcept { return operations_.channels().shared(); }
  /// The most transfers of any operation of this rank in flight. From any thread.
  int transfers_in_flight_most() noexcept { return operations_.channels().transfers_in_flight_most(); }

 private:
  Team(Context& context, const TeamOptions& options, std::vector<Member> members, int ranks_reserved);
  Team(std::size_t shared_channels, Context& context, const TeamOptions& options, std::vector<Member> members,
       int ranks_reserved);
  friend class TeamFactory;

  Membership members_;
  std::unique_ptr<TeamAgreement> agreement_;
  StagingBudget staging_;
  PlanMaker maker_;
  std::vector<std::unique_ptr<const LeafIntervals>> leaves_;  ///< to which calls and plans point
  PlanCache plans_;
  Operations operations_;
  const bool follows_caches_;   ///< TeamOptions::follows_caches
  std::mutex survivors_mutex_;  ///< held by a thread that asks for survivors
  bool survivors_made_ = false;
  bool owns_memory_ = false;  ///< all members have made their object: until then no member puts or departs
};

}  // namespace torii
