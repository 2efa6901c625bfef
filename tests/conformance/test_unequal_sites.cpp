// SPDX-License-Identifier: Apache-2.0
// Scatterv and gatherv by plans of flows, whose lengths the root tells first: between two and three sites over lanes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/conformance/unequal_blocks.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;

/// A team on sites of these sizes; the file of its tree is gone at the end.
class SitesTeam {
 public:
  explicit SitesTeam(const std::vector<int>& sizes, const std::string& algorithm = "multilane") {
    std::string path = (fs::temp_directory_path() / "torii_test_sites_XXXXXX").string();
    const int file = mkstemp(path.data());
    EXPECT_GE(file, 0);
    close(file);
    path_ = path;
    const TreeTopology tree = tests::sites_tree(sizes);
    std::ofstream(path_) << tree.text();
    options_.topology = "tree:" + path;
    options_.ranks = tree.ranks();
    options_.algorithm = algorithm;
    options_.segment_bytes = 1024;
    options_.settings = "ARENA=1G\nTIMEOUT=20";
  }
  ~SitesTeam() { fs::remove(path_); }
  SitesTeam(const SitesTeam&) = delete;
  SitesTeam& operator=(const SitesTeam&) = delete;
  ThreadTeam& options() { return options_; }

 private:
  fs::path path_;
  ThreadTeam options_;
};

/// What a scatterv and the gatherv of what it brought move; equal on all ranks but for the memory.
struct Round {
  Blocks all;
  int root;
  bool displaced;
  bool in_place;  ///< at the root
  std::uint64_t seed;
};

/// Twelve seeds that follow each other have all kinds.
Round round_of(std::uint64_t seed, int ranks) {
  const int root = static_cast<int>(seed % static_cast<std::uint64_t>(ranks));
  const bool displaced = seed % 3 == 0;
  const auto count = [&](int peer) { return seed % 12 == 4 ? 0 : count_of(seed, root, peer); };
  return {Blocks(counts_by_peer(ranks, count), displaced), root, displaced, seed % 4 == 1, seed};
}

torii_call scatter_of(const Round& round, int rank, std::int64_t* vector, std::int64_t* block) {
  const bool is_root = rank == round.root;
  torii_call call = make_call(TORII_SCATTER, is_root ? vector : nullptr, block,
                              round.all.counts[static_cast<std::size_t>(rank)], TORII_I64, TORII_SUM, round.root);
  call.unequal = 1;
  call.input_counts = is_root ? round.all.counts.data() : nullptr;
  call.input_displacements = is_root ? round.all.displacements(round.displaced) : nullptr;
  return call;
}

torii_call gather_of(const Round& round, int rank, const std::int64_t* block, std::int64_t* vector) {
  const bool is_root = rank == round.root;
  torii_call call = make_call(TORII_GATHER, block, is_root ? vector : nullptr,
                              round.all.counts[static_cast<std::size_t>(rank)], TORII_I64, TORII_SUM, round.root);
  call.unequal = 1;
  call.result_counts = is_root ? round.all.counts.data() : nullptr;
  call.result_displacements = is_root ? round.all.displacements(round.displaced) : nullptr;
  return call;
}

void expect_block(const Round& round, int rank, const std::int64_t* block) {
  const std::size_t count = round.all.counts[static_cast<std::size_t>(rank)];
  int wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += block[i] == element(round.root, rank, i) ? 0 : 1;
  EXPECT_EQ(wrong, 0) << "seed " << round.seed << " rank " << rank;
}

/// What lies between the blocks is left alone.
void expect_gathered(const Round& round, const std::int64_t* vector) {
  std::vector<std::int64_t> expected(round.all.reach, -1);
  for (std::size_t peer = 0; peer < round.all.counts.size(); ++peer) {
    for (std::size_t i = 0; i < round.all.counts[peer]; ++i) {
      expected[round.all.places[peer] + i] = element(round.root, static_cast<int>(peer), i);
    }
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), vector)) << "seed " << round.seed;
}

