// SPDX-License-Identifier: Apache-2.0
// Many ranks on a node, and random numbers of them: every row of the catalogue that serves the shape, all types of
// operand that are folded in their own way, all orders and wires, element by element against the derived expression.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/conformance/combine.hpp"
#include "tests/support/test_run.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

/// A user's element: an upper triangular matrix of two by two. Products of such are associative, and do not commute.
struct Triangle {
  std::uint32_t a, b, c;
};
void multiply(const void* left, const void* right, void* out, std::size_t count, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    const Triangle l = static_cast<const Triangle*>(left)[i];
    const Triangle r = static_cast<const Triangle*>(right)[i];
    static_cast<Triangle*>(out)[i] = {l.a * r.a, l.a * r.b + l.b * r.c, l.c * r.c};
  }
}

/// The types and operations that are folded; TORII_USER combines triangles.
struct Operand {
  torii_type type;
  torii_op op;
};
const std::vector<Operand> kOperands = {{TORII_F16, TORII_SUM}, {TORII_BF16, TORII_SUM}, {TORII_F32, TORII_SUM},
                                        {TORII_I64, TORII_SUM}, {TORII_U8, TORII_USER},  {TORII_F16, TORII_MAX}};

void fill_triangles(int rank, std::size_t first, std::size_t count, void* out, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = random_word(22, rank, first + i);
    static_cast<Triangle*>(out)[i] = {static_cast<std::uint32_t>(word) | 1, static_cast<std::uint32_t>(word >> 32),
                                      static_cast<std::uint32_t>(word >> 16) | 1};
  }
}

/// Numbers that all ranks draw alike.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  int below(int most) { return static_cast<int>(random_() % static_cast<unsigned>(most)); }
  template <typename List>
  const auto& one_of(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(std::size(list))))];
  }

 private:
  std::mt19937_64 random_;
};

/// One call of the team, if it serves that, with its result compared. True where it ran.
bool check_call(torii_team* team, const Cell& cell, const std::string& what) {
  Inputs inputs = {.seed = 22};
  if (cell.op == TORII_USER) {
    // Any order: torii_expect() has that of the algorithm.
    inputs = {.fill = fill_triangles, .user = multiply, .user_bytes = sizeof(Triangle), .commutes = true};
  }
  CellCall call(team, cell, inputs);
  if (!is_served(team, call.call())) return false;
  const torii_status status = torii_run(team, &call.call());
  if (status != TORII_OK && !::testing::Test::HasFailure()) ADD_FAILURE() << what << ": " << torii_last_error();
  if (status == TORII_OK) call.expect_right(what);
  return true;
}

struct Shape {
  int ranks;
  std::string topology;
};

torii_team* make_team(torii_context* context, const Shape& shape, const std::string& algorithm, bool canonical,
                      bool wire) {
  torii_team_options options = {};
  options.size = sizeof(options);
  options.topology = shape.topology.c_str();
  options.algorithm = algorithm.c_str();
  options.determinism = canonical ? "canonical" : "run";
  options.wire = wire ? "f32" : "type";
  options.segment_bytes = 512;
  torii_team* team = nullptr;
  EXPECT_EQ(torii_team_create(context, &options, &team), TORII_OK) << torii_last_error();
  return team;
}

/// One team, and calls of all collectives on it. Returns how many collectives it served.
int check_team(torii_context* context, const Shape& shape, const std::string& algorithm, bool canonical, bool wire,
               Draw draw, const std::vector<Operand>& only = {}) {
  torii_team* const team = make_team(context, shape, algorithm, canonical, wire);
  if (team == nullptr) return 0;
  const std::string what = algorithm + " on " + shape.topology + " of " + std::to_string(shape.ranks) +
                           (canonical ? ", canonical" : "") + (wire ? ", wire f32" : "");
  constexpr std::size_t kCounts[] = {1, 7, 130, 700};
  int served = 0;
  for (const torii_collective collective : kAllCollectives) {
    const bool folds = combines(collective);
    std::vector<Operand> operands = {draw.one_of(kOperands)};
    if (folds && !only.empty()) operands = only;
    for (Operand operand : operands) {
      if (!folds) operand.op = TORII_SUM;
      const int root = has_root(collective) ? draw.below(shape.ranks) : 0;
      const std::size_t count = draw.one_of(kCounts);
      const bool in_place = draw.below(2) != 0;
      served += check_call(team, {collective, operand.type, operand.op, count, root, in_place}, what) ? 1 : 0;
    }
  }
  EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
  return served;
}

/// Runs every row on the shape: with a drawn order and wire, or with all of them.
void check_shape(torii_context* context, const Shape& shape, Draw draw, bool all) {
  int served = 0;
  for (const Algorithm& algorithm : catalogue()) {
    for (int mode = 0; mode < 4; ++mode) {
      const int drawn = draw.below(4);
      const auto seed = static_cast<std::uint64_t>(draw.below(1 << 30));
      if (!all && mode != drawn) continue;
      served += check_team(context, shape, std::string(algorithm.name), mode % 2 != 0, mode / 2 != 0, Draw(seed),
                           all ? kOperands : std::vector<Operand>{});
    }
  }
  // Of a row one order and wire is drawn, which it need not serve.
  EXPECT_GE(served, all ? 10 : 5) << shape.topology;
}

