// SPDX-License-Identifier: Apache-2.0
// The lower bound on phases: the paper's theorems, small cases tried exhaustively, and what floyd reaches.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "collectives/building/floyd_hops.hpp"
#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"
#include "tools/torii-info/phase_bound.hpp"

namespace torii::tests {
namespace {

Holdings one_for_each(int ranks) { return Holdings(static_cast<std::size_t>(ranks) * ranks, 1); }

TEST(PhaseBound, IsTheLogarithmForAnAlltoall) {
  for (int log2 = 0; log2 <= 10; ++log2) {
    const PhaseBound bound = phase_bound(one_for_each(1 << log2), 1 << log2, PhaseKind::pairs);
    EXPECT_EQ(bound.by_potential, log2) << "theorem 3";
    EXPECT_EQ(bound.by_reach, log2);
    EXPECT_EQ(bound.least, log2);
    EXPECT_EQ(bound.potential_before, 0);
    EXPECT_DOUBLE_EQ(bound.potential_after, static_cast<double>(1 << log2) * (1 << log2) * log2);
    EXPECT_DOUBLE_EQ(bound.gain_most, log2 == 0 ? 0 : static_cast<double>(1 << log2) * (1 << log2)) << "theorem 1: p s";
  }
}

/// floyd of radix 2 takes no more rounds than any schedule must.
TEST(PhaseBound, IsReachedByFloydForAnyNumberOfRanks) {
  for (int ranks = 1; ranks <= 130; ++ranks) {
    EXPECT_EQ(phase_bound(one_for_each(ranks), ranks, PhaseKind::rounds).least, FloydHops(ranks, 2).rounds()) << ranks;
  }
}

/// Whether some schedule of pairs brings every rank's items to all others in so many phases: `met` holds the ranks
/// whose items each rank may have.
bool can_meet(std::vector<unsigned> met, int phases) {
  const auto ranks = static_cast<int>(met.size());
  const unsigned all = (1U << ranks) - 1;
  if (std::ranges::all_of(met, [=](unsigned one) { return one == all; })) return true;
  if (phases == 0) return false;
  std::vector<int> free(static_cast<std::size_t>(ranks));
  std::iota(free.begin(), free.end(), 0);
  const auto pair_up = [&](auto&& self, std::vector<int> left, const std::vector<unsigned>& now) -> bool {
    if (left.size() < 2) return can_meet(now, phases - 1);
    const int a = left.front();
    left.erase(left.begin());
    if (left.size() % 2 == 0 && self(self, left, now)) return true;  // `a` is the one left alone
    for (const int b : left) {
      std::vector<int> rest = left;
      std::erase(rest, b);
      std::vector<unsigned> next = now;
      next[static_cast<std::size_t>(a)] = next[static_cast<std::size_t>(b)] =
          now[static_cast<std::size_t>(a)] | now[static_cast<std::size_t>(b)];
      if (self(self, rest, next)) return true;
    }
    return false;
  };
  return pair_up(pair_up, free, met);
}

/// The paper has ceil(log2 p) phases for any number of ranks. In pairs an odd number may take more: one rank is left
/// alone in every phase.
TEST(PhaseBound, OddNumbersMayTakeAPhaseMoreInPairs) {
  for (const int ranks : {2, 3, 4, 5}) {
    const int rounds = phase_bound(one_for_each(ranks), ranks, PhaseKind::rounds).least;
    const int pairs = phase_bound(one_for_each(ranks), ranks, PhaseKind::pairs).least;
    EXPECT_EQ(pairs, rounds + (ranks == 3 ? 1 : 0)) << ranks;
    std::vector<unsigned> met;
    for (int rank = 0; rank < ranks; ++rank) met.push_back(1U << rank);
    EXPECT_FALSE(can_meet(met, pairs - 1)) << ranks;
  }
  for (const int ranks : {7, 13, 15}) {
    EXPECT_EQ(phase_bound(one_for_each(ranks), ranks, PhaseKind::pairs).least,
              phase_bound(one_for_each(ranks), ranks, PhaseKind::rounds).least + 1);
  }
  EXPECT_TRUE(can_meet({1, 2, 4, 8}, 2));
  EXPECT_TRUE(can_meet({1, 2, 4}, 3)) << "the bound of 3 is reached";
}

TEST(PhaseBound, NothingToMoveTakesNoPhase) {
  Holdings own = one_for_each(6);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = i % 7 == 0 ? 5 : 0;
  EXPECT_EQ(phase_bound(own, 6, PhaseKind::pairs).least, 0);
  EXPECT_EQ(phase_bound(Holdings(16, 0), 4, PhaseKind::pairs).least, 0);
  EXPECT_EQ(phase_bound(one_for_each(1), 1, PhaseKind::pairs).least, 0);
}

/// A whole rank's items that change places gain nothing in potential, since the paper lets ranks be renumbered.
TEST(PhaseBound, ReachKnowsWhatThePotentialDoesNot) {
  Holdings moved(16, 0);
  for (std::size_t rank = 0; rank < 4; ++rank) moved[rank * 4 + (rank + 1) % 4] = 10;
  const PhaseBound bound = phase_bound(moved, 4, PhaseKind::rounds);
  EXPECT_EQ(bound.by_potential, 0);
  EXPECT_EQ(bound.least, 1);
}

/// Two items of one rank that meet two of another one: a random phase never gains more than the bound says.
TEST(PhaseBound, NoRandomPhaseGainsMore) {
  for (const Seed& seed : seeds_of("phase_bound_test", 2000)) {
    std::mt19937_64 random(seed.value);
    const int ranks = 2 + static_cast<int>(random() % 5);
    const auto all = static_cast<std::size_t>(ranks);
    Holdings before(all * all);
    for (std::uint64_t& pile : before) pile = random() % 4 == 0 ? random() % 9 : 0;
    // Every rank keeps some of each pile and sends the rest to the next rank.
    Holdings after(all * all, 0);
    for (std::size_t from = 0; from < all; ++from) {
      for (std::size_t to = 0; to < all; ++to) {
        const std::uint64_t pile = before[from * all + to];
        const std::uint64_t kept = random() % (pile + 1);
        after[from * all + to] += kept;
        after[(from + 1) % all * all + to] += pile - kept;
      }
    }
    const PhaseBound bound = phase_bound(before, ranks, PhaseKind::rounds);
    const double gained = phase_bound(after, ranks, PhaseKind::rounds).potential_before - bound.potential_before;
    ASSERT_LE(gained, bound.gain_most + 1e-9) << seed;
  }
}

TEST(PhaseBound, HoldingsOfTransposesAndPermutations) {
  EXPECT_EQ(transpose_holdings(4, 6, 2), (Holdings{6, 6, 6, 6}));
  EXPECT_EQ(transpose_holdings(3, 5, 2), (Holdings{6, 4, 3, 2}));
  EXPECT_EQ(permutation_holdings(Holdings{4, 3, 2, 1, 0}, 2), (Holdings{1, 2, 2, 0}));
  EXPECT_EQ(phase_bound(transpose_holdings(8192, 8192, 64), 64, PhaseKind::pairs).least, 6);
  EXPECT_EQ(permutation_holdings(Holdings{0, 1}, 4).size(), 16U);
}

std::string fault_of(const Holdings& destinations) {
  try {
    (void)permutation_holdings(destinations, 2);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(PhaseBound, WrongInputIsNamed) {
  EXPECT_EQ(fault_of({0, 2, 2}), "destinations[2] is 2; they must hold each number from 0 to 2 once");
  EXPECT_EQ(fault_of({0, 3, 1}), "destinations[1] is 3; they must hold each number from 0 to 2 once");
  EXPECT_THROW((void)phase_bound(Holdings(5, 1), 2, PhaseKind::pairs), Error);
  EXPECT_THROW((void)phase_bound({}, 0, PhaseKind::pairs), Error);
}

}  // namespace
}  // namespace torii::tests
