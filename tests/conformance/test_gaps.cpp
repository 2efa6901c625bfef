// SPDX-License-Identifier: Apache-2.0
// What lies between the blocks of a vector is not the library's: pages there are missing, in vectors of every kind, for
// every call with unequal blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"
#include "tests/conformance/unequal_blocks.hpp"
#include "tests/support/guarded_blocks.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr int kGapRanks = 4;

/// A vector with missing pages between its blocks, of which each may be adopted.
class GapVector {
 public:
  GapVector(torii_context* context, const Counts& counts, std::uint64_t seed, bool is_adopted)
      : context_(context), blocks_(bytes_of(counts), sizeof(std::int64_t), seed, seed % 5 == 0 ? 1 << 16 : 1) {
    for (std::size_t i = 0; i < blocks_.blocks(); ++i) {
      addresses_.push_back(blocks_.bytes(i) == 0 ? nullptr : blocks_.block(i));
      if (!is_adopted || blocks_.bytes(i) == 0) continue;
      EXPECT_EQ(torii_register(context_, blocks_.pages(i), blocks_.pages_bytes(i), TORII_REGISTER_ADOPT,
                               &regions_.emplace_back()),
                TORII_OK)
          << torii_last_error();
    }
  }
  ~GapVector() {
    for (torii_region* region : regions_) EXPECT_EQ(torii_deregister(context_, region), TORII_OK) << torii_last_error();
  }
  GapVector(const GapVector&) = delete;
  GapVector& operator=(const GapVector&) = delete;

  std::int64_t* data() const { return reinterpret_cast<std::int64_t*>(blocks_.data()); }
  const std::size_t* displacements() const { return blocks_.displacements(); }
  std::int64_t* block(int peer) const {
    return reinterpret_cast<std::int64_t*>(blocks_.block(static_cast<std::size_t>(peer)));
  }
  void* const* list() const { return addresses_.data(); }

 private:
  static std::vector<std::size_t> bytes_of(const Counts& counts) {
    std::vector<std::size_t> bytes;
    for (const std::size_t count : counts) bytes.push_back(count * sizeof(std::int64_t));
    return bytes;
  }

  torii_context* context_;
  GuardedBlocks blocks_;
  std::vector<void*> addresses_;
  std::vector<torii_region*> regions_;
};

/// One call, and its vectors on this rank. A rank that gives or takes one block only has it in such a vector too.
class GapCall {
 public:
  GapCall(torii_context* context, torii_team* team, torii_collective collective, std::uint64_t seed)
      : team_(team),
        collective_(collective),
        seed_(seed),
        rank_(torii_team_rank(team)),
        root_(static_cast<int>(seed / 2 % kGapRanks)),
        to_(counts_by_peer(kGapRanks, [&](int peer) { return length(rank_, peer); })),
        from_(counts_by_peer(kGapRanks, [&](int peer) { return length(peer, rank_); })) {
    Counts counts = to_;
    if (is_in_place()) {
      for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = std::max(counts[i], from_[i]);
    }
    const std::uint64_t turn = seed / 3 + static_cast<std::uint64_t>(rank_);
    input_ = std::make_unique<GapVector>(context, counts, seed, turn % 3 == 0);
    if (!is_in_place()) separate_ = std::make_unique<GapVector>(context, from_, seed + 1, turn % 4 == 0);
    // Each rank chooses by itself whether it gives displacements or addresses.
    describe(turn % 5 == 1, turn % 5 < 2);
  }

  void run() {
    switch (seed_ % 5) {
      case 0:
        return once([&] { return torii_run(team_, &call_); });
      case 1:
        return once([&] {
          torii_request* request = nullptr;
          const torii_status status = torii_start(team_, &call_, &request);
          return status == TORII_OK ? torii_wait(&request) : status;
        });
      case 2:
        return run_in_group();
      default:
        return run_persistent();
    }
  }

 private:
  bool is_in_place() const { return seed_ % 2 == 0; }
  const GapVector& result() const { return is_in_place() ? *input_ : *separate_; }
  /// All of an all_gather get the same block.
  int receiver(int peer) const { return collective_ == TORII_ALL_GATHER ? 0 : peer; }
  /// The elements that have a place in the sender's vector, or the receiver's. An all_gather's block has one place.
  std::size_t length(int sender, int taker) const {
    if (collective_ == TORII_SCATTER && sender != root_) return 0;
    if (collective_ == TORII_GATHER && taker != root_) return 0;
    if (collective_ == TORII_ALL_GATHER && sender == rank_ && taker != rank_) return 0;
    return count_of(seed_, sender, receiver(taker));
  }

