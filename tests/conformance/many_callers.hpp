// SPDX-License-Identifier: Apache-2.0
// Teams of threads whose team many threads may use.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>

#include "tests/conformance/numbered_operation.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {

/// A part of all members that many threads may use. Collective.
inline torii_team* shared_part(torii_team* parent, std::size_t segment_bytes = 0) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.many_callers = 1;
  options.segment_bytes = segment_bytes;
  torii_team* part = nullptr;
  EXPECT_EQ(torii_team_split(parent, 0, 0, &options, &part), TORII_OK) << last_error();
  return part;
}

/// Runs `body(context, team)` on every rank, with a team that many threads may use.
inline void run_shared(const ThreadTeam& options, const std::function<void(torii_context*, torii_team*)>& body) {
  run_as_threads(options, [&](torii_context* context, torii_team* parent) {
    torii_team* const team = shared_part(parent);
    ASSERT_NE(team, nullptr);
    body(context, team);
    EXPECT_EQ(torii_team_destroy(team), TORII_OK) << last_error();
  });
}

inline void start(torii_team* team, Operation& one) {
  const torii_call call = one.call();
  ASSERT_EQ(torii_start(team, &call, &one.request), TORII_OK) << last_error();
}

inline void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

}  // namespace torii::tests
