// SPDX-License-Identifier: Apache-2.0
// A network in parts that threads move on at once: the outcome is that of one part, to the tick.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/transports/simulated/calls.hpp"
#include "tools/simulation/parts.hpp"
#include "tools/simulation/windows.hpp"

namespace torii::simulated {
namespace {

void expect_equal(Call call, const std::string& which) {
  call.parts = 1;
  const Outcome whole = run(call);
  for (const int parts : {2, 3, 5, 36}) {
    call.parts = parts;
    ASSERT_EQ(parts_of(call), parts) << which;
    const Outcome divided = run(call);
    EXPECT_EQ(divided.time, whole.time) << which << ", " << parts << " parts";
    EXPECT_EQ(divided.messages, whole.messages) << which << ", " << parts << " parts";
    EXPECT_EQ(divided.credits, whole.credits) << which << ", " << parts << " parts";
    EXPECT_EQ(divided.lists, whole.lists) << which << ", " << parts << " parts";
    EXPECT_EQ(divided.link_bytes, whole.link_bytes) << which << ", " << parts << " parts";
    EXPECT_EQ(divided.progress, whole.progress) << which << ", " << parts << " parts";
    ASSERT_EQ(divided.uses.size(), whole.uses.size()) << which << ", " << parts << " parts";
    for (std::size_t use = 0; use < whole.uses.size(); ++use) {
      EXPECT_EQ(divided.uses[use].begin, whole.uses[use].begin) << which << ", " << parts << " parts, use " << use;
      EXPECT_EQ(divided.uses[use].message, whole.uses[use].message) << which << ", " << parts << " parts, use " << use;
    }
  }
}

Call trees_call(Collective collective, std::size_t bytes) {
  return make_call("trinaryx3", request_on("torus:4x3x3", 36, 2 << 10, collective), bytes);
}

TEST(Parts, ChangeNothing) {
  for (const Collective collective : {Collective::allreduce, Collective::broadcast, Collective::reduce}) {
    for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{1} << 18}) {
      const std::string which = std::string(name(collective)) + " of " + std::to_string(bytes);
      Call call = trees_call(collective, bytes);
      call.watched = 7;
      expect_equal(call, which);
      call.lists = false;
      call.network.engines = 1;
      expect_equal(call, which + ", one engine, lanes");
      call.skew_us = 30;
      call.reduce_GBps = 2;
      expect_equal(call, which + ", skew and folding");
      call.network.engine_rates = {0.5};
      expect_equal(call, which + ", slow engine");
    }
  }
}

TEST(Parts, ChangeNothingWithFewSlotsAndBalancedEngines) {
  Call call = trees_call(Collective::allreduce, std::size_t{1} << 18);
  call.network.engine_rates = {1, 1, 1, 0.1};
  expect_equal(call, "balanced engines");
  PlanRequest request = call.request;
  request.tuning.slots = request.tuning.window = 2;
  call = make_call("trinaryx3", request, std::size_t{1} << 18);
  call.network.alpha_us = 0.0625;
  expect_equal(call, "two slots");
}

TEST(Parts, AreThoseOfRanksThatShareNoLinks) {
  Call call = trees_call(Collective::allreduce, std::size_t{1} << 16);
  EXPECT_EQ(parts_of(call), 1) << "so few ranks are not worth a thread";
  call.parts = 4;
  EXPECT_EQ(parts_of(call), 4);
  const auto expect_one = [&](const char* why, auto change) {
    Call changed = call;
    change(changed);
    EXPECT_EQ(parts_of(changed), 1) << why;
  };
  expect_one("jitter is a hash of the number of messages so far", [](Call& one) { one.network.jitter_us = 1; });
  expect_one("rates change whenever a message ends", [](Call& one) { one.network.sharing = Sharing::maxmin; });
  expect_one("ports are shared", [](Call& one) { one.network.ports = true; });
  expect_one("windows have no length", [](Call& one) { one.network.alpha_us = 0; });
  expect_one("payloads are copied when they arrive", [](Call& one) { one.fill = [](int, std::byte*) {}; });
  call = make_call("recursive_doubling", request_on("torus:4x4", 16, 2 << 10), 1 << 10);
  call.parts = 4;
  EXPECT_EQ(parts_of(call), 1) << "its messages go over several links";
  call = make_call("a2at", request_on("torus:4x4", 16, 2 << 10, Collective::alltoall), 1 << 14);
  call.parts = 4;
  EXPECT_EQ(parts_of(call), 1) << "its messages go over several links";
}

TEST(Parts, NameWhoWaitsForEver) {
  Call call = make_call("trinaryx3", request_on("torus:3x3", 9, 1 << 10), 1 << 10);
  call.parts = 3;
  for (Lane& lane : call.plans[4].lanes) lane.flows.front().targets.clear();
  try {
    run(call);
    FAIL() << "ended without rank 4's messages";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::internal);
    EXPECT_NE(std::string(error.what()).find("9 ranks wait for ever; rank 0 in '"), std::string::npos) << error.what();
  }
}

TEST(Windows, RunEachPartOnceInEach) {
  constexpr int kParts = 7;
  for (const int threads : {1, 2, 5}) {
    std::vector<int> runs(kParts, 0);  // of different threads, one after the other
    int windows = 0;
    run_windows(
        kParts, threads, [&](int part) { ++runs[static_cast<std::size_t>(part)]; },
        [&] {
          ++windows;
          for (const int run : runs) EXPECT_EQ(run, windows);
          return windows < 1000;
        });
    EXPECT_EQ(windows, 1000);
  }
}

}  // namespace
}  // namespace torii::simulated
