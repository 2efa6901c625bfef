// SPDX-License-Identifier: Apache-2.0
// Collectives with lists of addresses: the results of the packed forms, wherever the blocks are; and what is refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/conformance/unequal_blocks.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kRanks = 5;

ThreadTeam list_team(int ranks, const std::string& algorithm = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.algorithm = algorithm;
  options.segment_bytes = 1024;
  options.settings = "ARENA=1G\nTIMEOUT=5";
  return options;
}

enum class Places { malloced, allocated, mixed };

/// Blocks that have a piece of memory each; an empty one has none.
class List {
 public:
  List(torii_context* context, Counts of, Places places) : counts(std::move(of)) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const bool allocated = places == Places::allocated || (places == Places::mixed && i % 2 == 0);
      // Not in the order of the ranks.
      memory_.insert(memory_.begin(), std::make_unique<Memory>(context, counts[i], allocated));
      addresses.push_back(counts[i] == 0 ? nullptr : memory_.front()->data());
    }
  }
  std::int64_t* block(std::size_t peer) const { return static_cast<std::int64_t*>(addresses[peer]); }
  const void* const* inputs() const { return addresses.data(); }
  void fill(int sender) const {
    for (std::size_t peer = 0; peer < counts.size(); ++peer) {
      for (std::size_t i = 0; i < counts[peer]; ++i) block(peer)[i] = element(sender, static_cast<int>(peer), i);
    }
  }
  int wrong(int receiver) const {
    int wrong = 0;
    for (std::size_t peer = 0; peer < counts.size(); ++peer) {
      for (std::size_t i = 0; i < counts[peer]; ++i) {
        if (block(peer)[i] != element(static_cast<int>(peer), receiver, i)) ++wrong;
      }
    }
    return wrong;
  }

  Counts counts;
  std::vector<void*> addresses;

 private:
  std::vector<std::unique_ptr<Memory>> memory_;
};

Places places_of(std::uint64_t number) { return static_cast<Places>(number % 3); }

/// Some ranks have lists, others one buffer. The seeds of a run are consecutive, so every kind comes in each.
TEST(BlockLists, OfAlltoallAndBuffersOfOthers) {
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/lists_of_alltoall", 24);
  run_as_threads(list_team(kRanks), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const Seed& one : seeds) {
      const std::uint64_t seed = one.value;
      const std::uint64_t turn = seed + static_cast<std::uint64_t>(rank);
      const Counts to = counts_by_peer(kRanks, [&](int peer) { return count_of(seed, rank, peer); });
      const Counts from = counts_by_peer(kRanks, [&](int peer) { return count_of(seed, peer, rank); });
      const List inputs(context, to, places_of(turn));
      const List results(context, from, places_of(turn / 3));
      const Blocks packed_input(to, seed % 2 == 0);
      const Blocks packed_result(from, seed % 2 == 0);
      Memory input(context, packed_input.reach, seed % 3 == 0);
      Memory result(context, packed_result.reach, seed % 5 == 0);
      inputs.fill(rank);
      fill_blocks(input.data(), packed_input, rank);
      torii_call call = make_call(TORII_ALLTOALL, nullptr, nullptr, 0, TORII_I64);
      call.unequal = 1;
      call.input_counts = to.data();
      call.result_counts = from.data();
      const bool lists_input = turn % 2 == 0;
      const bool lists_result = turn % 4 < 2;
      if (lists_input) {
        call.input_blocks = inputs.inputs();
      } else {
        call.input = input.data();
        call.input_displacements = packed_input.places.data();
      }
      if (lists_result) {
        call.result_blocks = results.addresses.data();
      } else {
        call.result = result.data();
        call.result_displacements = packed_result.places.data();
      }
      ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      ASSERT_EQ(lists_result ? results.wrong(rank) : wrong_elements(result.data(), packed_result, rank), 0)
          << one << ", rank " << rank;
    }
  });
}

TEST(BlockLists, OfEqualLengthsNeedNoCounts) {
  run_as_threads(list_team(3), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{129}, std::size_t{20'001}}) {
      const List inputs(context, Counts(3, count), places_of(count));
      const List results(context, Counts(3, count), places_of(count / 2));
      inputs.fill(rank);
      ASSERT_EQ(
          torii_alltoall_list(team, inputs.inputs(), nullptr, results.addresses.data(), nullptr, count, TORII_I64),
          TORII_OK)
          << torii_last_error();
      EXPECT_EQ(results.wrong(rank), 0) << count;
    }
  });
}

