// SPDX-License-Identifier: Apache-2.0
// Settings of users against plans: whatever TORII_ALGORITHM, TORII_SEGMENT, TORII_SLOTS and TORII_WINDOW force, a call
// is refused or its plan is right.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/selection.hpp"
#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

template <std::size_t N, typename Value>
Value one_of(const std::array<Value, N>& values, std::mt19937_64& random) {
  return values[random() % N];
}

Topology draw_topology(std::mt19937_64& random) {
  if (random() % 3 != 0) return Topology::node(static_cast<int>(1 + random() % 9));
  return Topology::torus({static_cast<int>(2 + random() % 2), static_cast<int>(1 + random() % 3), 1});
}

TEST(ForcedSettings, ACallIsRefusedOrItsPlanIsRight) {
  int refused = 0;
  int proved = 0;
  for (const Seed& seed : seeds_of("forced_test", is_full() ? 100000 : 4000)) {
    std::mt19937_64 random(seed.value);
    PlanRequest request;
    request.topology = draw_topology(random);
    request.collective = static_cast<Collective>(random() % static_cast<unsigned>(kCollectiveCount));
    request.root = static_cast<int>(random() % static_cast<unsigned>(request.topology.ranks()));
    const std::span<const Algorithm> rows = catalogue();
    Forced forced;
    if (random() % 8 != 0) forced.algorithm = rows[random() % rows.size()].name;
    forced.slots = one_of(std::array{0, 1, 1, 2, 3, 8}, random);
    forced.window = one_of(std::array{0, 1, 2, 4}, random);
    forced.segment_bytes = one_of(std::array{std::size_t{0}, std::size_t{64}, std::size_t{4096}}, random);
    const std::size_t bytes = std::size_t{8} << random() % 14;
    try {
      const Selected chosen = select(TuneTable::built_in(), forced, request, bytes);
      const Verdict verdict = verify(*chosen.algorithm, chosen.request);
      EXPECT_TRUE(verdict.ok()) << seed << ": " << chosen.algorithm->name << " with slots " << forced.slots
                                << ", window " << forced.window << ", segment " << forced.segment_bytes << ": "
                                << verdict.faults.front();
      ++proved;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported) << seed << ": " << error.what();
      ++refused;
    }
  }
  if (is_replay()) return;
  EXPECT_GT(refused, 400);
  EXPECT_GT(proved, 400);
}

}  // namespace
}  // namespace torii::tests
