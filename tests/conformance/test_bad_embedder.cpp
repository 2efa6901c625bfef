// SPDX-License-Identifier: Apache-2.0
// Programs that embed the library wrongly: exchange functions that fail, throw or do nothing, calls in a forked child,
// structs of another version. Each ends with a status and a reason, never with a crash, and harms no other rank.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

void expect_refused(torii_status got, torii_status status, const std::string& part) {
  const std::string text = got == TORII_OK ? "" : torii_last_error();
  EXPECT_EQ(torii_status_name(got), std::string(torii_status_name(status))) << text;
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' does not hold '" << part << "'";
}

/// A job of this process alone, with one team.
class BadEmbedder : public ::testing::Test {
 protected:
  BadEmbedder() {
    options_.size = sizeof(options_);
    options_.settings = "ARENA=256M";
    EXPECT_EQ(torii_context_create(&options_, &context_), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_team_create(context_, nullptr, &team_), TORII_OK) << torii_last_error();
  }
  ~BadEmbedder() override {
    EXPECT_EQ(torii_team_destroy(team_), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_context_destroy(context_), TORII_OK) << torii_last_error();
  }

  torii_call good_call() { return make_call(TORII_ALLREDUCE, input_.data(), result_.data(), 4, TORII_F32, TORII_SUM); }

  torii_context_options options_ = {};
  torii_context* context_ = nullptr;
  torii_team* team_ = nullptr;
  std::array<float, 4> input_ = {};
  std::array<float, 4> result_ = {};
};

TEST_F(BadEmbedder, ExchangeFunctionsThatDoNotWorkAreFoundOut) {
  struct Bad {
    torii_exchange function;
    torii_status status;
    const char* part;
  };
  const Bad all[] = {
      {[](const void*, void*, std::size_t, void*) { return 7; }, TORII_TRANSPORT, "returned 7 on rank 1"},
      {[](const void*, void*, std::size_t, void*) { return 0; }, TORII_TRANSPORT,
       "returned 0, but `all` does not hold this rank's"},
      {[](const void* mine, void* whole, std::size_t bytes, void*) {
         std::memcpy(whole, mine, bytes);  // as rank 0 would
         return 0;
       },
       TORII_TRANSPORT, "does not hold this rank's"},
      {[](const void*, void*, std::size_t, void*) -> int { throw std::runtime_error("no line"); }, TORII_TRANSPORT,
       "the exchange function of the embedder threw 'no line' on rank 1"},
      {[](const void*, void*, std::size_t, void*) -> int { throw 5; }, TORII_TRANSPORT,
       "threw what is no std::exception on rank 1"},
  };
  torii_context_options options = options_;
  options.rank = 1;
  options.ranks = 2;
  for (const Bad& bad : all) {
    options.exchange = bad.function;
    torii_context* context = nullptr;
    expect_refused(torii_context_create(&options, &context), bad.status, bad.part);
    EXPECT_EQ(context, nullptr);
  }
  options.ranks = INT_MAX;
  torii_context* context = nullptr;
  expect_refused(torii_context_create(&options, &context), TORII_INVALID_ARGUMENT,
                 "ranks is 2147483647; it must be at most 1048576");
}

TEST_F(BadEmbedder, AnOperandThatThrowsIsAStatus) {
  const torii_call call = good_call();
  const torii_operand throws = [](int, std::size_t, std::size_t, void*, void*) { throw 5; };
  expect_refused(torii_expect(team_, &call, 0, 4, throws, nullptr, result_.data()), TORII_INTERNAL,
                 "a function of the caller threw what is no std::exception");
}

/// Each call in a child of its own.
void expect_refused_in_child(std::span<const std::function<torii_status()>> calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const bool is_refused =
          calls[i]() == TORII_INVALID_ARGUMENT && std::string(torii_last_error()).find("forked") != std::string::npos;
      _exit(is_refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "call " << i;
  }
}