  void describe(bool lists_input, bool lists_result) {
    const bool is_root = rank_ == root_;
    const bool sends_all = collective_ == TORII_ALLTOALL || (collective_ == TORII_SCATTER && is_root);
    const bool takes_all =
        collective_ == TORII_ALLTOALL || collective_ == TORII_ALL_GATHER || (collective_ == TORII_GATHER && is_root);
    const int single = collective_ == TORII_ALL_GATHER ? rank_ : root_;
    call_ = make_call(collective_, input_->block(single), result().block(single), 0, TORII_I64, TORII_SUM, root_);
    call_.unequal = 1;
    if (collective_ == TORII_SCATTER) call_.count = from_[static_cast<std::size_t>(root_)];
    if (collective_ == TORII_GATHER || collective_ == TORII_ALL_GATHER)
      call_.count = to_[static_cast<std::size_t>(single)];
    if (sends_all) {
      call_.input_counts = to_.data();
      call_.input = lists_input ? nullptr : input_->data();
      call_.input_displacements = lists_input ? nullptr : input_->displacements();
      call_.input_blocks = lists_input ? input_->list() : nullptr;
    }
    if (takes_all) {
      call_.result_counts = from_.data();
      call_.result = lists_result ? nullptr : result().data();
      call_.result_displacements = lists_result ? nullptr : result().displacements();
      call_.result_blocks = lists_result ? result().list() : nullptr;
    }
  }

  void fill() const {
    for (int peer = 0; peer < kGapRanks; ++peer) {
      const std::size_t count = to_[static_cast<std::size_t>(peer)];
      for (std::size_t i = 0; i < count; ++i) input_->block(peer)[i] = element(rank_, receiver(peer), i);
    }
  }
  int wrong() const {
    int wrong = 0;
    for (int peer = 0; peer < kGapRanks; ++peer) {
      const std::size_t count = from_[static_cast<std::size_t>(peer)];
      for (std::size_t i = 0; i < count; ++i) wrong += result().block(peer)[i] != element(peer, receiver(rank_), i);
    }
    return wrong;
  }

  template <class Run>
  void once(const Run& run) const {
    fill();
    ASSERT_EQ(run(), TORII_OK) << torii_last_error();
    ASSERT_EQ(wrong(), 0) << "rank " << rank_;
  }
  void run_in_group() const {
    const std::int64_t one = 1;
    std::int64_t sum = 0;
    once([&] {
      EXPECT_EQ(torii_group_begin(team_), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_allreduce(team_, &one, &sum, 1, TORII_I64, TORII_SUM), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_run(team_, &call_), TORII_OK) << torii_last_error();
      return torii_group_end(team_);
    });
    EXPECT_EQ(sum, kGapRanks);
  }
  void run_persistent() const {
    torii_request* request = nullptr;
    ASSERT_EQ(torii_prepare(team_, &call_, &request), TORII_OK) << torii_last_error();
    for (int round = 0; round < 2; ++round) {
      once([&] {
        const torii_status status = torii_restart(request);
        return status == TORII_OK ? torii_wait(&request) : status;
      });
    }
    EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
  }

  torii_team* team_;
  torii_collective collective_;
  std::uint64_t seed_;
  int rank_;
  int root_;
  Counts to_;
  Counts from_;
  std::unique_ptr<GapVector> input_;
  std::unique_ptr<GapVector> separate_;
  torii_call call_ = {};
};

TEST(Gaps, AreNeitherReadNorWritten) {
  const std::vector<Seed> seeds = seeds_of("conformance_unequal/gaps", 20);
  for (const char* const cross_memory : {"off", "auto"}) {
    ThreadTeam options;
    options.ranks = kGapRanks;
    options.segment_bytes = 1024;
    options.settings = std::string("ARENA=1G\nTIMEOUT=10\nCROSS_MEMORY=") + cross_memory;
    run_as_threads(options, [&](torii_context* context, torii_team* team) {
      for (const Seed& seed : seeds) {
        SCOPED_TRACE(seed);
        for (const torii_collective collective : {TORII_ALLTOALL, TORII_SCATTER, TORII_GATHER, TORII_ALL_GATHER}) {
          GapCall(context, team, collective, seed.value).run();
        }
        if (::testing::Test::HasFailure()) return;
      }
    });
  }
}

}  // namespace
}  // namespace torii::tests
