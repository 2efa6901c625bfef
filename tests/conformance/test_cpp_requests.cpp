// SPDX-License-Identifier: Apache-2.0
// The C++ interface: several requests, ends that are told, groups, lists of blocks, factors, event loops.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>
#include <torii/torii.hpp>

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

void as_team_of(int ranks, const std::function<void(Team& team)>& work) {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* whole) {
    torii_team* all = nullptr;
    ASSERT_EQ(torii_team_split(whole, 0, 0, nullptr, &all), TORII_OK) << torii_last_error();
    Team team(all);
    work(team);
  });
}

TEST(CppRequests, OfAListAreTestedAndAwaited) {
  as_team_of(2, [](Team& team) {
    std::array<std::vector<int>, 4> data;
    const auto begin = [&] {
      std::vector<Request> requests;
      for (std::vector<int>& one : data) {
        one.assign(1000, team.rank() + 1);
        requests.push_back(team.start(allreduce(one, std::span(one))));
      }
      return requests;
    };
    torii_status status = TORII_INTERNAL;
    std::vector<Request> requests = begin();
    ASSERT_EQ(wait_all(requests), TORII_OK) << torii_last_error();
    for (const Request& request : requests) EXPECT_FALSE(request);
    for (const std::vector<int>& one : data) EXPECT_EQ(one[999], 3);
    EXPECT_EQ(wait_any(requests, status), -1) << "none is running";
    EXPECT_EQ(status, TORII_OK);

    requests = begin();
    std::vector<bool> has_ended(4, false);
    for (int i = 0; i < 4; ++i) {
      const int index = wait_any(requests, status);
      ASSERT_TRUE(index >= 0 && index < 4);
      EXPECT_EQ(status, TORII_OK);
      EXPECT_FALSE(has_ended[static_cast<std::size_t>(index)]);
      has_ended[static_cast<std::size_t>(index)] = true;
    }
    requests = begin();
    for (int left = 4; left > 0;) {
      if (test_any(requests, status) >= 0) --left;
      EXPECT_EQ(status, TORII_OK);
    }
    requests = begin();
    while (!test_all(requests, status)) {
    }
    EXPECT_EQ(status, TORII_OK);
    requests = begin();
    std::size_t ended = 0;
    while (ended < 4) {
      for (const Ended& one : wait_some(requests)) {
        EXPECT_EQ(one.status, TORII_OK);
        EXPECT_EQ(data[static_cast<std::size_t>(one.index)][0], 3);
        ++ended;
      }
    }
    EXPECT_TRUE(wait_some(requests).empty());
    EXPECT_EQ(wait_all({}), TORII_OK) << "of no requests";
  });
}

TEST(CppRequests, TellTheirEnd) {
  as_team_of(2, [](Team& team) {
    std::vector<int> data(100, 1);
    const auto told = std::make_shared<std::vector<torii_status>>();
    {
      Request request = team.start(allreduce(data, std::span(data)));
      // The function lives with the request: what it holds is held until the end has been told.
      ASSERT_EQ(request.on_done([held = told](torii_status status) { held->push_back(status); }), TORII_OK);
      Request moved = std::move(request);
      ASSERT_EQ(moved.wait(), TORII_OK) << torii_last_error();
      EXPECT_EQ(*told, std::vector<torii_status>{TORII_OK});
      EXPECT_EQ(moved.on_done([](torii_status) {}), TORII_INVALID_ARGUMENT) << "it runs no more";
    }
    EXPECT_EQ(told.use_count(), 1);
    Request often = team.prepare(allreduce(data, std::span(data)));
    int first = 0;
    int second = 0;
    for (int round = 1; round <= 3; ++round) {
      // Rank 1 comes when rank 0 has both functions, so that the operation cannot end between them.
      int token = 0;
      if (team.rank() == 1) {
        ASSERT_EQ(team.recv(std::span(&token, 1), 0), TORII_OK);
      }
      ASSERT_EQ(often.restart(), TORII_OK);
      if (team.rank() == 0) {
        ASSERT_EQ(often.on_done([&first](torii_status) { ++first; }), TORII_OK);
        ASSERT_EQ(often.on_done([&second](torii_status) { ++second; }), TORII_OK);
        ASSERT_EQ(team.send(std::span(&token, 1), 1), TORII_OK);
      }
      ASSERT_EQ(often.wait(), TORII_OK) << torii_last_error();
      EXPECT_EQ(first, 0) << "the second replaces the first";
      EXPECT_EQ(second, team.rank() == 0 ? round : 0);
    }
  });
}

