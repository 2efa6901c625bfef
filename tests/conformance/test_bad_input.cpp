// SPDX-License-Identifier: Apache-2.0
// Bad input through the public interface: each kind has its status and a message of its own that names the value.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kCount = 100;

/// What a call said.
struct Answer {
  torii_status status;
  std::string text;
};
Answer answer(torii_status status) { return {status, status == TORII_OK ? "" : torii_last_error()}; }

void expect_answer(const Answer& got, torii_status status, const std::string& part) {
  EXPECT_EQ(torii_status_name(got.status), std::string(torii_status_name(status))) << got.text;
  EXPECT_NE(got.text.find(part), std::string::npos) << "'" << got.text << "' does not hold '" << part << "'";
}

/// What a C caller can write into an enum, and C++ code cannot.
template <typename Enum>
void set_number(Enum& field, int number) {
  static_assert(sizeof(field) == sizeof(number));
  std::memcpy(&field, &number, sizeof(number));
}

/// A job of this process alone.
class Alone : public ::testing::Test {
 protected:
  Alone() {
    options_.size = sizeof(options_);
    options_.settings = "ARENA=256M";
    EXPECT_EQ(torii_context_create(&options_, &context_), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_team_create(context_, nullptr, &team_), TORII_OK) << torii_last_error();
  }
  ~Alone() override {
    EXPECT_EQ(torii_team_destroy(team_), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_context_destroy(context_), TORII_OK) << torii_last_error();
  }

  torii_call good_call() {
    return make_call(TORII_ALLREDUCE, input_.data(), result_.data(), kCount, TORII_F32, TORII_SUM);
  }

  torii_context_options options_ = {};
  torii_context* context_ = nullptr;
  torii_team* team_ = nullptr;
  std::array<float, kCount> input_ = {};
  std::array<float, kCount> result_ = {};
};

Answer create_with(const char* settings) {
  torii_context_options options = {};
  options.size = sizeof(options);
  options.settings = settings;
  torii_context* context = nullptr;
  const Answer got = answer(torii_context_create(&options, &context));
  EXPECT_EQ(context == nullptr, got.status != TORII_OK);
  EXPECT_EQ(torii_context_destroy(context), TORII_OK);
  return got;
}

TEST(BadSettings, AreNamedWithTheirValue) {
  struct Bad {
    const char* settings;
    torii_status status;
    const char* part;
  };
  const Bad all[] = {
      {"ENGINES=0", TORII_INVALID_ARGUMENT, "TORII_ENGINES is '0' (option); it must be a whole number from 1 to 16"},
      {"ENGINES=four", TORII_INVALID_ARGUMENT, "TORII_ENGINES is 'four'"},
      {"ENGINE=4", TORII_INVALID_ARGUMENT, "TORII_ENGINE is not a setting; the nearest one is TORII_ENGINES"},
      {"ENGINES", TORII_INVALID_ARGUMENT, "'ENGINES' must be NAME=value"},
      {"SEGMENT=100", TORII_INVALID_ARGUMENT, "TORII_SEGMENT is '100'"},
      {"TIMEOUT=0", TORII_INVALID_ARGUMENT, "TORII_TIMEOUT is '0'"},
      {"TOPOLOGY=cube", TORII_INVALID_ARGUMENT, "TORII_TOPOLOGY is 'cube'"},
      {"ALGORITHM=fast", TORII_INVALID_ARGUMENT, "TORII_ALGORITHM is 'fast'"},
      {"TUNE_FILE=no/such/file", TORII_INVALID_ARGUMENT, "cannot read 'no/such/file'"},
      {"TRANSPORT=simulated", TORII_UNSUPPORTED, "TORII_TRANSPORT is 'simulated'; this build has"},
  };
  std::set<std::string> texts;
  for (const Bad& bad : all) {
    const Answer got = create_with(bad.settings);
    expect_answer(got, bad.status, bad.part);
    texts.insert(got.text);
  }
  EXPECT_EQ(texts.size(), std::size(all)) << "each has a message of its own";
}

