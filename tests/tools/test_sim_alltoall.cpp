// SPDX-License-Identifier: Apache-2.0
// torii-sim alltoall as users run it: fields, scans, figures, and what it says to input that makes no sense.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

/// Exit code and output, both streams together.
std::pair<int, std::string> alltoall(const std::string& arguments) {
  const std::string command = "timeout 50 " + bin_dir() + "/torii-sim alltoall " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "re");
  std::string output;
  char buffer[4096];
  for (std::size_t read = 0; (read = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, read);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

TEST(SimAlltoall, JsonHasTheFields) {
  const auto [code, output] = alltoall("--topology torus:32x32 --sharing min --json -");
  ASSERT_EQ(code, 0) << output;
  for (const char* field :
       {"\"collective\":\"alltoall\"", "\"algorithm\":\"a2at\"", "\"topology\":\"torus:32x32\"", "\"ranks\":1024",
        "\"engines\":4", "\"bytes\":1048576", "\"sharing\":\"min\"", "\"time_us\":4096.0", "\"bound_us\":4096.0",
        "\"ratio\":1.0", "\"links_shared\":4096", "\"links_shared_percent\":100.0", "\"link_bytes_max\":4194304",
        "\"height\":1", "\"planning_s\":", "\"wall_s\":"}) {
    EXPECT_TRUE(holds(output, field)) << field << " is not in " << output;
  }
}

TEST(SimAlltoall, ScansMultiplyOut) {
  const auto [code, output] =
      alltoall("--topology torus:2x2 --scan shapes=2..4x3m --scan engines=3..4 --sharing maxmin --csv -");
  ASSERT_EQ(code, 0) << output;
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 7) << output;
  EXPECT_TRUE(holds(output, "torus:4x3m,12,4")) << output;
  // Shapes that the paper's order does not have are left out of a scan.
  const auto [all_code, all] =
      alltoall("--topology mesh:2x2 --scan shapes=3x3x1..2 --algorithm all --sharing min --csv -");
  ASSERT_EQ(all_code, 0) << all;
  EXPECT_TRUE(holds(all, "a2at_printed,mesh:3x3x1")) << all;
  EXPECT_FALSE(holds(all, "a2at_printed,mesh:3x3x2")) << all;
}

TEST(SimAlltoall, SkewIsInMicroseconds) {
  // A message of 1 MiB / 16 takes 13.1 us over 5 GB/s, so 13.1 us are one unit.
  const auto ratio = [](const std::string& arguments) {
    const std::string output = alltoall("--topology torus:4x4 --sharing min --json - " + arguments).second;
    return std::stod(output.substr(output.find("\"time_us\":") + 10));
  };
  EXPECT_EQ(ratio(""), 8);
  EXPECT_GT(ratio("--skew 13.1"), 8);
  EXPECT_LT(ratio("--skew 13.1"), 12);
  EXPECT_NEAR(ratio("--skew 13.1"), ratio("--skew 6.55 --bandwidth 10"), 1e-9);
}

TEST(SimAlltoall, FigureIsASvgOfAllOrders) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("torii_test_figure_" + std::to_string(::getpid()) + ".svg");
  const auto [code, output] = alltoall("--topology torus:6x6 --figure " + path.string());
  EXPECT_EQ(code, 0) << output;
  std::stringstream svg;
  svg << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_TRUE(svg.str().starts_with("<svg ") && svg.str().ends_with("</svg>\n"));
  for (const char* curve : {"a2a, min", "a2and, maxmin", "a2at_printed, min", "a2at, maxmin", "bound"}) {
    EXPECT_TRUE(holds(svg.str(), curve)) << curve;
  }
}

TEST(SimAlltoall, RefusalsSayWhatWouldBeRight) {
  struct Refusal {
    const char* arguments;
    int code;
    const char* message;
  };
  for (const Refusal& refusal :
       {Refusal{"--topology node --sharing min", 2, "must have links"},
        Refusal{"--topology torus:4x0 --sharing min", 2, "extent"},
        Refusal{"--topology torus:4x4 --sharing min --algorithm ring", 2, "'ring'"},
        Refusal{"--topology torus:8x8 --sharing min --bytes 10", 2, "64 blocks"},
        Refusal{"--topology torus:8x8 --sharing min --scan foo=1", 2, "'foo=1'"},
        Refusal{"--topology torus:8x8 --scan ranks=2..3", 2, "--topology node"},
        Refusal{"--topology torus:8x8 --figure /dev/null/none", 2, "cannot write '/dev/null/none'"},
        Refusal{"--topology torus:4x4x4 --sharing min --algorithm a2at_printed", 3, "has three"}}) {
    const auto [code, output] = alltoall(refusal.arguments);
    EXPECT_EQ(code, refusal.code) << refusal.arguments << ": " << output;
    EXPECT_TRUE(holds(output, refusal.message)) << refusal.arguments << ": " << output;
  }
}

}  // namespace
}  // namespace torii::tests