void check_round(torii_context* context, torii_team* team, const Round& round) {
  const int rank = torii_team_rank(team);
  const auto own = static_cast<std::size_t>(rank);
  Memory vector(context, round.all.reach, (own + round.seed) % 2 == 0);
  Memory gathered(context, round.all.reach, (own + round.seed) % 3 == 0);
  Memory separate(context, round.all.counts[own], (own + round.seed) % 4 < 2);
  const bool in_place = round.in_place && rank == round.root;
  std::int64_t* const block = in_place ? vector.data() + round.all.places[own] : separate.data();
  std::int64_t* const back = in_place ? gathered.data() + round.all.places[own] : block;
  if (rank == round.root) fill_blocks(vector.data(), round.all, rank);
  const torii_call scatter = scatter_of(round, rank, vector.data(), block);
  ASSERT_EQ(torii_run(team, &scatter), TORII_OK) << torii_last_error();
  expect_block(round, rank, block);
  std::copy_n(block, round.all.counts[own], back);
  const torii_call gather = gather_of(round, rank, back, gathered.data());
  ASSERT_EQ(torii_run(team, &gather), TORII_OK) << torii_last_error();
  if (rank == round.root) expect_gathered(round, gathered.data());
}

TEST(Unequal, LanesAreTakenBetweenSites) {
  SitesTeam sites({2, 3}, "auto");
  run_as_threads(sites.options(), [&](torii_context*, torii_team* team) {
    const Round round = round_of(2, 5);
    std::vector<std::int64_t> vector(round.all.reach), block(round.all.reach);
    const int rank = torii_team_rank(team);
    EXPECT_EQ(algorithm_of(team, scatter_of(round, rank, vector.data(), block.data())), "multilane");
    EXPECT_EQ(algorithm_of(team, gather_of(round, rank, block.data(), vector.data())), "multilane");
  });
}

/// Every root; no, few and many elements; no block at all; displacements; places that peers reach and such that they do
/// not; in place.
TEST(Unequal, BlocksBetweenSitesArrive) {
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/sites", 12);
  for (const std::vector<int>& sizes : {std::vector<int>{2, 3}, {4, 1}, {1, 2, 2}}) {
    for (const char* algorithm : {"multilane", "auto", "node"}) {
      SitesTeam sites(sizes, algorithm);
      run_as_threads(sites.options(), [&](torii_context* context, torii_team* team) {
        for (const Seed& seed : seeds) {
          SCOPED_TRACE(seed);
          check_round(context, team, round_of(seed.value, torii_team_ranks(team)));
          if (::testing::Test::HasFatalFailure()) return;
        }
      });
    }
  }
}

TEST(Unequal, BlocksBetweenSitesInLongSegments) {
  SitesTeam sites({3, 3});
  sites.options().segment_bytes = 256 * 1024;
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/sites_with_long_segments", 36);
  run_as_threads(sites.options(), [&](torii_context* context, torii_team* team) {
    for (const Seed& seed : seeds) {
      SCOPED_TRACE(seed);
      check_round(context, team, round_of(seed.value, 6));
      // One call more when all roots have had their turn: the next time they have the other channel.
      if (seed.value % 6 != 0) continue;
      std::int64_t one = 1;
      ASSERT_EQ(torii_broadcast(team, &one, 1, TORII_I64, 0), TORII_OK) << torii_last_error();
    }
  });
}

