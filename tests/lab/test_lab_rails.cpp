// SPDX-License-Identifier: Apache-2.0
// Engines over several cables between two hosts: each carries its share, whatever the order of names on either host.
#include <algorithm>

#include "tests/lab/lab_run.hpp"

namespace torii::tests {
namespace {

TEST_F(Lab, EnginesGoOverRails) {
  const Words network{"rails", "3", "--rate", "400"};
  const std::string program = std::string(TORII_TEST_BIN_DIR) + "/put_bandwidth";
  for (const int engines : {1, 3}) {
    std::string output;
    const auto json = report(network,
                             {program, "-b", "64K", "-e", "64K", "-n", "1", "-w", "0", "--rounds", "1", "--engines",
                              std::to_string(engines), "--provider", "tcp;ofi_rxm"},
                             &output);
    double all = 0;
    for (const char* rail : {"rail0", "rail1", "rail2"}) all += link_bytes(json, 0, rail);
    // Three windows and one, of torii and of the bare loop.
    EXPECT_GT(all, 8.0 * 64 * 65536) << output;
    for (int rail = 0; rail < 3; ++rail) {
      const double share = link_bytes(json, 0, "rail" + std::to_string(rail)) / all;
      const double expected = engines == 3 ? 1.0 / 3 : rail == 0 ? 1.0 : 0.0;
      EXPECT_NEAR(share, expected, 0.05) << output;
    }
  }
}

}  // namespace
}  // namespace torii::tests