TEST(CppGroups, AreEndedByHandOrByTheirDestructor) {
  as_team_of(2, [](Team& team) {
    int sum = 1;
    int more = 2;
    {
      Group group = team.begin_group();
      EXPECT_EQ(team.allreduce(std::span(&sum, 1)), TORII_OK);
      EXPECT_EQ(team.allreduce(std::span(&more, 1)), TORII_OK);
      EXPECT_THROW((void)team.begin_group(), Failure);
      EXPECT_EQ(sum, 1);
      EXPECT_EQ(group.end(), TORII_OK) << torii_last_error();
      EXPECT_EQ(sum, 2);
      EXPECT_EQ(more, 4);
      EXPECT_EQ(group.end(), TORII_INVALID_ARGUMENT);
    }
    { const Group group(team.handle()); }
    try {
      const Group group = team.begin_group();
      EXPECT_EQ(team.allreduce(std::span(&sum, 1)), TORII_OK);
      throw std::runtime_error("in the middle");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(sum, 4) << "the call had joined";
    }
    EXPECT_EQ(team.group([&] { EXPECT_EQ(team.broadcast(std::span(&sum, 1), 0), TORII_OK); }), TORII_OK);
    ASSERT_EQ(team.barrier(), TORII_OK);
  });
}

/// A span of a wrong length refuses the group on all ranks.
TEST(CppGroups, AreRefusedWithTheirCalls) {
  as_team_of(2, [](Team& team) {
    std::vector<float> three(3, 1);
    std::vector<float> four(4, 1);
    Group group = team.begin_group();
    EXPECT_EQ(team.allreduce(std::span(three)), TORII_OK);
    EXPECT_EQ(team.allreduce(four, std::span(three)), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(group.end(), TORII_INVALID_ARGUMENT);
    EXPECT_STREQ(torii_last_error(), "allreduce: the input has 4 elements and needs 3");
    EXPECT_EQ(three[0], 1);
    EXPECT_EQ(team.allreduce(std::span(three)), TORII_OK) << torii_last_error();
  });
}

TEST(CppLists, OfBlocksInPlacesOfTheirOwn) {
  as_team_of(3, [](Team& team) {
    const auto rank = static_cast<std::size_t>(team.rank());
    // Rank r has r + i elements for rank i.
    std::vector<std::vector<int>> inputs(3);
    std::vector<std::vector<int>> results(3);
    for (std::size_t i = 0; i < 3; ++i) {
      inputs[i].assign(rank + i, static_cast<int>(10 * rank + i));
      results[i].assign(rank + i, -1);
    }
    ASSERT_EQ(team.alltoall(BlockList<const int>(inputs), BlockList<int>(results)), TORII_OK) << torii_last_error();
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(results[i], std::vector<int>(rank + i, static_cast<int>(10 * i + rank)));
    }
    std::vector<int> own(rank + 1);
    ASSERT_EQ(team.scatter(BlockList<const int>(inputs), std::span(own), 1), TORII_OK) << torii_last_error();
    EXPECT_EQ(own, std::vector<int>(rank + 1, static_cast<int>(10 + rank)));
    ASSERT_EQ(team.gather(own, BlockList<int>(results), 1), TORII_OK) << torii_last_error();
    if (rank == 1) {
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i], std::vector<int>(i + 1, static_cast<int>(10 + i)));
    }
    std::vector<std::vector<int>> all(3);
    std::vector<std::span<int>> spans;
    for (std::size_t i = 0; i < 3; ++i) {
      all[i].resize(i + 1);
      spans.emplace_back(all[i]);
    }
    const BlockList<int> list(spans);
    ASSERT_EQ(team.all_gather(own, list), TORII_OK) << torii_last_error();
    EXPECT_EQ(all[2], std::vector<int>(3, 12));
    Request request = team.start(all_gather<int>(own, list));
    EXPECT_EQ(request.wait(), TORII_OK) << torii_last_error();
  });
}

