// SPDX-License-Identifier: Apache-2.0
// Teams on trees of links: what runs there and that it is right, files that differ between ranks, parts.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;

/// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "torii_test_tree_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const TreeTopology& tree) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << tree.text();
    return (path_ / name).string();
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// A broadcast and a reduce of `count` numbers; both are checked on the ranks that have a result.
void check_calls(torii_team* team, std::size_t count, int root) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  std::vector<std::int32_t> wanted(count), vector(count, -1), sum(count, -1);
  std::iota(wanted.begin(), wanted.end(), root + 1);
  if (rank == root) vector = wanted;
  const torii_call broadcast =
      make_call(TORII_BROADCAST, vector.data(), vector.data(), count, TORII_I32, TORII_SUM, root);
  ASSERT_EQ(torii_run(team, &broadcast), TORII_OK) << torii_last_error();
  ASSERT_EQ(vector, wanted) << "rank " << rank << ", root " << root;
  for (std::int32_t& value : vector) value += rank;
  const torii_call reduce = make_call(TORII_REDUCE, vector.data(), sum.data(), count, TORII_I32, TORII_SUM, root);
  ASSERT_EQ(torii_run(team, &reduce), TORII_OK) << torii_last_error();
  if (rank != root) return;
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sum[i], ranks * wanted[i] + ranks * (ranks - 1) / 2) << i;
}

TEST(TreeTeams, RunBothAlgorithmsFromEveryRoot) {
  const Folder folder;
  ThreadTeam options;
  options.topology = "tree:" + folder.write("mixed", tests::tree_of({2, 2, 2, true, true}));
  options.ranks = 8;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  for (const char* algorithm : {"scheduled", "chain", "auto"}) {
    options.algorithm = algorithm;
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      for (const std::size_t count : {1UL, 15UL, 1000UL, 100'000UL}) {
        for (const int root : {0, 5, 7}) check_calls(team, count, root);
      }
      ASSERT_EQ(torii_barrier(team), std::string(algorithm) == "auto" ? TORII_OK : TORII_UNSUPPORTED);
    });
  }
}

/// The models of a tree see every byte, so each length is a call class of its own.
TEST(TreeTeams, ForgetTheOldestOfMoreClassesThanTheyKeep) {
  constexpr int kRanks = 8;
  ThreadTeam options;
  options.ranks = kRanks;
  options.settings = "ARENA=1G\nTIMEOUT=30";
  const Folder folder;
  options.topology = "tree:" + folder.write("mixed", tests::tree_of({2, 2, 2, true, true}));
  run_as_threads(options, [](torii_context* context, torii_team* team) {
    std::vector<std::int64_t> vector(8192);
    for (int round = 0; round < 2; ++round) {
      for (int root = 0; root < kRanks; ++root) {
        // Each length that models see is a class.
        for (std::size_t count = 8; count <= vector.size(); count += std::bit_floor(count) / 4) {
          vector[count - 1] = torii_team_rank(team) == root ? 7 + round : 0;
          ASSERT_EQ(torii_broadcast(team, vector.data(), count, TORII_I64, root), TORII_OK) << torii_last_error();
          ASSERT_EQ(vector[count - 1], 7 + round) << count << " from " << root;
        }
      }
    }
    torii_counters counters = {};
    counters.size = sizeof(counters);
    ASSERT_EQ(torii_context_counters(context, &counters), TORII_OK);
    EXPECT_GT(counters.call_plans, 512U) << "those of the second round had been forgotten";
  });
}

/// Short messages whole, long ones in segments: chain divides the slowest link's time by the number of hops.
TEST(TreeTeams, TheModelChoosesByLength) {
  const Folder folder;
  ThreadTeam options;
  options.topology = "tree:" + folder.write("mixed", tests::tree_of({2, 2, 2, true, true}));
  options.ranks = 8;
  options.settings = "ARENA=256M\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* team) {
    char byte = 0;
    for (const auto collective : {TORII_BROADCAST, TORII_REDUCE}) {
      EXPECT_EQ(algorithm_of(team, make_call(collective, &byte, &byte, 1000, TORII_U8)), "scheduled");
      EXPECT_EQ(algorithm_of(team, make_call(collective, &byte, &byte, 1'000'000, TORII_U8)), "chain");
    }
    EXPECT_NE(algorithm_of(team, make_call(TORII_ALLREDUCE, &byte, &byte, 1000, TORII_U8)), "chain");
  });
}

