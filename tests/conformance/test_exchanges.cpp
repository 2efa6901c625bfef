// SPDX-License-Identifier: Apache-2.0
// Pairwise exchanges run by the executor: over nodes, with few entries in flight, past a receiver that does not come;
// in place, non-blocking, persistent; and calls that differ.
#include <gtest/gtest.h>
#include <torii/torii.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/plan_team.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kElement = sizeof(float);

/// What rank `rank` holds after a call in block `from`, or nullptr where it has no result there.
const std::byte* wanted(Collective collective, int root, int rank, int from, std::size_t block_bytes,
                        const std::vector<std::vector<std::byte>>& inputs) {
  const auto block = [&](int of, int number) {
    return inputs[static_cast<std::size_t>(of)].data() + static_cast<std::size_t>(number) * block_bytes;
  };
  if (collective == Collective::alltoall) return block(from, rank);
  if (collective == Collective::scatter) return from == rank ? block(root, rank) : nullptr;
  return rank == root ? block(from, from) : nullptr;
}

void expect_blocks(const PlanRun& run, Collective collective, int root, const PlanOutcome& outcome,
                   const FillOperand& fill) {
  const int ranks = static_cast<int>(run.plans.size());
  const std::size_t bytes = run.count * kElement;
  const std::size_t block_bytes = bytes / static_cast<std::size_t>(ranks);
  for (int call = 0; call < run.calls; ++call) {
    std::vector<std::vector<std::byte>> inputs;
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.emplace_back(bytes);
      fill(rank, call, inputs.back().data());
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<std::byte>& got =
          outcome.results[static_cast<std::size_t>(rank)][static_cast<std::size_t>(call)];
      for (int from = 0; from < ranks; ++from) {
        const std::byte* right = wanted(collective, root, rank, from, block_bytes, inputs);
        if (right == nullptr) continue;
        ASSERT_EQ(std::memcmp(got.data() + static_cast<std::size_t>(from) * block_bytes, right, block_bytes), 0)
            << name(collective) << " call " << call << " rank " << rank << " block " << from << " of " << block_bytes
            << " bytes";
      }
    }
  }
}

/// Three calls with operands of their own, every block compared. `runs` names the run in what a failure says.
PlanOutcome run_and_compare(PlanRun& run, Collective collective, int root, const Seed& seed, int runs) {
  run.calls = 3;
  run.faults.seed = seed.value * 1000 + static_cast<std::uint64_t>(runs);
  const FillOperand fill = filler(run);
  PlanOutcome outcome = run_plans(run, fill);
  SCOPED_TRACE(std::string(name(collective)) + ", run " + std::to_string(runs));
  EXPECT_TRUE(outcome.ok());
  if (outcome.ok()) expect_blocks(run, collective, root, outcome, fill);
  return outcome;
}

PlanRequest request_of(Collective collective, int ranks, int window) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::node(ranks);
  request.root = collective == Collective::alltoall ? 0 : 1;
  request.tuning = {.segment_bytes = 512, .slots = 2, .window = window};
  return request;
}

/// All mixtures of nodes, of reachable and private memory, of long and short blocks; some entries in flight only.
void move_blocks_between_nodes(const Seed& seed) {
  constexpr int kRanks = 5;
  int runs = 0;
  int read = 0;
  for (const Collective collective : {Collective::alltoall, Collective::scatter, Collective::gather}) {
    for (const std::vector<int>& nodes : {std::vector<int>{}, {0, 1, 2, 3, 4}, {0, 0, 1, 1, 2}, {0, 1, 0, 1, 0}}) {
      for (const std::size_t block : {std::size_t{3}, std::size_t{14}, std::size_t{100}, std::size_t{5000}}) {
        for (const bool gathers : {false, true}) {
          const int window = 1 + runs % 3;
          PlanRequest request = request_of(collective, kRanks, window);
          if (gathers) request.tuning.segment_bytes = 16384;
          PlanRun run = make_run("direct", request, block * kRanks);
          ASSERT_TRUE(run.plans[0].exchange.exists());
          run.nodes = nodes;
          run.gathers = gathers;
          run.allocated = gathers || runs % 3 == 0;
          run.cross_memory = !run.allocated && runs % 3 == 1;
          const PlanOutcome outcome = run_and_compare(run, collective, request.root, seed, ++runs);
          if (::testing::Test::HasFailure()) return;
          EXPECT_LE(outcome.targets_most, window) << name(collective) << ", run " << runs;
          EXPECT_EQ(outcome.distant_puts != 0, !nodes.empty());
          EXPECT_EQ(outcome.puts_from_vectors != 0, gathers && !nodes.empty() && block == 5000);
          if (run.cross_memory && nodes.empty() && block == 5000) {
            ++read;
            EXPECT_GT(outcome.reads, 0U) << name(collective);
          }
        }
      }
    }
  }
  EXPECT_GT(read, 0);
}

