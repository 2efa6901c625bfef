// SPDX-License-Identifier: Apache-2.0
// Groups on several nodes: which calls run as one, and so every bit, is what it is on one node.
#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "tests/conformance/numbered_operation.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

constexpr int kRanks = 4;

struct Case {
  std::string algorithm;
  std::string topology;
  std::string determinism;
};

/// Lengths in elements: short and long neighbours, one at the limit of a packed call and one above it, and more short
/// ones than one packed call holds.
std::vector<std::size_t> lengths(torii_type type) {
  const std::size_t limit = (std::size_t{8} << 10) / torii_type_bytes(type);
  std::vector<std::size_t> all = {1, 300, 77, 20'000, 5, limit, limit + 1, 0, 3};
  for (std::size_t i = 0; i < 60; ++i) all.push_back(limit - 13 * i);
  return all;
}

/// Of each rank, the results of all calls, one behind the other.
using Results = std::vector<std::vector<std::byte>>;

class Calls {
 public:
  Calls(torii_team* team, torii_type type) : type_(type) {
    int number = 0;
    for (const std::size_t count : lengths(type)) {
      inputs_.emplace_back(count * torii_type_bytes(type));
      results_.emplace_back(inputs_.back().size());
      fill_operand(static_cast<Type>(type), static_cast<std::uint64_t>(++number), torii_team_rank(team), 0, count,
                   inputs_.back().data());
    }
  }
  void make(torii_team* team) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::size_t count = inputs_[i].size() / torii_type_bytes(type_);
      const auto root = static_cast<int>(i / 4 % kRanks);
      if (i % 8 < 6) {
        ASSERT_EQ(torii_allreduce(team, inputs_[i].data(), results_[i].data(), count, type_, TORII_SUM), TORII_OK);
      } else {
        ASSERT_EQ(torii_reduce(team, inputs_[i].data(), results_[i].data(), count, type_, TORII_SUM, root), TORII_OK);
      }
    }
  }
  std::vector<std::byte> results() const {
    std::vector<std::byte> all;
    for (const std::vector<std::byte>& one : results_) all.insert(all.end(), one.begin(), one.end());
    return all;
  }

 private:
  torii_type type_;
  std::vector<std::vector<std::byte>> inputs_, results_;
};

Results run(const Case& shape, torii_type type, const std::vector<int>& nodes, bool grouped) {
  ThreadTeam options = team_of(kRanks);
  options.algorithm = shape.algorithm;
  options.topology = shape.topology;
  options.determinism = shape.determinism;
  options.nodes = nodes;
  Results results(kRanks);
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    EXPECT_EQ(torii_context_nodes(context), nodes.empty() ? 1 : nodes.back() + 1);
    Calls calls(team, type);
    if (grouped) {
      ASSERT_EQ(torii_group_begin(team), TORII_OK) << torii_last_error();
    }
    calls.make(team);
    if (grouped) {
      ASSERT_EQ(torii_group_end(team), TORII_OK) << torii_last_error();
    }
    results[static_cast<std::size_t>(torii_team_rank(team))] = calls.results();
  });
  return results;
}

class GroupsOnNodes : public ::testing::TestWithParam<Case> {};

TEST_P(GroupsOnNodes, HaveTheBitsOfOneNode) {
  const Case& shape = GetParam();
  for (const torii_type type : {TORII_F32, TORII_BF16}) {
    const Results together = run(shape, type, {}, true);
    const Results alone = run(shape, type, {}, false);
    const bool is_canonical = shape.determinism == "canonical";
    EXPECT_EQ(together == alone, is_canonical) << "at \"run\" bits depend on which calls run as one";
    for (const std::vector<int>& nodes : {std::vector{0, 0, 1, 1}, std::vector{0, 1, 0, 1}, std::vector{0, 1, 2, 3}}) {
      const Results apart = run(shape, type, nodes, true);
      for (std::size_t rank = 0; rank < kRanks; ++rank) {
        EXPECT_TRUE(apart[rank] == together[rank]) << torii_type_name(type) << ", rank " << rank
                                                   << ", nodes of ranks 1 and 2: " << nodes[1] << ", " << nodes[2];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, GroupsOnNodes,
                         ::testing::Values(Case{"ring", "node", "run"}, Case{"trinaryx3", "torus:2x2", "run"},
                                           Case{"rabenseifner", "node", "canonical"},
                                           Case{"auto", "node", "canonical"}),
                         [](const auto& one) { return one.param.algorithm + "_" + one.param.determinism; });

}  // namespace
}  // namespace torii::tests