/// The same relative path is another file for a thread with a working folder of its own.
TEST(TreeTeams, FilesThatDifferBetweenRanksAreNoticed) {
  const Folder folder;
  folder.write("0/net", tests::star_of(3));
  folder.write("1/net", tests::star_of(3));
  folder.write("2/net", tests::star_of(3, false));
  ThreadTeam options;
  options.ranks = 3;
  options.settings = "ARENA=256M\nTIMEOUT=20";
  const std::string here = fs::current_path().string();
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    const std::string own = (folder.path() / std::to_string(torii_team_rank(team))).string();
    ASSERT_EQ(unshare(CLONE_FS), 0);
    ASSERT_EQ(chdir(own.c_str()), 0);
    torii_team_options team_options = {};
    team_options.size = sizeof(team_options);
    team_options.topology = "tree:net";
    torii_team* on_tree = nullptr;
    EXPECT_EQ(torii_team_create(context, &team_options, &on_tree), TORII_MISMATCH);
    const std::string differs = torii_last_error();
    EXPECT_NE(differs.find("rank 2 differs from rank 0: 'team tree digest="), std::string::npos) << differs;
    // Where one rank cannot read its file, all of them learn why.
    if (torii_team_rank(team) == 2) fs::remove("net");
    EXPECT_EQ(torii_team_create(context, &team_options, &on_tree), TORII_MISMATCH);
    const std::string missing = torii_last_error();
    EXPECT_NE(missing.find("rank 2 differs from rank 0: 'team tree topology file: cannot read 'net': No such"),
              std::string::npos)
        << missing;
    team_options.topology = "tree:nowhere";
    EXPECT_EQ(torii_team_create(context, &team_options, &on_tree), TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("cannot read 'nowhere': No such file or directory"),
              std::string::npos);
    EXPECT_EQ(torii_barrier(team), TORII_OK) << torii_last_error();
    EXPECT_EQ(chdir(here.c_str()), 0);
  });
}

/// Rank 0 and 1 beside the others, as from another site.
TreeTopology two_sites(const std::string& line = "1MB/s") {
  return TreeTopology::parse(
      "node s relay\nnode t relay\nnode a comm\nnode b comm\nnode c comm\nnode d comm\nnode e comm\n"
      "link a s 1GB/s 1GB/s 0us 0us full\nlink b s 1GB/s 1GB/s 0us 0us full\nlink c t 1GB/s 1GB/s 0us 0us full\n"
      "link d t 1GB/s 1GB/s 0us 0us full\nlink e t 1GB/s 1GB/s 0us 0us full\nlink s t " +
          line + " " + line + " 8ms 8ms full\n",
      "sites");
}

/// A scatter of numbers that count up, then a gather of what came; in place at the root where `in_place` says so.
void check_blocks(torii_team* team, std::int32_t* all, std::int32_t* own, std::size_t block, int root, bool in_place) {
  const int rank = torii_team_rank(team);
  const std::size_t count = block * static_cast<std::size_t>(torii_team_ranks(team));
  const auto first = static_cast<std::int32_t>(block) * rank;
  if (rank == root) std::iota(all, all + count, 0);
  if (rank == root && in_place) own = all + first;
  ASSERT_EQ(torii_scatter(team, all, own, block, TORII_I32, root), TORII_OK) << torii_last_error();
  for (std::size_t i = 0; i < block; ++i) ASSERT_EQ(own[i], first + static_cast<std::int32_t>(i)) << "rank " << rank;
  for (std::size_t i = 0; i < block; ++i) ++own[i];
  ASSERT_EQ(torii_gather(team, own, all, block, TORII_I32, root), TORII_OK) << torii_last_error();
  for (std::size_t i = 0; rank == root && i < count; ++i) ASSERT_EQ(all[i], static_cast<std::int32_t>(i) + 1);
}

