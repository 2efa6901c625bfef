// SPDX-License-Identifier: Apache-2.0
// Sends, receives and groups of the C++ interface, as functions of Team. Included by torii.hpp.
#pragma once

#include <torii/torii.h>
#include <torii/call.hpp>
#include <torii/request.hpp>

#include <span>
#include <utility>

namespace torii {
inline namespace cpp {

/// A group of calls of this thread, from its making to end(): sends and receives only start, and blocking collectives
/// only join (send_recv.h). Belongs to its thread, and must not outlive the team.
class Group {
 public:
  /// Throws Failure if the thread is in a group of the team already.
  explicit Group(torii_team* team) : team_(team) { check(torii_group_begin(team)); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  /// Ends a group that has not been ended, also after an exception: the calls that have joined are made, and it waits
  /// for all. The status is lost, so call end() where it matters.
  ~Group() {
    if (team_ != nullptr) (void)torii_group_end(team_);
  }
  /// Makes the collectives, waits for all, and returns the first status that is not TORII_OK. Once;
  /// TORII_INVALID_ARGUMENT afterwards.
  [[nodiscard]] torii_status end() noexcept { return torii_group_end(std::exchange(team_, nullptr)); }

 private:
  torii_team* team_;
};

/// `Team` has handle().
template <typename Team>
class SendsAndReceives {
 public:
  /// Sends to one rank, and receives from one, or from TORII_ANY_RANK; send_recv.h says when they return. `received`
  /// tells what has come; result.size() is the most.
  template <typename Element>
  [[nodiscard]] torii_status send(std::span<Element> data, int to, int tag = 0) noexcept {
    return torii_send(handle(), data.data(), data.size(), type_of<Element>(), to, tag);
  }
  template <typename Element>
  [[nodiscard]] torii_status recv(std::span<Element> result, int from = TORII_ANY_RANK, int tag = TORII_ANY_TAG,
                                  torii_received* received = nullptr) noexcept {
    return torii_recv(handle(), result.data(), result.size(), type_of<Element>(), from, tag, received);
  }
  /// The same, started. Throw Failure.
  template <typename Element>
  Request start_send(std::span<Element> data, int to, int tag = 0) {
    torii_request* request = nullptr;
    check(torii_start_send(handle(), data.data(), data.size(), type_of<Element>(), to, tag, &request));
    return Request(request);
  }
  template <typename Element>
  Request start_recv(std::span<Element> result, int from = TORII_ANY_RANK, int tag = TORII_ANY_TAG,
                     torii_received* received = nullptr) {
    torii_request* request = nullptr;
    check(torii_start_recv(handle(), result.data(), result.size(), type_of<Element>(), from, tag, received, &request));
    return Request(request);
  }
  /// Calls `body()` in a group, whose calls on this team start or join, and waits for all of them. No order of these
  /// calls is a deadlock. Returns the first status that is not TORII_OK. What the body throws is thrown, after the
  /// wait.
  template <typename Body>
  [[nodiscard]] torii_status group(Body&& body) {
    if (const torii_status begun = torii_group_begin(handle()); begun != TORII_OK) return begun;
    try {
      std::forward<Body>(body)();
    } catch (...) {
      (void)torii_group_end(handle());
      throw;
    }
    return torii_group_end(handle());
  }
  /// The same as an object: `auto group = team.begin_group(); ...; check(group.end());`. Throws Failure.
  Group begin_group() { return Group(handle()); }

 protected:
  SendsAndReceives() = default;
  ~SendsAndReceives() = default;

 private:
  torii_team* handle() const noexcept { return static_cast<const Team*>(this)->handle(); }
};

}  // namespace cpp
}  // namespace torii