TEST(BadSettings, AnUnknownVariableWarnsWithTheNearestName) {
  std::string said;
  torii_set_log([](int, const char* message, void* data) { *static_cast<std::string*>(data) += message; }, &said);
  setenv("TORII_SEGMNT", "4096", 1);
  expect_answer(create_with("ARENA=256M"), TORII_OK, "");
  unsetenv("TORII_SEGMNT");
  torii_set_log(nullptr, nullptr);
  EXPECT_NE(said.find("TORII_SEGMNT is not a setting; the nearest one is TORII_SEGMENT"), std::string::npos) << said;
}

TEST_F(Alone, BadCallsAreNamedWithTheirValue) {
  struct Bad {
    std::function<void(torii_call&)> change;
    const char* part;
  };
  const std::vector<Bad> all = {
      {[](torii_call& c) { c.size = 0; }, "torii_call.size is 0"},
      {[](torii_call& c) { set_number(c.collective, 17); }, "collective is 17"},
      {[](torii_call& c) { set_number(c.type, 99); }, "type is 99"},
      {[](torii_call& c) { set_number(c.op, 15); }, "op 15; types end at 21, operations at 14"},
      {[](torii_call& c) { c.op = TORII_BXOR; }, "op bxor is not defined for type f32"},
      {[](torii_call& c) { c.op = TORII_MINLOC; }, "op minloc is not defined for type f32"},
      {[](torii_call& c) { c.count = SIZE_MAX / 2; }, "whose bytes on 1 ranks overflow"},
      {[](torii_call& c) { c.result = nullptr; }, "result is NULL"},
      {[](torii_call& c) { c.input = nullptr; }, "input is NULL"},
      {[](torii_call& c) { c.op = TORII_USER; }, "no user function is given"},
      {[](torii_call& c) { c = make_call(TORII_BROADCAST, nullptr, c.result, kCount, TORII_F32, TORII_SUM, 1); },
       "root is 1; it must be from 0 to 0"},
      {[](torii_call& c) { c = make_call(TORII_REDUCE, c.input, c.result, kCount, TORII_F32, TORII_SUM, -1); },
       "root is -1"},
      {[](torii_call& c) { c.load = [](void*, std::size_t, std::size_t, void*) {}; },
       "load or store is set, but a call of allreduce reaches its vectors itself"},
      {[](torii_call& c) {
         c = make_call(TORII_BROADCAST, nullptr, nullptr, kCount, TORII_F32);
         c.load = [](void*, std::size_t, std::size_t, void*) {};
       },
       "store is NULL, but the other is not"},
  };
  std::set<std::string> texts;
  for (const Bad& bad : all) {
    torii_call call = good_call();
    bad.change(call);
    const Answer got = answer(torii_run(team_, &call));
    expect_answer(got, TORII_INVALID_ARGUMENT, bad.part);
    texts.insert(got.text);
    // After good calls a call like them takes a shorter way, which must refuse as much. There are two channels.
    const torii_call good = good_call();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(torii_run(team_, &good), TORII_OK) << torii_last_error();
    expect_answer(answer(torii_run(team_, &call)), TORII_INVALID_ARGUMENT, bad.part);
    torii_request* request = nullptr;
    EXPECT_EQ(torii_start(team_, &call, &request), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(torii_prepare(team_, &call, &request), TORII_INVALID_ARGUMENT);
    EXPECT_EQ(request, nullptr);
  }
  EXPECT_EQ(texts.size(), all.size()) << "each has a message of its own";
  const torii_call good = good_call();
  EXPECT_EQ(torii_run(team_, &good), TORII_OK) << "refused calls leave the team as it was: " << torii_last_error();
}

TEST_F(Alone, UserFunctionsNeedASize) {
  torii_call call = good_call();
  call.op = TORII_USER;
  call.user = [](const void*, const void*, void*, std::size_t, void*) {};
  expect_answer(answer(torii_run(team_, &call)), TORII_INVALID_ARGUMENT, "user_bytes is 0; it must be from 1 to 4096");
  call.user_bytes = 5000;
  expect_answer(answer(torii_run(team_, &call)), TORII_INVALID_ARGUMENT, "user_bytes is 5000");
}

TEST_F(Alone, NoElementsIsNoError) {
  for (const auto collective : {TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_REDUCE_SCATTER,
                                TORII_ALLTOALL, TORII_SCATTER, TORII_GATHER, TORII_SCAN, TORII_EXSCAN}) {
    const torii_call call = make_call(collective, nullptr, nullptr, 0, TORII_F32, TORII_SUM);
    EXPECT_EQ(torii_run(team_, &call), TORII_OK) << collective << ": " << torii_last_error();
  }
}

TEST_F(Alone, MemoryIsChecked) {
  void* address = nullptr;
  expect_answer(answer(torii_allocate(context_, 0, &address)), TORII_INVALID_ARGUMENT, "0");
  expect_answer(answer(torii_allocate(context_, std::size_t{1} << 50, &address)), TORII_NO_RESOURCE, "");
  EXPECT_EQ(address, nullptr);
  expect_answer(answer(torii_free(context_, input_.data())), TORII_NOT_REGISTERED, "not given by torii_allocate");
  ASSERT_EQ(torii_allocate(context_, 4096, &address), TORII_OK);
  expect_answer(answer(torii_free(context_, static_cast<char*>(address) + 64)), TORII_INVALID_ARGUMENT, "");
  EXPECT_EQ(torii_free(context_, address), TORII_OK);
  expect_answer(answer(torii_free(context_, address)), TORII_INVALID_ARGUMENT, "");
  EXPECT_EQ(torii_free(context_, nullptr), TORII_OK);
}

TEST_F(Alone, NullAndLivingThingsAreRefused) {
  const torii_call call = good_call();
  expect_answer(answer(torii_run(nullptr, &call)), TORII_INVALID_ARGUMENT, "team is NULL");
  expect_answer(answer(torii_run(team_, nullptr)), TORII_INVALID_ARGUMENT, "call is NULL");
  expect_answer(answer(torii_context_create(nullptr, nullptr)), TORII_INVALID_ARGUMENT, "place for the context");
  expect_answer(answer(torii_context_destroy(context_)), TORII_INVALID_ARGUMENT, "1 teams of the context are alive");
  torii_request* request = nullptr;
  ASSERT_EQ(torii_start(team_, &call, &request), TORII_OK);
  expect_answer(answer(torii_restart(request)), TORII_INVALID_ARGUMENT, "not persistent");
  expect_answer(answer(torii_request_free(&request)), TORII_INVALID_ARGUMENT, "wait for it first");
  ASSERT_EQ(torii_wait(&request), TORII_OK);
  ASSERT_EQ(torii_prepare(team_, &call, &request), TORII_OK);
  ASSERT_EQ(torii_restart(request), TORII_OK);
  expect_answer(answer(torii_restart(request)), TORII_INVALID_ARGUMENT, "the request is active");
  EXPECT_EQ(torii_wait(&request), TORII_OK);
  EXPECT_EQ(torii_request_free(&request), TORII_OK);
  torii_team* none = nullptr;
  expect_answer(answer(torii_team_survivors(team_, nullptr, &none)), TORII_INVALID_ARGUMENT, "not poisoned");
  EXPECT_EQ(none, nullptr);
}

struct BadTeam {
  const char* topology;
  const char* algorithm;
  const char* determinism;
  std::size_t segment_bytes;
  const char* part;
};

Answer create_team(torii_context* context, const BadTeam& bad) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.topology = bad.topology;
  options.algorithm = bad.algorithm;
  options.determinism = bad.determinism;
  options.segment_bytes = bad.segment_bytes;
  torii_team* team = nullptr;
  const Answer got = answer(torii_team_create(context, &options, &team));
  EXPECT_EQ(team, nullptr);
  EXPECT_EQ(torii_team_destroy(team), TORII_OK);
  return got;
}

