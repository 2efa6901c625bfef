// SPDX-License-Identifier: Apache-2.0
// Ranks whose memory a peer reads, and who become another program or forbid it: no wrong byte, and the reason.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

Outcome run_readers(const std::vector<std::string>& words) {
  std::vector<std::string> command = {bin_dir() + "/torii-run", "-n", "2", "--timeout", "40", "--",
                                      helper("reading_rank")};
  command.insert(command.end(), words.begin(), words.end());
  return run(command);
}

TEST(Reading, NeverTakesTheBytesOfAnotherProgram) {
  const std::string file = std::filesystem::temp_directory_path() / ("torii-reading-" + std::to_string(getpid()));
  std::filesystem::remove(file);
  const Outcome outcome = run_readers({"become", file});
  std::filesystem::remove(file);
  if (outcome.code == 3) GTEST_SKIP() << "ranks may not read each other's memory here: " << outcome.output;
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("peer lost: rank 1"), std::string::npos) << outcome.output;
}

TEST(Reading, VectorsAtEqualAddressesAreToldApart) {
  const Outcome outcome = run_readers({"addresses"});
  if (outcome.code == 3) GTEST_SKIP() << "ranks may not read each other's memory here: " << outcome.output;
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(Reading, WhatIsForbiddenLaterIsSentOrNamed) {
  const Outcome outcome = run_readers({"forbid"});
  if (outcome.code == 3) GTEST_SKIP() << "ranks may not read each other's memory here: " << outcome.output;
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* const rank : {"0", "1"}) {
    EXPECT_NE(outcome.output.find("rank " + std::string(rank) + ": transport: the transport failed towards rank 1"),
              std::string::npos)
        << outcome.output;
  }
  EXPECT_NE(outcome.output.find("the kernel no longer lets it read that rank's memory"), std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace torii::tests
