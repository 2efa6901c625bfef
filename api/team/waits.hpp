// SPDX-License-Identifier: Apache-2.0
// The waits of a team: for the end of an operation, and in the start of a call. Other callers, and threads that move
// operations in the background, take turns with them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "api/context/attached_team.hpp"
#include "api/context/context.hpp"
#include "api/team/channels.hpp"
#include "api/team/failure_monitor.hpp"
#include "api/team/in_flight.hpp"
#include "api/team/inside.hpp"
#include "api/team/membership.hpp"
#include "api/team/polling.hpp"
#include "api/team/request.hpp"
#include "api/team/start_waits.hpp"
#include "api/team/team_agreement.hpp"
#include "runtime/execution/waiting.hpp"

namespace torii {

/// How often a blocking call looks at its own operation before it waits for good.
inline constexpr int kQuickPolls = 30;
/// A point in time, or a length of time, that does not end a wait.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// For the team's caller, or callers. "Inside" are functions for a thread that holds inside().
class Waits final : public StartWaits {
 public:
  /// The arguments must outlive this. `team` is what the background knows the team as; `many_callers`: several threads
  /// may call at once.
  Waits(const Membership& members, TeamAgreement& agreement, const Channels& channels, FailureMonitor& monitor,
        InFlight& in_flight, AttachedTeam& team, bool many_callers);

  /// Keeps other callers and the background out while it lives; costs nothing if there is nobody.
  [[nodiscard]] Inside inside() noexcept { return {door_, is_shared()}; }
  bool is_shared() const noexcept { return many_callers_ || in_background_; }

  /// Waits for `most_ns` at the longest. False if the request has not ended by then; last_error() says what it waits
  /// for.
  bool wait(Request& request, std::int64_t most_ns) noexcept;
  /// Moves the team's operations once; true when the request has ended.
  bool test(Request& request) noexcept;
  /// Inside: the rest of a blocking call that has started. Returns its status, with last_error() if it has failed.
  Status run_to_end(Request& request) noexcept;
  /// The same for a request that has been polled already.
  Status run_on(Request& request) noexcept;

  /// Inside: the caller leaves an operation in flight, which other threads may move until nothing is in flight.
  void enter_background() noexcept {
    if (!in_background_ && !in_flight_.is_idle()) {
      in_background_ = true;
      context_.background().enter(&team_);
    }
  }
  /// Nobody moves operations afterwards.
  void close() noexcept;
  /// As of AttachedTeam.
  bool progress_in_background() noexcept;

  // Inside, in the start of a call. A call that is half started must not meet others: nobody else comes in meanwhile.
  void wait_for(int member, const std::string& purpose, const std::function<bool()>& is_there) override;
  void finish_all() override;

 private:
  bool progress() noexcept;
  void wait_for_end(Request& request) noexcept;
  bool wait_until(Request& request, std::int64_t end_ns) noexcept;
  bool has_ended(const Request& request) noexcept;
  Polling& polling_of(Request& request) noexcept;
  void check(const Waiting& waiting, const Request& request) noexcept;
  void wait_inside(const std::function<bool()>& is_over, const std::function<bool(const Waiting&)>& finds_failure);

  Context& context_;
  const Membership& members_;
  TeamAgreement& agreement_;
  const Channels& channels_;
  FailureMonitor& monitor_;
  InFlight& in_flight_;
  AttachedTeam& team_;
  Polling polling_;  ///< for requests without a deadline of their own
  const bool many_callers_;
  bool in_background_ = false;
  Door door_;
};

}  // namespace torii