/// Input and result are the same blocks: then as many elements come as go.
TEST(BlockLists, OfAlltoallInPlaceAgainAndAgain) {
  run_as_threads(list_team(4), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    const auto count = [](int peer, int other) { return static_cast<std::size_t>(peer + other) * 1500 % 7000; };
    const List blocks(context, counts_by_peer(4, [&](int peer) { return count(rank, peer); }), places_of(1 + rank % 2));
    torii_call call = make_call(TORII_ALLTOALL, nullptr, nullptr, 0, TORII_I64);
    call.unequal = 1;
    call.input_counts = call.result_counts = blocks.counts.data();
    call.input_blocks = blocks.inputs();
    call.result_blocks = blocks.addresses.data();
    torii_request* request = nullptr;
    ASSERT_EQ(torii_prepare(team, &call, &request), TORII_OK) << torii_last_error();
    for (int round = 0; round < 4; ++round) {
      blocks.fill(rank);
      ASSERT_EQ(torii_restart(request), TORII_OK) << torii_last_error();
      ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
      EXPECT_EQ(blocks.wrong(rank), 0) << "round " << round;
    }
    ASSERT_EQ(torii_request_free(&request), TORII_OK);
    // Only the own block is in place.
    const List results(context, blocks.counts, Places::malloced);
    std::vector<void*> addresses = results.addresses;
    addresses[static_cast<std::size_t>(rank)] = blocks.addresses[static_cast<std::size_t>(rank)];
    blocks.fill(rank);
    ASSERT_EQ(torii_alltoall_list(team, blocks.inputs(), blocks.counts.data(), addresses.data(), blocks.counts.data(),
                                  0, TORII_I64),
              TORII_OK)
        << torii_last_error();
    for (int peer = 0; peer < 4; ++peer) {
      const auto* const got = static_cast<const std::int64_t*>(addresses[static_cast<std::size_t>(peer)]);
      for (std::size_t i = 0; i < count(rank, peer); ++i) ASSERT_EQ(got[i], element(peer, rank, i));
    }
  });
}

/// By pairwise exchanges, and by a plan of flows over which the root tells all lengths.
TEST(BlockLists, OfScatterGatherAndAllGather) {
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/lists_of_scatter", 10);
  for (const char* const algorithm : {"", "node"}) {
    run_as_threads(list_team(kRanks, algorithm), [&](torii_context* context, torii_team* team) {
      const int rank = torii_team_rank(team);
      for (const Seed& one : seeds) {
        const std::uint64_t seed = one.value;
        const int root = static_cast<int>(seed % kRanks);
        const std::uint64_t turn = seed + static_cast<std::uint64_t>(rank);
        const std::size_t own = count_of(seed, root, rank);
        const Counts counts = counts_by_peer(kRanks, [&](int peer) { return count_of(seed, root, peer); });
        const List all(context, counts, places_of(turn));
        Memory block(context, own, turn % 2 == 0);
        all.fill(root);
        const bool is_root = rank == root;
        ASSERT_EQ(torii_scatter_list(team, is_root ? all.inputs() : nullptr, is_root ? counts.data() : nullptr,
                                     block.data(), own, TORII_I64, root),
                  TORII_OK)
            << torii_last_error();
        for (std::size_t i = 0; i < own; ++i) ASSERT_EQ(block.data()[i], element(root, rank, i)) << one;
        for (std::size_t i = 0; i < own; ++i) block.data()[i] = element(rank, root, i);
        const List gathered(context, counts, places_of(turn + 1));
        ASSERT_EQ(torii_gather_list(team, block.data(), own, is_root ? gathered.addresses.data() : nullptr,
                                    is_root ? counts.data() : nullptr, TORII_I64, root),
                  TORII_OK)
            << torii_last_error();
        EXPECT_EQ(is_root ? gathered.wrong(root) : 0, 0) << one;
        if (std::string(algorithm) == "node") continue;  // gathered by all: an exchange, which node does not have
        const List everywhere(context, counts, places_of(turn + 2));
        // One rank's own block is in place.
        const bool in_place = turn % 2 == 0 && own != 0;
        std::int64_t* const mine = in_place ? everywhere.block(static_cast<std::size_t>(rank)) : block.data();
        for (std::size_t i = 0; i < own; ++i) mine[i] = element(rank, 0, i);
        ASSERT_EQ(torii_all_gather_list(team, mine, own, everywhere.addresses.data(), counts.data(), TORII_I64),
                  TORII_OK)
            << torii_last_error();
        EXPECT_EQ(everywhere.wrong(0), 0) << one;
      }
    });
  }
}