TEST_F(BadEmbedder, AForkedChildMayMakeNoCall) {
  const torii_call call = good_call();
  // So that the child's call is one like the last, on either channel.
  for (int i = 0; i < 2; ++i) ASSERT_EQ(torii_run(team_, &call), TORII_OK) << torii_last_error();
  void* memory = nullptr;
  ASSERT_EQ(torii_allocate(context_, 64, &memory), TORII_OK) << torii_last_error();
  void* other = nullptr;
  torii_team* team = nullptr;
  torii_request* request = nullptr;
  ASSERT_EQ(torii_start(team_, &call, &request), TORII_OK) << torii_last_error();
  int answer = 0;
  torii_leaves* leaves = nullptr;
  torii_request* prepared = nullptr;
  const std::function<torii_status()> calls[] = {
      [&] { return torii_progress(context_, nullptr); },
      [&] { return torii_context_event_fd(context_) == -1 ? TORII_INVALID_ARGUMENT : TORII_OK; },
      [&] {
        return torii_request_on_done(
            request, [](torii_status, void*) {}, nullptr);
      },
      [&] { return torii_test(&request, &answer); },
      [&] { return torii_wait(&request); },
      [&] { return torii_wait_for(&request, 0, &answer); },
      [&] { return torii_test_any(&request, 1, &answer); },
      [&] { return torii_wait_any(&request, 1, &answer); },
      [&] { return torii_test_all(&request, 1, &answer); },
      [&] { return torii_wait_all(&request, 1); },
      [&] { return torii_wait_some(&request, 1, &answer, nullptr, &answer); },
      [&] { return torii_run(team_, &call); },
      [&] { return torii_leaves_create(team_, 2, 0, 2, &leaves); },
      [&] { return torii_send(team_, input_.data(), 4, TORII_F32, 0, 0); },
      [&] { return torii_recv(team_, result_.data(), 4, TORII_F32, 0, 0, nullptr); },
      [&] { return torii_prepare(team_, &call, &prepared); },
      [&] {
        (void)torii_group_begin(team_);
        (void)torii_run(team_, &call);
        return torii_group_end(team_);
      },
      [&] { return torii_allocate(context_, 64, &other); },
      [&] { return torii_free(context_, memory); },
      [&] { return torii_team_create(context_, nullptr, &team); },
      [&] { return torii_team_split(team_, 0, 0, nullptr, &team); },
      [&] { return torii_team_survivors(team_, nullptr, &team); },
      [&] { return torii_team_abort(team_, "of a child"); },
      [&] { return torii_team_destroy(team_); },
      [&] { return torii_context_destroy(context_); },
      [&] {
        torii_context_options options = {};
        options.size = sizeof(options);
        options.memory_of = context_;
        torii_context* grown = nullptr;
        return torii_context_create(&options, &grown);
      },
  };
  expect_refused_in_child(calls);
  EXPECT_EQ(torii_wait(&request), TORII_OK) << "the parent goes on: " << torii_last_error();
  EXPECT_EQ(torii_run(team_, &call), TORII_OK) << "the parent goes on: " << torii_last_error();
  EXPECT_EQ(torii_free(context_, memory), TORII_OK) << torii_last_error();
}

/// Although no other rank takes part: the memory for packed items is in the parent's arena.
TEST_F(BadEmbedder, AForkedChildMayNotRedistribute) {
  std::array<float, 4> values = {1, 2, 3, 4};
  std::array<float, 4> turned = {};
  const std::size_t extents[] = {1, 2, 2};
  const int axes[] = {0, 2, 1};
  const std::uint64_t destinations[] = {3, 2, 1, 0};
  const std::function<torii_status()> calls[] = {
      [&] { return torii_transpose(team_, values.data(), turned.data(), 2, 2, sizeof(float)); },
      [&] { return torii_transpose(team_, values.data(), values.data(), 2, 2, sizeof(float)); },
      [&] { return torii_transpose_array(team_, values.data(), values.data(), extents, axes, 3, sizeof(float)); },
      [&] { return torii_transpose_array(team_, values.data(), turned.data(), extents, axes, 99, sizeof(float)); },
      [&] { return torii_permute(team_, values.data(), 4, destinations, turned.data(), 4, sizeof(float)); },
  };
  expect_refused_in_child(calls);
  EXPECT_EQ(calls[1](), TORII_OK) << "the parent goes on: " << torii_last_error();
  expect_refused_in_child(calls);
  EXPECT_EQ(values, (std::array<float, 4>{1, 3, 2, 4}));
}

/// Open descriptors, and mappings of arenas.
std::pair<std::ptrdiff_t, int> held() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  std::ifstream maps("/proc/self/maps");
  int mappings = 0;
  for (std::string line; std::getline(maps, line);) mappings += line.find("memfd") != std::string::npos ? 1 : 0;
  return {std::distance(begin(descriptors), end(descriptors)), mappings};
}

TEST_F(BadEmbedder, ManyContextsAndTeamsLeaveNothing) {
  const auto before = held();
  ASSERT_GT(before.second, 0) << "the fixture's own arena is not seen";
  for (int round = 0; round < 100; ++round) {
    torii_context* context = nullptr;
    ASSERT_EQ(torii_context_create(&options_, &context), TORII_OK) << torii_last_error();
    torii_team* teams[3] = {};
    for (torii_team*& team : teams) {
      ASSERT_EQ(torii_team_create(context, nullptr, &team), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    }
    for (const int first : {1, 2, 0}) EXPECT_EQ(torii_team_destroy(teams[first]), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_context_destroy(context), TORII_OK) << torii_last_error();
  }
  EXPECT_EQ(held(), before);
}

TEST_F(BadEmbedder, WhatOnlyANewerLibraryKnowsIsRefused) {
  struct Newer {
    torii_call call;
    std::uint64_t more;
  };
  Newer newer = {good_call(), 0};
  newer.call.size = sizeof(newer);
  EXPECT_EQ(torii_run(team_, &newer.call), TORII_OK) << torii_last_error();
  newer.more = 1;
  expect_refused(torii_run(team_, &newer.call), TORII_UNSUPPORTED,
                 "torii_call is set at byte " + std::to_string(offsetof(Newer, more)) + ", which torii");
  torii_choice choice = {};
  const torii_call call = good_call();
  expect_refused(torii_choose(team_, &call, &choice), TORII_INVALID_ARGUMENT, "torii_choice.size is 0");
}

TEST_F(BadEmbedder, AnItemOfAlmostAllBytesDoesNotOverflow) {
  const std::uint64_t destination = 0;
  expect_refused(torii_permute(team_, input_.data(), 1, &destination, result_.data(), 1, SIZE_MAX),
                 TORII_INVALID_ARGUMENT, "whose bytes overflow; the most is 0");
}

TEST_F(BadEmbedder, EngineBytesWantsNoPlaceForThem) { EXPECT_EQ(torii_engine_bytes(context_, nullptr, 4), 4); }

}  // namespace
}  // namespace torii::tests
