// SPDX-License-Identifier: Apache-2.0
// Every algorithm and collective against the expression that the verifier derives, element by element, over lengths
// that fill, straddle and miss segments and blocks; buffers lent in place, by value, and mixed between ranks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "tests/conformance/combine.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

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
  options.settings = "ARENA=256M\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const torii_collective collective : kAllCollectives) {
      if (!is_served(team, make_call(collective, &options, &options, 1, TORII_F32))) continue;
      for (const std::size_t count : counts()) {
        const int root = static_cast<int>(count % static_cast<std::size_t>(c.ranks));
        // Memory kinds are mixed between ranks and calls: the plan is the same, only who stores where differs.
        for (const int kinds : {0, 1, 2}) {
          const bool allocated = kinds == 1 || (kinds == 2 && rank % 2 == 0);
          const bool in_place = (kinds + static_cast<int>(count)) % 2 == 0;
          const torii_status status =
              run_and_expect(team, {collective, TORII_F32, TORII_SUM, count, root, in_place},
                             {.seed = 1, .allocates = allocated ? context : nullptr}, allocated ? "allocated" : "");
          ASSERT_EQ(status, TORII_OK) << torii_last_error();
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