TEST(BlockLists, OfRequestsAndGroupsAreCopiedAtOnce) {
  run_as_threads(list_team(3), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    const Counts counts(3, 2500);
    const List inputs(context, counts, Places::mixed);
    const List results(context, counts, Places::mixed);
    inputs.fill(rank);
    for (const bool in_group : {false, true}) {
      std::vector<const void*> given(inputs.addresses.begin(), inputs.addresses.end());
      std::vector<void*> taken = results.addresses;
      for (std::size_t i = 0; i < 3; ++i) std::fill_n(results.block(i), 2500, -1);
      torii_call call = make_call(TORII_ALLTOALL, nullptr, nullptr, 2500, TORII_I64);
      call.unequal = 1;
      call.input_blocks = given.data();
      call.result_blocks = taken.data();
      torii_request* request = nullptr;
      if (in_group) {
        ASSERT_EQ(torii_group_begin(team), TORII_OK);
        ASSERT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
      } else {
        ASSERT_EQ(torii_start(team, &call, &request), TORII_OK) << torii_last_error();
      }
      given.assign(3, nullptr);
      taken.assign(3, nullptr);
      ASSERT_EQ(in_group ? torii_group_end(team) : torii_wait(&request), TORII_OK) << torii_last_error();
      EXPECT_EQ(results.wrong(rank), 0);
    }
  });
}

/// Then the root of a scatter puts nothing: the others read its blocks.
TEST(BlockLists, InMemoryOfTheArenaAreReachedInPlace) {
  ThreadTeam options = list_team(3);
  options.settings += "\nCROSS_MEMORY=off";
  run_as_threads(options, [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    constexpr std::size_t kCount = 30'000;
    for (const Places places : {Places::allocated, Places::mixed}) {
      const List all(context, Counts(3, kCount), places);
      Memory block(context, kCount, false);
      all.fill(0);
      const auto put_bytes = [&] {
        std::uint64_t bytes[16] = {};
        const int engines = torii_engine_bytes(context, bytes, 16);
        return std::accumulate(bytes, bytes + engines, std::uint64_t{0});
      };
      ASSERT_EQ(torii_barrier(team), TORII_OK);
      const std::uint64_t before = put_bytes();
      ASSERT_EQ(
          torii_scatter_list(team, rank == 0 ? all.inputs() : nullptr, nullptr, block.data(), kCount, TORII_I64, 0),
          TORII_OK)
          << torii_last_error();
      const std::uint64_t bytes = put_bytes() - before;
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(block.data()[i], element(0, rank, i));
      if (rank != 0) continue;
      if (places == Places::allocated) {
        EXPECT_LT(bytes, kCount) << "the blocks were copied";
      } else {
        EXPECT_GE(bytes, 2 * kCount * sizeof(std::int64_t)) << "a block in private memory cannot be read";
      }
    }
  });
}

TEST(BlockLists, LengthsThatDifferAreNamed) {
  run_as_threads(list_team(2), [&](torii_context* context, torii_team* team) {
    const int rank = torii_team_rank(team);
    const std::size_t of_other = rank == 0 ? 4 : 5;  // rank 1 expects 5 of 6
    const List inputs(context, {4, 6}, Places::malloced);
    const List results(context, {rank == 0 ? 4U : 5U, rank == 0 ? of_other : 6U}, Places::malloced);
    torii_status status = torii_alltoall_list(team, inputs.inputs(), inputs.counts.data(), results.addresses.data(),
                                              results.counts.data(), 0, TORII_I64);
    // Rank 0 has its data, and may learn of it in its next call.
    if (rank == 0 && status == TORII_OK) status = torii_barrier(team);
    EXPECT_EQ(status, TORII_MISMATCH);
    EXPECT_NE(std::string(torii_last_error()).find("unequal lengths"), std::string::npos) << torii_last_error();
  });
}