TEST(TreeTeams, ScatterAndGatherBetweenSites) {
  const Folder folder;
  ThreadTeam options;
  options.topology = "tree:" + folder.write("sites", two_sites());
  options.ranks = 5;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    char byte = 0;
    EXPECT_EQ(algorithm_of(team, make_call(TORII_SCATTER, &byte, &byte, 10'000, TORII_U8)), "multilane");
    EXPECT_EQ(algorithm_of(team, make_call(TORII_GATHER, &byte, &byte, 100, TORII_U8)), "direct");
    void* reachable = nullptr;
    ASSERT_EQ(torii_allocate(context, 6 * 40'000, &reachable), TORII_OK);
    auto* const mapped = static_cast<std::int32_t*>(reachable);
    for (const std::size_t block : {1000UL, 10'000UL}) {
      std::vector<std::int32_t> all(5 * block), own(block);
      for (const int root : {0, 1, 4}) {
        check_blocks(team, all.data(), own.data(), block, root, root == 1);
        check_blocks(team, mapped, mapped + 5 * block, block, root, root == 4);
        check_blocks(team, mapped, own.data(), block, root, false);
      }
    }
    EXPECT_EQ(torii_free(context, reachable), TORII_OK);
  });
}

/// Whole vectors over lanes, where one stream would not fill the line, from and to every rank and back to all.
TEST(TreeTeams, VectorsBetweenSites) {
  const Folder folder;
  ThreadTeam options;
  options.topology = "tree:" + folder.write("sites", two_sites("100MB/s"));
  options.ranks = 5;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  for (const char* algorithm : {"multilane", "auto"}) {
    options.algorithm = algorithm;
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      char byte = 0;
      for (const auto collective : {TORII_BROADCAST, TORII_REDUCE, TORII_ALLREDUCE}) {
        EXPECT_EQ(algorithm_of(team, make_call(collective, &byte, &byte, 4'000'000, TORII_U8)), "multilane");
      }
      for (const std::size_t count : {1UL, 1000UL, 100'001UL}) {
        for (const int root : {0, 1, 4}) check_calls(team, count, root);
        std::vector<std::int32_t> mine(count), sum(count);
        std::iota(mine.begin(), mine.end(), torii_team_rank(team));
        ASSERT_EQ(torii_allreduce(team, mine.data(), sum.data(), count, TORII_I32, TORII_SUM), TORII_OK);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sum[i], 5 * static_cast<std::int32_t>(i) + 10) << i;
      }
    });
  }
}

TEST(TreeTeams, AlltoallBetweenSites) {
  const Folder folder;
  ThreadTeam options;
  options.topology = "tree:" + folder.write("sites", two_sites());
  options.ranks = 5;
  options.settings = "ARENA=1G\nTIMEOUT=20";
  for (const std::string algorithm : {"multilane", "auto"}) {
    options.algorithm = algorithm;
    run_as_threads(options, [&](torii_context*, torii_team* team) {
      const int rank = torii_team_rank(team);
      char byte = 0;
      EXPECT_EQ(algorithm_of(team, make_call(TORII_ALLTOALL, &byte, &byte, 10'000, TORII_U8)),
                algorithm == "auto" ? "direct" : algorithm);
      for (const std::size_t block : {1UL, 1000UL, 40'001UL}) {
        std::vector<std::int32_t> input(5 * block), result(5 * block, -1);
        const auto value = [&](int from, int to, std::size_t i) {
          return 1'000'000 * (5 * from + to) + static_cast<std::int32_t>(i);
        };
        for (std::size_t i = 0; i < input.size(); ++i) input[i] = value(rank, static_cast<int>(i / block), i % block);
        ASSERT_EQ(torii_alltoall(team, input.data(), result.data(), block, TORII_I32), TORII_OK) << torii_last_error();
        int wrong = 0;
        for (std::size_t i = 0; i < result.size(); ++i) {
          wrong += result[i] == value(static_cast<int>(i / block), rank, i % block) ? 0 : 1;
        }
        EXPECT_EQ(wrong, 0) << "rank " << rank << " block " << block;
      }
    });
  }
}

TEST(TreeTeams, PartsStandOnTheWaysBetweenTheirRanks) {
  const Folder folder;
  const std::string file = folder.write("mixed", tests::tree_of({2, 2, 2, true, true}));
  ThreadTeam options;
  options.topology = "tree:" + file;
  options.ranks = 8;
  options.settings = "ARENA=2G\nTIMEOUT=20";
  run_as_threads(options, [&](torii_context*, torii_team* whole) {
    const int rank = torii_team_rank(whole);
    // Backwards, so that the ranks of the part are not those of the file.
    torii_team* part = nullptr;
    ASSERT_EQ(torii_team_split(whole, rank % 2, -rank, nullptr, &part), TORII_OK) << torii_last_error();
    if (rank == 0) fs::remove(file);  // what has been read is kept
    ASSERT_EQ(torii_team_ranks(part), 4);
    char byte = 0;
    EXPECT_EQ(algorithm_of(part, make_call(TORII_BROADCAST, &byte, &byte, 1'000'000, TORII_U8)), "chain");
    for (const std::size_t count : {10UL, 50'000UL}) check_calls(part, count, 1);
    torii_team* smaller = nullptr;
    ASSERT_EQ(torii_team_split(part, torii_team_rank(part) / 2, 0, nullptr, &smaller), TORII_OK) << torii_last_error();
    check_calls(smaller, 1000, 1);
    EXPECT_EQ(torii_team_destroy(smaller), TORII_OK);
    EXPECT_EQ(torii_team_destroy(part), TORII_OK);
  });
}

}  // namespace
}  // namespace torii::tests
