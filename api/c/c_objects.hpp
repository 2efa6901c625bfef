// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of the C interface, and how its functions answer.
#pragma once

#include <torii/torii.h>

#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "api/c/c_pairs.hpp"
#include "api/c/group_pool.hpp"
#include "api/redistribution/redistribution.hpp"
#include "api/team/team.hpp"

struct torii_context {
  torii::Context context;
  std::atomic<int> teams = 0;  ///< made and destroyed by any thread, where the members are named
};

/// The part of a team that its leaves keep.
struct torii_team_life {
  std::atomic<torii_team*> team;  ///< nullptr when it has been destroyed
};

struct torii_team {
  static std::uint64_t next_number() noexcept {
    static std::atomic<std::uint64_t> last = 0;
    return last.fetch_add(1, std::memory_order_relaxed);
  }
  torii_context* context;
  std::unique_ptr<torii::Team> team = {};
  /// The number of users: the caller's handle and its requests. The last one to go destroys the team. Any thread, if
  /// the team has many callers.
  std::atomic<int> users = 1;
  std::atomic<bool> is_destroyed = false;  ///< its last requests are still to be freed
  std::atomic<int> open_groups = 0;        ///< of all threads
  /// Tells the team from an earlier one at the same address, in which a thread may have left a group open.
  const std::uint64_t number = next_number();
  torii::Scratch scratch = {};
  std::shared_ptr<torii_team_life> life = {};  ///< from its first leaves on
  torii::c::GroupPool group_pool = {};
};

struct torii_leaves {
  std::shared_ptr<const torii_team_life> life;
  const torii::LeafIntervals* intervals;  ///< the team's

  torii_team* team() const noexcept { return life->team.load(std::memory_order_relaxed); }
};

struct torii_request {
  torii_team* owner;
  torii::Request request;
  std::optional<torii::c::PairRequest> pair = {};  ///< of a send or a receive
  bool active = false;                             ///< started and not yet waited for
};

namespace torii::c {

using torii::kForked;

inline torii_status to_c(Status status) { return static_cast<torii_status>(status); }

inline torii_status refuse(Status status, const std::string& text) {
  set_last_error(text);
  return to_c(status);
}

/// The handle or a request of the team is gone.
inline void leave(torii_team* team) noexcept {
  if (--team->users != 0) return;
  torii_context* const context = team->context;
  delete team;
  --context->teams;
}

inline torii_status invalid(const std::string& text) { return refuse(Status::invalid_argument, text); }

/// A call on a team was refused, as `status` and last_error() say, before the team saw it. It counts as this rank's
/// call all the same, so that the calls of its peers pair with the right ones.
inline torii_status refused_on(torii_team* team, torii_status status) {
  if (team != nullptr) team->team->operations().count_refusal(last_error());
  return status;
}

/// Code that makes calls of the team itself. If it fails before the first of them, that counts as this rank's call.
template <typename Body>
torii_status counted(torii_team* team, Body&& body) noexcept {
  const std::uint64_t before = team->team->operations().calls();
  const torii_status status = body();
  return status == TORII_OK || team->team->operations().calls() != before ? status : refused_on(team, status);
}

inline bool is_from_0_to(int number, int last) { return number >= 0 && number <= last; }

inline constexpr int kTypeLast = TORII_FLOAT8_E5M2;
inline constexpr int kOpLast = TORII_PREMUL_SUM;

inline bool are_known(int type, int op) { return is_from_0_to(type, kTypeLast) && is_from_0_to(op, kOpLast); }

inline torii_status unknown(int type, int op) {
  return invalid("type is " + std::to_string(type) + " and op " + std::to_string(op) + "; types end at " +
                 std::to_string(kTypeLast) + ", operations at " + std::to_string(kOpLast));
}

/// Runs code that may throw, and answers as the C interface does. The code makes no system call at which a cancelled
/// thread would end.
template <typename Body>
torii_status answered(Body&& body) noexcept {
  try {
    body();
    return TORII_OK;
  } catch (const Error& error) {
    return refuse(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return refuse(Status::no_resource, "out of memory");
  } catch (const std::exception& error) {
    return refuse(Status::internal, error.what());
  } catch (...) {
    return refuse(Status::internal, "a function of the caller threw what is no std::exception; it must not throw");
  }
}

}  // namespace torii::c