TEST(BlockLists, DoNotPairWithCallsOfEqualBlocks) {
  run_as_threads(list_team(2), [&](torii_context* context, torii_team* team) {
    const List inputs(context, {3, 3}, Places::malloced);
    std::vector<std::int64_t> result(6);
    torii_status status = TORII_OK;
    if (torii_team_rank(team) == 0) {
      const List results(context, {3, 3}, Places::malloced);
      status = torii_alltoall_list(team, inputs.inputs(), nullptr, results.addresses.data(), nullptr, 3, TORII_I64);
    } else {
      status = torii_alltoall(team, result.data(), result.data(), 3, TORII_I64);
    }
    EXPECT_EQ(status, TORII_MISMATCH);
    EXPECT_NE(std::string(torii_last_error()).find("calls alltoall of unequal blocks x i64"), std::string::npos)
        << torii_last_error();
  });
}

/// All ranks refuse the same call, so the team goes on.
TEST(BlockLists, ThatMakeNoSenseAreRefused) {
  run_as_threads(list_team(2), [&](torii_context*, torii_team* team) {
    std::int64_t data[4] = {};
    const std::size_t counts[2] = {2, 2};
    const std::size_t many[2] = {2, SIZE_MAX / 16};
    const void* inputs[2] = {data, data + 2};
    const void* no_inputs[2] = {data, nullptr};
    void* results[2] = {data, data + 2};
    void* no_results[2] = {nullptr, data};
    torii_call good = make_call(TORII_ALLTOALL, nullptr, nullptr, 2, TORII_I64);
    good.unequal = 1;
    good.input_blocks = inputs;
    good.result_blocks = results;
    struct Case {
      void (*spoil)(torii_call& call, const void* value);
      const void* value;
      const char* text;
    };
    const Case cases[] = {
        {[](torii_call& c, const void* v) { c.input_blocks = static_cast<const void* const*>(v); }, no_inputs,
         "input_blocks[1] is NULL, but the block has 2 elements"},
        {[](torii_call& c, const void* v) { c.result_blocks = static_cast<void* const*>(const_cast<void*>(v)); },
         no_results, "result_blocks[0] is NULL, but the block has 2 elements"},
        {[](torii_call& c, const void* v) { c.input = v; }, data, "input is not NULL, but input_blocks"},
        {[](torii_call& c, const void* v) { c.result = const_cast<void*>(v); }, data,
         "result is not NULL, but result_blocks"},
        {[](torii_call& c, const void* v) { c.input_displacements = static_cast<const std::size_t*>(v); }, counts,
         "input_displacements is not NULL, but input_blocks"},
        {[](torii_call& c, const void* v) { c.result_counts = static_cast<const std::size_t*>(v); }, many,
         "result_counts[1] is 1152921504606846975 after 2 elements of other blocks, whose bytes overflow"},
        {[](torii_call& c, const void*) { c.unequal = 0; }, nullptr, "input_blocks is set, but unequal is 0"},
        {[](torii_call& c, const void*) { c.collective = TORII_GATHER; }, nullptr,
         "input_blocks is set, but gather takes no such list"},
        {[](torii_call& c, const void*) { c.collective = TORII_SCATTER; }, nullptr,
         "result_blocks is set, but scatter takes no such list"},
        {[](torii_call& c, const void*) { c.collective = TORII_REDUCE_SCATTER; }, nullptr,
         "input_blocks is set, but reduce_scatter takes no such list"},
        {[](torii_call& c, const void*) { c.input_blocks = nullptr; }, nullptr, "input_counts is NULL"},
    };
    for (const Case& bad : cases) {
      torii_call call = good;
      bad.spoil(call, bad.value);
      EXPECT_EQ(torii_run(team, &call), TORII_INVALID_ARGUMENT) << bad.text;
      EXPECT_EQ(std::string(torii_last_error()).rfind(bad.text, 0), 0U) << torii_last_error();
    }
    const std::size_t own_differs[2] = {torii_team_rank(team) == 0 ? 1U : 2U, torii_team_rank(team) == 1 ? 1U : 2U};
    torii_call call = good;
    call.input_counts = own_differs;
    EXPECT_EQ(torii_run(team, &call), TORII_INVALID_ARGUMENT);
    EXPECT_NE(std::string(torii_last_error()).find("8 bytes for itself and expects 16"), std::string::npos)
        << torii_last_error();
    ASSERT_EQ(torii_run(team, &good), TORII_OK) << torii_last_error();
  });
}

}  // namespace
}  // namespace torii::tests
