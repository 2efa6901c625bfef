// SPDX-License-Identifier: Apache-2.0
// Every algorithm and collective against the expression that the verifier derives, element by element, over lengths
// that fill, straddle and miss segments and blocks; buffers lent in place, by value, and mixed between ranks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/operands.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

void fill(int rank, std::size_t first, std::size_t count, void* out, void*) {
  fill_operand(Type::f32, 1, rank, first, count, out);
}

/// Memory of one rank: from malloc or from torii_allocate.
class Memory {
 public:
  Memory(torii_context* context, std::size_t count, bool allocated) : context_(allocated ? context : nullptr) {
    if (context_ != nullptr) {
      void* address = nullptr;
      EXPECT_EQ(torii_allocate(context, (count + 1) * sizeof(float), &address), TORII_OK) << torii_last_error();
      data_ = static_cast<float*>(address);
    } else {
      own_.resize(count + 1);
      data_ = own_.data();
    }
  }
  ~Memory() {
    if (context_ == nullptr) return;
    EXPECT_EQ(torii_free(context_, data_), TORII_OK) << torii_last_error();
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  float* data() { return data_; }

 private:
  torii_context* context_;
  std::vector<float> own_;
  float* data_ = nullptr;
};

struct Shape {
  torii_collective collective;
  std::size_t input;   ///< elements
  std::size_t result;  ///< elements
};

Shape shape_of(torii_collective collective, std::size_t count, int ranks) {
  const std::size_t all = count * static_cast<std::size_t>(ranks);
  switch (collective) {
    case TORII_ALL_GATHER:
      return {collective, count, all};
    case TORII_REDUCE_SCATTER:
    case TORII_SCATTER:
      return {collective, all, count};
    case TORII_GATHER:
      return {collective, count, all};
    case TORII_ALLTOALL:
      return {collective, all, all};
    case TORII_BARRIER:
      return {collective, 0, 0};
    default:
      return {collective, count, count};
  }
}

void check_once(torii_context* context, torii_team* team, torii_collective collective, std::size_t count, int root,
                bool allocated, bool in_place) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  const Shape shape = shape_of(collective, count, ranks);
  Memory input(context, std::max(shape.input, shape.result), allocated);
  Memory separate(context, std::max(shape.input, shape.result), allocated);
  float* result = in_place ? input.data() : separate.data();
  float* source = input.data();
  const bool at_root = collective == TORII_SCATTER || collective == TORII_GATHER;
  if (at_root && rank != root) {
    // Only the root has a vector of all blocks; the others' one is not looked at.
    result = separate.data();
  } else if (in_place && collective == TORII_SCATTER) {
    result += count * static_cast<std::size_t>(rank);
  } else if (in_place && collective == TORII_GATHER) {
    source += count * static_cast<std::size_t>(rank);
  }
  if (in_place && collective == TORII_ALL_GATHER) source += count * static_cast<std::size_t>(rank);
  if (in_place && collective == TORII_REDUCE_SCATTER) result += count * static_cast<std::size_t>(rank);
  if (collective == TORII_BROADCAST) source = result;
  if (collective != TORII_BROADCAST || rank == root) fill(rank, 0, shape.input, source, nullptr);
  const bool has_result = (rank == root || (collective != TORII_REDUCE && collective != TORII_GATHER)) &&
                          !(collective == TORII_EXSCAN && rank == 0);
  const bool has_input = rank == root || collective != TORII_SCATTER;
  const torii_call call =
      make_call(collective, has_input ? source : nullptr, has_result || collective == TORII_REDUCE ? result : nullptr,
                count, TORII_F32, TORII_SUM, root);
  ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
  if (collective == TORII_BARRIER || !has_result) return;
  std::vector<float> expected(shape.result);
  ASSERT_EQ(torii_expect(team, &call, 0, shape.result, fill, nullptr, expected.data()), TORII_OK) << torii_last_error();
  if (std::memcmp(expected.data(), result, shape.result * sizeof(float)) == 0) return;
  for (std::size_t i = 0; i < shape.result; ++i) {
    ASSERT_EQ(std::memcmp(&expected[i], &result[i], sizeof(float)), 0)
        << "rank " << rank << " of " << ranks << ", element " << i << " of " << shape.result << ": " << result[i]
        << ", expected " << expected[i] << "; collective " << collective << ", root " << root << ", allocated "
        << allocated << ", in place " << in_place;
  }
}