ThreadTeam threads(int ranks) {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = std::string("ARENA=") + (ranks > 64 ? "4G" : "2G") + "\nTIMEOUT=30\nWAIT=yield";
  return options;
}

/// A torus or mesh of nodes with several ranks each, of at most `most` ranks and more than half of that.
Shape draw_shape(int most, Draw& draw) {
  while (true) {
    int nodes = 1;
    std::string text = draw.below(3) != 0 ? "torus:" : "mesh:";
    for (int dimension = draw.below(3); dimension >= 0; --dimension) {
      const int extent = 1 + draw.below(5);
      nodes *= extent;
      text += std::to_string(extent) + (dimension > 0 ? "x" : "");
    }
    const int per_node = 1 + draw.below(most);
    if (nodes * per_node > most || nodes * per_node <= most / 2) continue;
    return {nodes * per_node, text + "*" + std::to_string(per_node)};
  }
}

/// 32 ranks on each of two nodes: a step folds the operands of 32 mates and, beyond them, what comes wide.
TEST(ManyRanks, FoldMoreThan32SourcesOfAStep) {
  run_as_threads(threads(64), [](torii_context* context, torii_team*) {
    for (const char* algorithm : {"trinaryx3", "bucket"}) {
      check_team(context, {64, "torus:2*32"}, algorithm, false, true, Draw(1), kOperands);
    }
  });
}

/// As many operands of a user's on one node.
TEST(ManyRanks, FoldMoreThan256SourcesOfAUsersOperation) {
  if (!is_full()) GTEST_SKIP() << "260 threads take long; tests/reduce_kernels folds as many in short runs";
  run_as_threads(threads(260), [](torii_context* context, torii_team*) {
    torii_team* const team = make_team(context, {260, "torus:1*260"}, "trinaryx3", false, false);
    if (team == nullptr) return;
    EXPECT_TRUE(check_call(team, {TORII_REDUCE, TORII_U8, TORII_USER, 1000, 259}, "260 mates"));
    EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
  });
}

TEST(ManyRanks, OfOneNodeGiveTheDeclaredExpression) {
  for (const Seed& seed : seeds_of("conformance_many_ranks/one_node", 1)) {
    run_as_threads(threads(64), [&](torii_context* context, torii_team*) {
      SCOPED_TRACE(seed);
      check_shape(context, {64, "node"}, Draw(seed.value), is_full());
    });
  }
}

/// One of three consecutive seeds has more than 32 ranks.
TEST(ManyRanks, OfDrawnShapesGiveTheDeclaredExpression) {
  for (const Seed& seed : seeds_of("conformance_many_ranks/shapes", is_full() ? 30 : 3)) {
    if (HasFailure()) return;
    Draw draw(seed.value);
    const Shape shape = draw_shape(seed.value % 3 == 0 ? 64 : 8 + draw.below(57), draw);
    run_as_threads(threads(shape.ranks), [&](torii_context* context, torii_team*) {
      SCOPED_TRACE(seed);
      check_shape(context, shape, draw, is_full());
    });
  }
}

#ifdef TORII_TEST_LIBFABRIC
/// Drawn numbers of ranks on each of two to four nodes, in a drawn order, joined by libfabric.
TEST(ManyRanks, OnDrawnNodesGiveTheDeclaredExpression) {
  for (const Seed& seed : seeds_of("conformance_many_ranks/nodes", is_full() ? 20 : 2)) {
    if (HasFailure()) return;
    Draw draw(seed.value);
    const int ranks = 9 + draw.below(5);
    ThreadTeam options = threads(ranks);
    options.settings += "\nENGINES=2";
    const int nodes = 2 + draw.below(3);
    for (int rank = 0; rank < ranks; ++rank) options.nodes.push_back(rank < nodes ? rank : draw.below(nodes));
    run_as_threads(options, [&](torii_context* context, torii_team* world) {
      SCOPED_TRACE(seed);
      torii_choice choice = {};
      choice.size = sizeof(choice);
      const torii_call barrier = make_call(TORII_BARRIER, nullptr, nullptr, 0, TORII_U8);
      EXPECT_EQ(torii_choose(world, &barrier, &choice), TORII_OK) << torii_last_error();
      EXPECT_STRNE(choice.transport, "shared_memory");
      check_shape(context, {ranks, "node"}, draw, is_full());
    });
  }
}
#endif

/// A hub with 40 leaves, to which all send in a reduce.
TEST(ManyRanks, OfAStarGiveTheDeclaredExpression) {
  constexpr int kLeaves = 40;
  std::string name = (std::filesystem::temp_directory_path() / "torii_test_star_XXXXXX").string();
  const int file = mkstemp(name.data());
  ASSERT_GE(file, 0);
  close(file);
  {
    std::ofstream text(name);
    text << "node hub comm\n";
    for (int leaf = 0; leaf < kLeaves; ++leaf) {
      text << "node leaf" << leaf << " comm\n";
      text << "link hub leaf" << leaf << " 1GB/s 1GB/s 1us 1us full\n";
    }
  }
  run_as_threads(threads(kLeaves + 1), [&](torii_context* context, torii_team*) {
    for (const char* algorithm : {"scheduled", "chain"}) {
      for (const bool wire : {false, true}) {
        check_team(context, {kLeaves + 1, "tree:" + name}, algorithm, false, wire, Draw(3), kOperands);
      }
    }
  });
  std::filesystem::remove(name);
}

}  // namespace
}  // namespace torii::tests