TEST(CppLists, OfWrongLengthsAreRefused) {
  as_team_of(3, [](Team& team) {
    std::vector<std::vector<int>> two(2, std::vector<int>(4));
    std::vector<std::vector<int>> three(3, std::vector<int>(4));
    std::vector<int> own(4);
    const auto expect_refused = [](torii_status status, const std::string& reason) {
      EXPECT_EQ(status, TORII_INVALID_ARGUMENT) << reason;
      EXPECT_EQ(torii_last_error(), reason);
    };
    expect_refused(team.alltoall(BlockList<const int>(two), BlockList<int>(three)),
                   "alltoall: the list of blocks of the input has 2 entries for 3 ranks");
    expect_refused(team.alltoall(BlockList<const int>(three), BlockList<int>(two)),
                   "alltoall: the list of blocks of the result has 2 entries for 3 ranks");
    expect_refused(team.all_gather(own, BlockList<int>(two)),
                   "all_gather: the list of blocks of the result has 2 entries for 3 ranks");
    own.resize(3);
    const std::string rank = "rank " + std::to_string(team.rank());
    expect_refused(team.all_gather(own, BlockList<int>(three)), rank + " has 12 bytes for itself and expects 16");
    // Only the root's list is looked at.
    const std::string at_root =
        team.rank() == 2 ? "scatter: the list of blocks of the input has 2 entries for 3 ranks" : "";
    own.resize(4);
    if (team.rank() == 2) {
      expect_refused(team.scatter(BlockList<const int>(two), std::span(own), 2), at_root);
      EXPECT_EQ(team.barrier(), TORII_MISMATCH);
    } else {
      EXPECT_EQ(team.scatter(BlockList<const int>(two), std::span(own), 2), TORII_MISMATCH);
    }
  });
}

TEST(CppCalls, WithFactors) {
  as_team_of(2, [](Team& team) {
    using Number = std::complex<float>;
    std::vector<Number> data = {Number(1, 2), Number(3, 4)};
    const Number factor(0, static_cast<float>(team.rank() + 1));
    ASSERT_EQ(team.run(allreduce(data, std::span(data), TORII_PREMUL_SUM).factor(factor)), TORII_OK)
        << torii_last_error();
    EXPECT_EQ(data[0], Number(1, 2) * Number(0, 3));
    const float real = 2;
    EXPECT_EQ(team.run(allreduce(data, std::span(data), TORII_PREMUL_SUM).factor(real)), TORII_INVALID_ARGUMENT);
    EXPECT_STREQ(torii_last_error(), "allreduce: the factor is of type f32, the vectors of cf32");
    EXPECT_EQ(team.allreduce(std::span(data), TORII_PREMUL_SUM), TORII_INVALID_ARGUMENT);
  });
}

/// Each function with an input and a result looks at both.
TEST(CppCalls, LookAtEachLength) {
  as_team_of(2, [](Team& team) {
    std::vector<std::int16_t> two(2);
    std::vector<std::int16_t> three(3);
    std::vector<std::int16_t> four(4);
    const auto expect_refused = [](torii_status status, const std::string& reason) {
      EXPECT_EQ(status, TORII_INVALID_ARGUMENT) << reason;
      EXPECT_EQ(torii_last_error(), reason);
    };
    expect_refused(team.exscan(four, std::span(two)), "exscan: the result has 2 elements and needs 4");
    if (team.rank() == 0) {
      expect_refused(team.reduce(four, std::span(two), 0), "reduce: the result has 2 elements and needs 4");
      expect_refused(team.gather(two, std::span(three), 0), "gather: the result has 3 elements and needs 4");
      expect_refused(team.scatter(three, std::span(two), 0), "scatter: the input has 3 elements and needs 4");
    } else {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(torii_refuse(team.handle(), "as rank 0 does"), TORII_INVALID_ARGUMENT);
    }
    expect_refused(team.alltoall(four, std::span(two)), "alltoall: the input has 4 elements and needs 2");
    expect_refused(team.reduce_scatter(three, std::span(two)), "reduce_scatter: the input has 3 elements and needs 4");
    const std::vector<std::size_t> counts = {1, 3};
    expect_refused(team.gather(two, Blocks<std::int16_t>{two, counts}, team.rank()),
                   "gather: block 1 of the result, 3 elements from 1 on, is not within its 2 elements");
    EXPECT_EQ(team.barrier(), TORII_OK) << torii_last_error();
  });
}

TEST(CppContext, IsMovedByHandAndTellsEnds) {
  // A context of one rank.
  torii_context_options own = {};
  own.size = sizeof(own);
  own.settings = "ARENA=1G\nRENDEZVOUS=auto";
  const Context context(&own);
  Team team = context.team();
  const int descriptor = context.event_fd();
  ASSERT_GE(descriptor, 0);
  EXPECT_EQ(context.event_fd(), descriptor);
  EXPECT_FALSE(context.progress()) << "nothing is in flight";
  int value = 5;
  Request request = team.start(allreduce(std::span<const int>(&value, 1), std::span(&value, 1)));
  torii_status status = TORII_INTERNAL;
  while (!request.test(status)) (void)context.progress();
  EXPECT_EQ(status, TORII_OK);
  pollfd readable = {descriptor, POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, 1000), 1);
  std::uint64_t ends = 0;
  EXPECT_EQ(read(descriptor, &ends, sizeof(ends)), static_cast<ssize_t>(sizeof(ends)));
  EXPECT_EQ(ends, 1U);
}

}  // namespace
}  // namespace torii::tests
