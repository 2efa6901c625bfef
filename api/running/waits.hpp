// SPDX-License-Identifier: Apache-2.0
// The waits of a team: for the end of an operation. Other callers, and threads that move operations in the
// background, take turns with them.
#pragma once

#include <cstdint>
#include <limits>

#include "api/agreement/membership.hpp"
#include "api/calls/polling.hpp"
#include "api/calls/request.hpp"
#include "api/context/attached_team.hpp"
#include "api/context/context.hpp"
#include "api/running/caller_lock.hpp"
#include "api/running/channels.hpp"
#include "api/running/entry.hpp"
#include "api/running/failure_monitor.hpp"
#include "api/running/in_flight.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {

/// How often a blocking call looks at its own operation before it waits for good.
inline constexpr auto kQuickPolls = tuned<int>("waiting.call_polls");
/// A point in time, or a length of time, that does not end a wait.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// The answer to a caller that asks for the end of a request; it may be refused, with last_error().
enum class HasEnded : std::uint8_t { no, yes, refused };

/// For the team's caller, or callers. "Inside" are functions for a thread that enter() has let in: it holds the lock.
class Waits {
 public:
  /// The arguments must outlive this. `team` is what the background knows the team as; `many_callers`: several threads
  /// may call at once.
  Waits(const Membership& members, const Channels& channels, FailureMonitor& monitor, InFlight& in_flight,
        AttachedTeam& team, bool many_callers);

  /// For every call on the team, before it does anything else.
  [[nodiscard]] Entry enter() noexcept { return {context_, use_, lock_}; }
  /// For several calls that belong together.
  [[nodiscard]] Hold hold() noexcept { return {context_, use_, lock_}; }
  /// Sets last_error(), as Entry::refuse() does, where enter() would refuse now.
  Status check_caller() const noexcept;
  TeamUse& use() noexcept { return use_; }
  /// Whether the context has several nodes, for CancellationHeld: a call of this team may move those of other teams.
  bool several_nodes() const noexcept { return several_nodes_; }

  /// Waits for the end. Returns ok, or why the caller may not wait now.
  Status wait(Request& request) noexcept;
  /// Waits for `most_ns` at the longest. If the request has not ended by then, last_error() says what it waits for.
  HasEnded wait(Request& request, std::int64_t most_ns) noexcept;
  /// Moves the team's operations once.
  HasEnded test(Request& request) noexcept;
  /// Inside: the rest of a blocking call that has started. Returns its status, with last_error() if it has failed.
  Status run_to_completion(Request& request) noexcept;
  /// The same for a request that has been polled already.
  Status resume(Request& request) noexcept;

  /// Inside: the caller leaves an operation in flight, which other threads may move until nothing is in flight.
  void enter_background() noexcept {
    if (!use_.has(TeamUse::kInBackground) && !in_flight_.is_idle()) {
      use_.add(TeamUse::kInBackground);
      context_.background().enter(&team_);
    }
  }
  /// Nobody moves operations afterwards.
  void close() noexcept;
  /// As of AttachedTeam.
  bool progress_in_background() noexcept;

 private:
  bool progress() noexcept;
  void poll_quickly(Request& request) noexcept;
  void poll_then_wait(Request& request) noexcept;
  bool wait_until(Request& request, std::int64_t end_ns) noexcept;
  bool ends_within(Request& request, std::int64_t most_ns) noexcept;
  bool ends_with(const Request& request) noexcept;
  Polling& polling_of(Request& request) noexcept;
  void run_slow_checks(const Waiting& waiting, Request& request) noexcept;

  Context& context_;
  const Membership& members_;
  const Channels& channels_;
  FailureMonitor& monitor_;
  InFlight& in_flight_;
  AttachedTeam& team_;
  const bool several_nodes_;
  Polling polling_;  ///< for requests without a deadline of their own
  TeamUse use_;
  CallerLock lock_;
};

}  // namespace torii