TEST(Exchanges, MoveEveryBlockBetweenNodes) {
  for (const Seed& seed : seeds_of("conformance_exchanges/pairwise", 1)) {
    SCOPED_TRACE(seed);
    move_blocks_between_nodes(seed);
  }
}

/// multilane moves the same blocks by flows: ranks of a site together, in pairs, apart, across sites.
void move_blocks_over_lanes(const Seed& seed) {
  const TreeTopology tree = TreeTopology::parse(
      "node s relay\nnode t relay\nnode a comm\nnode b comm\nnode c comm\nnode d comm\nnode e comm\n"
      "link a s 1GB/s 1GB/s 0us 0us full\nlink b s 1GB/s 1GB/s 0us 0us full\nlink c t 1GB/s 1GB/s 0us 0us full\n"
      "link d t 1GB/s 1GB/s 0us 0us full\nlink e t 1GB/s 1GB/s 0us 0us full\nlink s t 1MB/s 1MB/s 8ms 8ms full\n",
      "sites");
  int runs = 0;
  for (const Collective collective : {Collective::scatter, Collective::gather}) {
    for (const std::vector<int>& nodes : {std::vector<int>{}, {0, 1, 2, 3, 4}, {0, 0, 1, 1, 1}, {0, 1, 0, 1, 0}}) {
      for (const std::size_t block : {std::size_t{3}, std::size_t{32}, std::size_t{4992}}) {
        PlanRequest request = request_of(collective, 5, 2);
        request.topology = Topology::of_tree(tree, "sites");
        request.root = runs % 5;
        request.tuning.lanes.fill(static_cast<std::uint8_t>(1 + runs % 2));
        const bool gathers = runs % 4 < 2;
        if (gathers) request.tuning.segment_bytes = 16384;
        PlanRun run = make_run("multilane", request, block * 5);
        run.nodes = nodes;
        run.gathers = gathers;
        run.allocated = gathers || runs % 3 == 0;
        const PlanOutcome outcome = run_and_compare(run, collective, request.root, seed, ++runs);
        if (::testing::Test::HasFailure()) return;
        EXPECT_EQ(outcome.distant_puts != 0, !nodes.empty());
      }
    }
  }
}

TEST(Multilane, MovesEveryBlockBetweenNodes) {
  for (const Seed& seed : seeds_of("conformance_exchanges/lanes", 1)) {
    SCOPED_TRACE(seed);
    move_blocks_over_lanes(seed);
  }
}

/// The bound is used to the full, and it is the plan's: with a greater one more is under way.
TEST(Exchanges, HaveNeverMoreInFlightThanThePlanAllows) {
  for (const int window : {1, 2, 4}) {
    PlanRun run = make_run("direct", request_of(Collective::alltoall, 7, window), 7 * 1000);
    run.nodes = {0, 1, 2, 3, 4, 5, 6};
    run.calls = 2;
    run.faults.seed = 5;
    const PlanOutcome outcome = run_plans(run, filler(run));
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome.targets_most, window);
  }
}

ThreadTeam team_of(int ranks, const std::string& more = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.segment_bytes = 1024;
  options.settings = "ARENA=1G\nTIMEOUT=20\n" + more;
  return options;
}

/// The vector of a rank: element i of rank r is r * 1'000'000 + i.
std::vector<std::int64_t> vector_of(int rank, std::size_t count) {
  std::vector<std::int64_t> vector(count);
  std::iota(vector.begin(), vector.end(), static_cast<std::int64_t>(rank) * 1'000'000);
  return vector;
}

bool is_transposed(const std::vector<std::int64_t>& result, int rank, std::size_t block) {
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto from = static_cast<std::int64_t>(i / block);
    const std::size_t index = static_cast<std::size_t>(rank) * block + i % block;
    if (result[i] != from * 1'000'000 + static_cast<std::int64_t>(index)) return false;
  }
  return true;
}