TEST(BadTeams, AreNamedWithTheirValue) {
  const BadTeam all[] = {
      {"torus:4x", nullptr, nullptr, 0, "topology 'torus:4x': an extent is missing"},
      {"torus:0x2", nullptr, nullptr, 0, "topology 'torus:0x2': the extent 0 is not in"},
      {"torus:2x2", nullptr, nullptr, 0, "topology 'torus:2x2' has 4 places, but there are 3 ranks"},
      {"torus:3x1x1x1", nullptr, nullptr, 0, "more than 3 dimensions"},
      {"torus:3y", nullptr, nullptr, 0, "'3y' is no extent"},
      {"ring:3", nullptr, nullptr, 0, "'ring' is none of"},
      {nullptr, "fast", nullptr, 0, "algorithm is 'fast'; it must be one of auto, "},
      {nullptr, nullptr, "always", 0, "determinism is 'always'; it must be run or canonical"},
      {nullptr, nullptr, nullptr, 100, "segment is 100 bytes; it must be a multiple of 64"},
      {nullptr, nullptr, nullptr, SIZE_MAX - 63, "bytes; it must be a multiple of 64, at most 1073741824"},
  };
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=256M\nTIMEOUT=10";
  run_as_threads(options, [&](torii_context* context, torii_team*) {
    std::set<std::string> texts;
    for (const BadTeam& bad : all) {
      const Answer got = create_team(context, bad);
      expect_answer(got, TORII_INVALID_ARGUMENT, bad.part);
      texts.insert(got.text);
    }
    EXPECT_EQ(texts.size(), std::size(all)) << "each has a message of its own";
    // Nine teams would not fit into the arena: those that failed have given their memory back.
    torii_team* team = nullptr;
    ASSERT_EQ(torii_team_create(context, nullptr, &team), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_barrier(team), TORII_OK);
    EXPECT_EQ(torii_team_destroy(team), TORII_OK);
  });
}