struct Case {
  std::string algorithm;
  int ranks;
  std::string topology;
};

/// Around the lengths at which words, lines, segments and windows end. Sanitizers take their time, and see no other
/// code in longer vectors.
std::vector<std::size_t> counts() {
  std::vector<std::size_t> all = {1, 3, 14, 15, 64, 257, 1000, 5000, 40'000};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (!is_full()) all = {1, 3, 14, 15, 257, 5000};
#endif
  return all;
}

class Collectives : public ::testing::TestWithParam<Case> {};

TEST_P(Collectives, GiveTheDeclaredExpression) {
  const Case& c = GetParam();
  ThreadTeam options;
  options.ranks = c.ranks;
  options.topology = c.topology;
  options.algorithm = c.algorithm;
  options.segment_bytes = 1024;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const auto collective :
         {TORII_BARRIER, TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_REDUCE_SCATTER,
          TORII_ALLTOALL, TORII_SCATTER, TORII_GATHER, TORII_SCAN, TORII_EXSCAN}) {
      torii_choice choice = {};
      choice.size = sizeof(choice);
      const torii_call probe = make_call(collective, &probe, &choice, 1, TORII_F32);
      if (torii_choose(team, &probe, &choice) == TORII_UNSUPPORTED) continue;
      for (const std::size_t count : counts()) {
        const int root = static_cast<int>(count % static_cast<std::size_t>(c.ranks));
        // Memory kinds are mixed between ranks and calls: the plan is the same, only who stores where differs.
        for (const int kinds : {0, 1, 2}) {
          const bool allocated = kinds == 1 || (kinds == 2 && rank % 2 == 0);
          check_once(context, team, collective, count, root, allocated, (kinds + static_cast<int>(count)) % 2 == 0);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

/// The thread sanitizer takes its time: it sees all of our code with up to 4 ranks, and with one of the orders of
/// alltoall, which are one code with different lists.
bool is_left_out(std::string_view algorithm, int ranks) {
#if defined(__SANITIZE_THREAD__)
  return (ranks == 7 || algorithm == "a2a" || algorithm == "a2and" || algorithm == "a2at_printed") && !is_full();
#else
  (void)algorithm, (void)ranks;
  return false;
#endif
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Algorithm& algorithm : catalogue()) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      if (!is_left_out(algorithm.name, ranks)) all.push_back({std::string(algorithm.name), ranks, ""});
    }
  }
  all.push_back({"trinaryx3", 8, "torus:2x2x2"});
  all.push_back({"trinaryx3", 12, "torus:3x2x2"});
  all.push_back({"trinaryx3", 9, "torus:3x3"});
  all.push_back({"bucket", 8, "torus:2x2x2"});
  all.push_back({"bucket", 6, "mesh:3x2"});
  all.push_back({"swing", 8, "torus:4x2"});
  all.push_back({"swing", 6, "torus:3x2"});
  all.push_back({"a2at", 6, "torus:3x2"});
  all.push_back({"a2at", 8, "torus:2x2*2"});
  all.push_back({"a2at_printed", 9, "torus:3x3"});
  all.push_back({"a2and", 6, "mesh:3x2"});
  all.push_back({"levels", 4, "node:2*2"});
  all.push_back({"levels", 6, "node:3*2"});
  all.push_back({"levels", 6, "node:2*3"});
  all.push_back({"levels", 8, "node:2*4"});
  for (const char* algorithm : {"trinaryx3", "bucket"}) {
    all.push_back({algorithm, 8, "torus:2x2*2"});
    all.push_back({algorithm, 3, "torus:1*3"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Collectives, ::testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param.algorithm + "_" + std::to_string(test.param.ranks) + "_" + test.param.topology;
  for (char& c : name) {
    if (c == ':' || c == '*') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace torii::tests
