// SPDX-License-Identifier: Apache-2.0
// A program whose catalogue has two rows: the built-in tune table serves it without the rows of other algorithms, and a
// table of its own that names one is refused.
#include <gtest/gtest.h>

#include "collectives/selection/selection.hpp"
#include "runtime/base/status.hpp"

namespace torii::tests {
namespace {

TEST(ShortList, TheBuiltInTableHasNoOtherRows) {
  ASSERT_EQ(catalogue().size(), 2u);
  EXPECT_FALSE(TuneTable::built_in().rows().empty());
  for (const TuneRow& row : TuneTable::built_in().rows()) EXPECT_EQ(row.algorithm, "node");
  PlanRequest request;
  for (const int ranks : {2, 8, 300}) {
    request.topology = Topology::node(ranks);
    // The table has ring for these vectors on other numbers of ranks, and node is for 256.
    EXPECT_EQ(select(TuneTable::built_in(), {}, request, 1 << 20).algorithm->name, ranks <= 256 ? "node" : "line");
  }
}

TEST(ShortList, ATableThatNamesAnotherAlgorithmIsRefused) {
  const auto parsed = [](const std::string& algorithm) -> std::string {
    try {
      (void)TuneTable::parse(R"({"version": 1, "rows": [{"collective": "allreduce", "ranks": [1, 4], "algorithm": ")" +
                                 algorithm + R"(", "segment": 4096, "slots": 4, "window": 1}]})",
                             "FILE");
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(parsed("line"), "taken");
  EXPECT_EQ(parsed("ring"),
            "FILE, row 0: \"algorithm\" is \"ring\", which is not in the catalogue; that has node, line");
}

}  // namespace
}  // namespace torii::tests