/// Whoever says that ways can be chosen hears that they cannot, here; as good as nothing has been promised.
TEST(BadTeams, WaysThatTheTransportCannotChooseAreRefused) {
  ThreadTeam options;
  options.ranks = 4;
  options.settings = "ARENA=256M\nTIMEOUT=10";
  run_as_threads(options, [&](torii_context* context, torii_team*) {
    const BadTeam bad = {"torus:2x2,ties", nullptr, nullptr, 0, ""};
    expect_answer(create_team(context, bad), TORII_INVALID_ARGUMENT,
                  "topology 'torus:2x2,ties' leaves the way round to the sender, but shared_memory cannot choose it; "
                  "leave ',ties' out");
  });
}

TEST(BadTeams, SixtyFiveRanksDoNotFitOnSixtyFourPlaces) {
  ThreadTeam options;
  options.ranks = 65;
  options.settings = "ARENA=1G\nTIMEOUT=30";
  run_as_threads(options, [&](torii_context* context, torii_team*) {
    expect_answer(create_team(context, {"torus:4x4x4", nullptr, nullptr, 0, ""}), TORII_INVALID_ARGUMENT,
                  "topology 'torus:4x4x4' has 64 places, but there are 65 ranks");
  });
}

TEST(BadTeams, ARankThatDiffersIsNamed) {
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=256M\nTIMEOUT=10";
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    const bool differs = torii_team_rank(team) == 2;
    expect_answer(create_team(context, {differs ? "torus:3" : "node", nullptr, nullptr, 0, ""}), TORII_MISMATCH,
                  "rank 2 differs from rank 0: 'team topology=torus:3' against 'team topology=node'");
  });
}

TEST(BadTeams, PartsAreComparedByColour) {
  ThreadTeam options;
  options.ranks = 4;
  options.settings = "ARENA=1G\nTIMEOUT=10";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    const int rank = torii_team_rank(team);
    torii_team_options part_options = {};
    part_options.size = sizeof(part_options);
    part_options.segment_bytes = rank == 3 ? 8192 : 4096;
    torii_team* part = nullptr;
    const Answer got = answer(torii_team_split(team, rank % 2, 0, &part_options, &part));
    if (rank % 2 == 1) {
      expect_answer(got, TORII_MISMATCH, "rank 3 differs from rank 1: 'team segment=8192' against 'team segment=4096'");
      return;
    }
    expect_answer(got, TORII_OK, "");
    EXPECT_EQ(torii_barrier(part), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_team_destroy(part), TORII_OK) << torii_last_error();
  });
}

TEST(BadTeams, AnAlgorithmThatCannotSaysWhoCan) {
  ThreadTeam options;
  options.ranks = 3;
  options.algorithm = "trinaryx3";
  options.determinism = "canonical";
  options.settings = "ARENA=256M\nTIMEOUT=10";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    float value = 1;
    const Answer got = answer(torii_allreduce(team, &value, &value, 1, TORII_F32, TORII_SUM));
    expect_answer(got, TORII_UNSUPPORTED, "not the canonical one");
    expect_answer(got, TORII_UNSUPPORTED, "binomial");
    EXPECT_EQ(torii_broadcast(team, &value, 1, TORII_F32, 0), TORII_OK) << "broadcast combines nothing";
  });
}

}  // namespace
}  // namespace torii::tests
