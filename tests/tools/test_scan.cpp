// SPDX-License-Identifier: Apache-2.0
// The ranges of `torii-sim --scan`, right and wrong, and the drawing of curves and bars.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/support/test_run.hpp"
#include "tools/torii-sim/cliffs.hpp"
#include "tools/torii-sim/curves.hpp"
#include "tools/torii-sim/scan.hpp"

namespace torii::tests {
namespace {

using tools::read_scan;

TEST(Scan, MultipliesRangesOut) {
  const tools::Scan scan = read_scan({"shapes=2..3x4m", "engines=1..3", "bytes=1K..20K"}, "torus");
  EXPECT_EQ(scan.topologies, (std::vector<std::string>{"torus:2x4m", "torus:3x4m"}));
  EXPECT_EQ(scan.engines, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(scan.bytes, (std::vector<std::size_t>{1024, 4096, 16384}));
  EXPECT_EQ(read_scan({"ranks=3..5"}, "node").ranks, (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(read_scan({"ranks=2..3,16,31..32"}, "node").ranks, (std::vector<int>{2, 3, 16, 31, 32}));
  EXPECT_EQ(read_scan({"bytes=3..24*2"}, "node").bytes, (std::vector<std::size_t>{3, 6, 12, 24}));
  // 2^64 is no size.
  const std::size_t large = std::size_t{1} << 34;
  EXPECT_EQ(read_scan({"bytes=16G..16G*1073741824"}, "node").bytes, (std::vector<std::size_t>{large}));
  EXPECT_EQ(read_scan({"shapes=5"}, "mesh").topologies, (std::vector<std::string>{"mesh:5"}));
  EXPECT_EQ(read_scan({"shapes=2x3,4..5"}, "torus").topologies,
            (std::vector<std::string>{"torus:2x3", "torus:4", "torus:5"}));
  EXPECT_TRUE(read_scan({}, "torus").topologies.empty());
}

TEST(Scan, RefusesWhatItCannotRead) {
  for (const char* text : {"",
                           "shape=2",
                           "shapes",
                           "shapes=",
                           "shapes=2x",
                           "shapes=x2",
                           "shapes=3..2",
                           "shapes=0..2",
                           "shapes=2...3",
                           "shapes=1..100000x1..100000",
                           "shapes=2..",
                           "shapes=-1",
                           "engines=0",
                           "engines=1..17",
                           "engines=x",
                           "bytes=0..1K",
                           "bytes=2K..1K",
                           "bytes=..",
                           "bytes=1..1000000G",
                           "bytes=1..4*1",
                           "bytes=1..4*",
                           "bytes=1..4*x",
                           "ranks=0",
                           "ranks=2,",
                           "ranks=,2",
                           "ranks=2..1000000"}) {
    try {
      read_scan({text}, "torus");
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("'" + std::string(text) + "'"), std::string::npos) << error.what();
    }
  }
}

TEST(Scan, AnyTextIsReadOrRefused) {
  const std::string letters = "0123456789.xmKG=";
  const std::vector<std::string> words = {"shapes=", "engines=", "bytes=", "2..4", "x", "m", "1K"};
  for (const Seed& seed : seeds_of("scan_test", 1)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    int refused = 0;
    for (int i = 0; i < 5000; ++i) {
      std::string text;
      for (auto parts = random() % 6; parts > 0; --parts) {
        text += random() % 2 == 0 ? words[random() % words.size()] : std::string(1, letters[random() % letters.size()]);
      }
      try {
        read_scan({text}, "torus");
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), Status::invalid_argument) << text;
        ++refused;
      }
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, 5000);
  }
}

/// A call of a scan on a switch, with a bound of 1 us.
tools::AskedRow call_of(int ranks, std::size_t bytes, double time_us) {
  tools::AskedRow asked;
  asked.algorithm = "auto";
  asked.bytes = bytes;
  asked.row.collective = "allreduce";
  asked.row.topology = "node";
  asked.row.ranks = ranks;
  asked.row.bytes = bytes;
  asked.row.time_us = time_us;
  asked.row.bound_us = 1;
  return asked;
}

TEST(Cliffs, ComparesTwiceTheBytesAndOneRankMore) {
  const std::vector<tools::AskedRow> smooth = {call_of(4, 8, 10), call_of(4, 16, 22), call_of(4, 32, 22),
                                               call_of(5, 8, 15), call_of(7, 8, 99),  call_of(4, 128, 99)};
  EXPECT_EQ(tools::compare_rows(smooth).compared, 3);
  EXPECT_TRUE(tools::compare_rows(smooth).found.empty());
  const auto cliff = [](const tools::AskedRow& one, const tools::AskedRow& other) {
    const tools::Cliffs cliffs = tools::compare_rows({one, other});
    EXPECT_EQ(cliffs.compared, 1);
    return cliffs.found.empty() ? std::string() : cliffs.found.front();
  };
  EXPECT_NE(cliff(call_of(4, 8, 10), call_of(4, 16, 22.1)).find("twice the bytes take 2.210"), std::string::npos);
  EXPECT_NE(cliff(call_of(4, 8, 10), call_of(4, 16, 9.9)).find("twice the bytes take 0.990"), std::string::npos);
  EXPECT_NE(cliff(call_of(4, 8, 10), call_of(5, 8, 15.1)).find("1.510 times as much"), std::string::npos);
  EXPECT_NE(cliff(call_of(4, 8, 15.1), call_of(5, 8, 10)).find("0.662 times as much"), std::string::npos);
}

TEST(Cliffs, LeavesOutWhatCannotBeCompared) {
  tools::AskedRow rounded = call_of(4, 16, 90);
  rounded.row.bytes = 12;
  EXPECT_EQ(tools::compare_rows({call_of(4, 8, 10), rounded}).compared, 0) << "blocks of whole elements";
  EXPECT_EQ(tools::compare_rows({call_of(4, 0, 0), call_of(5, 0, 0)}).compared, 0) << "nothing is moved";
  tools::AskedRow ring = call_of(4, 16, 90);
  ring.algorithm = "ring";
  EXPECT_EQ(tools::compare_rows({call_of(4, 8, 10), ring}).compared, 0) << "another algorithm";
  std::vector<tools::AskedRow> torus = {call_of(4, 8, 10), call_of(5, 8, 90)};
  for (tools::AskedRow& row : torus) row.row.topology = "torus:4x1";
  EXPECT_EQ(tools::compare_rows(torus).compared, 0) << "one rank more is another torus";
}

TEST(Curves, EveryPointIsInsideTheAxes) {
  tools::CurveChart chart;
  chart.title = "a < b & c";
  chart.level = 4096;
  chart.curves = {{"one", false, {{1, 4096}, {2, 9000.5}, {8, 17000}}}, {"two", true, {{1, 1}, {8, 1}}}};
  const std::string svg = tools::draw_curves(chart);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  std::size_t curves = 0;
  for (std::size_t at = svg.find("points=\""); at != std::string::npos; at = svg.find("points=\"", at + 1)) {
    ++curves;
    const char* text = svg.c_str() + at + 8;
    while (*text != '"') {
      char* end = nullptr;
      const double x = std::strtod(text, &end);
      const double y = std::strtod(end + 1, &end);
      EXPECT_TRUE(x >= 70 && x <= 550 && y >= 50 && y <= 370) << x << "," << y;
      text = end + 1;
    }
  }
  EXPECT_EQ(curves, 2U);
}

}  // namespace
}  // namespace torii::tests