/// Calls in flight together, each with lengths of its own to tell.
TEST(Unequal, BlocksOfRequestsBetweenSites) {
  SitesTeam sites({2, 3});
  run_as_threads(sites.options(), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    constexpr std::uint64_t kCalls = 6;
    std::vector<Round> rounds;
    std::vector<std::unique_ptr<Memory>> vectors, blocks;
    std::vector<torii_request*> requests(kCalls);
    for (std::uint64_t call = 0; call < kCalls; ++call) {
      rounds.push_back(round_of(call + 5, 5));
      const Round& round = rounds.back();
      vectors.push_back(std::make_unique<Memory>(context, round.all.reach, call % 2 == 0));
      blocks.push_back(std::make_unique<Memory>(context, round.all.counts[static_cast<std::size_t>(rank)], call < 3));
      fill_blocks(vectors.back()->data(), round.all, round.root);
    }
    for (std::size_t call = 0; call < kCalls; ++call) {
      const torii_call scatter = scatter_of(rounds[call], rank, vectors[call]->data(), blocks[call]->data());
      ASSERT_EQ(torii_start(team, &scatter, &requests[call]), TORII_OK) << torii_last_error();
    }
    for (std::size_t call = kCalls; call-- > 0;) {
      ASSERT_EQ(torii_wait(&requests[call]), TORII_OK) << torii_last_error();
      expect_block(rounds[call], rank, blocks[call]->data());
    }
  });
}

/// A persistent operation tells its lengths once, and other calls run in between.
TEST(Unequal, BlocksOfPersistentOperationsBetweenSites) {
  SitesTeam sites({2, 1, 2});
  run_as_threads(sites.options(), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    const Round round = round_of(7, 5);
    const Round other = round_of(8, 5);
    const std::size_t own = round.all.counts[static_cast<std::size_t>(rank)];
    Memory vector(context, round.all.reach, true);
    Memory block(context, own, false);
    Memory gathered(context, round.all.reach, true);
    torii_request* scatter = nullptr;
    torii_request* gather = nullptr;
    const torii_call scattering = scatter_of(round, rank, vector.data(), block.data());
    const torii_call gathering = gather_of(round, rank, block.data(), gathered.data());
    ASSERT_EQ(torii_prepare(team, &scattering, &scatter), TORII_OK) << torii_last_error();
    ASSERT_EQ(torii_prepare(team, &gathering, &gather), TORII_OK) << torii_last_error();
    for (int turn = 0; turn < 4; ++turn) {
      std::fill_n(block.data(), own, -2);
      std::fill_n(gathered.data(), round.all.reach, -1);
      fill_blocks(vector.data(), round.all, round.root);
      for (torii_request* request : {scatter, gather}) {
        ASSERT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
        check_round(context, team, other);
      }
      expect_block(round, rank, block.data());
      if (rank == round.root) expect_gathered(round, gathered.data());
    }
    EXPECT_EQ(torii_request_free(&scatter), TORII_OK);
    EXPECT_EQ(torii_request_free(&gather), TORII_OK);
  });
}

/// Rank 3 expects one element more than the root has for it.
TEST(Unequal, LengthsThatDifferBetweenSitesAreNamed) {
  for (const bool is_scatter : {true, false}) {
    SitesTeam sites({2, 2});
    run_as_threads(sites.options(), [&](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      const Counts counts(4, 10);
      const std::vector<std::int64_t> input(40);
      std::vector<std::int64_t> result(40);
      const std::size_t own = rank == 3 ? 11 : 10;
      torii_status status =
          is_scatter ? torii_scatterv(team, input.data(), counts.data(), nullptr, result.data(), own, TORII_I64, 0)
                     : torii_gatherv(team, input.data(), own, result.data(), counts.data(), nullptr, TORII_I64, 0);
      // A rank that has done its part when the others notice learns of it in its next call.
      if (status == TORII_OK) status = torii_allreduce(team, input.data(), result.data(), 1, TORII_I64, TORII_SUM);
      EXPECT_EQ(status, TORII_MISMATCH);
      const std::string text = torii_last_error();
      EXPECT_NE(text.find("has 80 bytes for rank 3 on host"), std::string::npos) << text;
      EXPECT_NE(text.find("which has 88: unequal lengths for a block between them during " +
                          std::string(is_scatter ? "scatter" : "gather") + " of unequal blocks"),
                std::string::npos)
          << text;
    });
  }
}

}  // namespace
}  // namespace torii::tests