/// One rank does not come until all others have their blocks: the root must not wait for it, with slots too few for it.
TEST(Exchanges, AReceiverThatDoesNotComeHoldsUpNobody) {
  constexpr int kRanks = 5;
  for (const char* crossing : {"CROSS_MEMORY=off", "CROSS_MEMORY=on"}) {
    std::atomic<int> have = 0;
    run_as_threads(team_of(kRanks, crossing), [&](torii_context*, torii_team* team) {
      constexpr std::size_t kBlock = 20'000;
      const int rank = torii_team_rank(team);
      std::vector<std::int64_t> all = vector_of(rank, rank == 0 ? kBlock * kRanks : 0);
      std::vector<std::int64_t> own(kBlock);
      // The first call of a plan on each of the two channels waits until all members have come to it.
      for (int channel = 0; channel < 2; ++channel) {
        ASSERT_EQ(torii_scatter(team, all.data(), own.data(), kBlock, TORII_I64, 0), TORII_OK) << torii_last_error();
      }
      own.assign(kBlock, 0);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(15);
      while (rank == 1 && have < kRanks - 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      if (rank == 1) {
        EXPECT_EQ(have, kRanks - 2);
      }
      EXPECT_EQ(torii_scatter(team, all.data(), own.data(), kBlock, TORII_I64, 0), TORII_OK) << torii_last_error();
      if (rank > 1) ++have;
      EXPECT_EQ(own[kBlock - 1], static_cast<std::int64_t>(kBlock * static_cast<std::size_t>(rank + 1) - 1));
    });
  }
}

TEST(Exchanges, RunInPlaceNonBlockingAndPersistent) {
  run_as_threads(team_of(4), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const std::size_t block : {std::size_t{1}, std::size_t{300}, std::size_t{20'000}}) {
      std::vector<std::int64_t> data = vector_of(rank, 4 * block);
      ASSERT_EQ(torii_alltoall(team, data.data(), data.data(), block, TORII_I64), TORII_OK) << torii_last_error();
      EXPECT_TRUE(is_transposed(data, rank, block)) << "in place, blocks of " << block;

      void* reachable = nullptr;
      ASSERT_EQ(torii_allocate(context, 4 * block * sizeof(std::int64_t), &reachable), TORII_OK);
      auto* values = static_cast<std::int64_t*>(reachable);
      torii_request* persistent = nullptr;
      const torii_call in_place = make_call(TORII_ALLTOALL, values, values, block, TORII_I64);
      ASSERT_EQ(torii_prepare(team, &in_place, &persistent), TORII_OK) << torii_last_error();
      for (int round = 0; round < 3; ++round) {
        const std::vector<std::int64_t> fresh = vector_of(rank, 4 * block);
        std::copy(fresh.begin(), fresh.end(), values);
        ASSERT_EQ(torii_restart(persistent), TORII_OK) << torii_last_error();
        std::vector<std::int64_t> input = vector_of(rank, 4 * block);
        std::vector<std::int64_t> result(4 * block, -1);
        torii_request* started = nullptr;
        const torii_call call = make_call(TORII_ALLTOALL, input.data(), result.data(), block, TORII_I64);
        ASSERT_EQ(torii_start(team, &call, &started), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_wait(&started), TORII_OK) << torii_last_error();
        ASSERT_EQ(torii_wait(&persistent), TORII_OK) << torii_last_error();
        EXPECT_TRUE(is_transposed(result, rank, block)) << "started, blocks of " << block;
        EXPECT_TRUE(is_transposed({values, values + 4 * block}, rank, block)) << "persistent, blocks of " << block;
      }
      ASSERT_EQ(torii_request_free(&persistent), TORII_OK);
      ASSERT_EQ(torii_free(context, reachable), TORII_OK);
    }
  });
}

/// All ranks learn of a call that differs, and of which; with short blocks and with long ones.
TEST(Exchanges, CallsThatDifferAreNamed) {
  for (const std::size_t block : {std::size_t{2}, std::size_t{5000}}) {
    run_as_threads(team_of(3, "TIMEOUT=5"), [&](torii_context*, torii_team* team) {
      const std::size_t own = torii_team_rank(team) == 2 ? block - 1 : block;
      const std::vector<std::int64_t> input(3 * block);
      std::vector<std::int64_t> result(3 * block);
      EXPECT_EQ(torii_alltoall(team, input.data(), result.data(), own, TORII_I64), TORII_MISMATCH)
          << torii_last_error();
      EXPECT_NE(std::string(torii_last_error()).find("alltoall of " + std::to_string(block - 1) + " x i64"),
                std::string::npos)
          << torii_last_error();
    });
  }
}

/// The same seen from outside: torii_most_in_flight, and the limit in torii_choice.
TEST(Exchanges, TellHowManyWereInFlight) {
  for (const int window : {1, 3}) {
    run_as_threads(team_of(5, "WINDOW=" + std::to_string(window)), [&](torii_context*, torii_team* team) {
      EXPECT_EQ(torii_most_in_flight(team), 0);
      const std::vector<std::int64_t> input = vector_of(torii_team_rank(team), 5 * 3000);
      std::vector<std::int64_t> result(input.size());
      const torii_call call = make_call(TORII_ALLTOALL, input.data(), result.data(), 3000, TORII_I64);
      torii_choice choice = {};
      choice.size = sizeof(choice);
      ASSERT_EQ(torii_choose(team, &call, &choice), TORII_OK) << torii_last_error();
      EXPECT_EQ(choice.window, window);
      for (int round = 0; round < 5; ++round) ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      EXPECT_GE(torii_most_in_flight(team), 1);
      EXPECT_LE(torii_most_in_flight(team), window);
    });
  }
  EXPECT_EQ(torii_most_in_flight(nullptr), -1);
}

}  // namespace
}  // namespace torii::tests
