// SPDX-License-Identifier: Apache-2.0
// Parts of `torii-info tune`: lines of tune_perf, rows from them, the tune file, regret, requests, files written whole.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "collectives/selection/selection.hpp"
#include "runtime/base/status.hpp"
#include "tests/support/folder_test.hpp"
#include "tests/support/process.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-info/tune_regret.hpp"
#include "tools/torii-info/tune_request.hpp"
#include "tools/torii-info/tune_rows.hpp"
#include "tools/torii-info/whole_file.hpp"

namespace torii::tools {
namespace {

namespace fs = std::filesystem;

Json candidate(const std::string& algorithm, double ratio, int rounds = 3) {
  return {{"algorithm", algorithm}, {"segment", 4096}, {"slots", 4},     {"window", 1},      {"one_shot", true},
          {"malloc_us", 2.0},       {"ratio", ratio},  {"spread", 0.01}, {"rounds", rounds}, {"allocated_us", 1.0}};
}

Json line_of(const Json& candidates, const Json& best) {
  return {{"collective", "allreduce"}, {"ranks", 4},  {"bytes", 65536}, {"rounds", 3}, {"table", candidate("node", 1)},
          {"candidates", candidates},  {"best", best}};
}

TEST(TuneLines, TheFinalCounts) {
  const TuneLine line = parse_tune_line(line_of(Json::array({candidate("ring", 0.5)}), candidate("ring", 0.9)));
  EXPECT_EQ(to_text(line.cell), "allreduce, 4 ranks, 64K");
  EXPECT_EQ(line.algorithm, "node");
  EXPECT_EQ(line.rival, "ring 4K/4/1 one_shot");
  EXPECT_DOUBLE_EQ(line.ratio, 0.9);
  EXPECT_EQ(line.rival_row.tuning.segment_bytes, 4096U);
}

TEST(TuneLines, WithoutAFinalNobodyWasFaster) {
  const TuneLine slower = parse_tune_line(
      line_of(Json::array({candidate("ring", 1.4), candidate("binomial", 1.2), candidate("far", 1.1, 1)}), nullptr));
  EXPECT_EQ(slower.rival, "binomial 4K/4/1 one_shot") << "who was dropped is out";
  EXPECT_DOUBLE_EQ(slower.ratio, 1.2);
  EXPECT_TRUE(slower.is_decided);
  const TuneLine cut = parse_tune_line(line_of(Json::array({candidate("ring", 0.5)}), nullptr));
  EXPECT_DOUBLE_EQ(cut.ratio, 1) << "time was over before the final";
  EXPECT_FALSE(cut.is_decided);
  const TuneLine alone = parse_tune_line(line_of(Json::array(), nullptr));
  EXPECT_EQ(alone.rival, "");
  EXPECT_DOUBLE_EQ(alone.ratio, 1);
  EXPECT_FALSE(alone.is_decided);
}

TEST(TuneLines, OthersAreRefused) {
  EXPECT_THROW((void)parse_tune_line(Json{{"collective", "allreduce"}}), Error);
  Json gossip = line_of(Json::array(), nullptr);
  gossip["collective"] = "gossip";
  EXPECT_THROW((void)parse_tune_line(gossip), Error);
}

TuneLine timed(int ranks, std::size_t bytes, double ratio, Collective collective = Collective::allreduce) {
  TuneLine line;
  line.cell = {collective, ranks, bytes};
  line.algorithm = "node";
  line.rival = line.rival_row.algorithm = "ring";
  line.rival_row.tuning.segment_bytes = 4096;
  line.rival_row.tuning.slots = 4;
  line.rival_row.tuning.window = 1;
  line.ratio = ratio;
  line.is_decided = true;
  return line;
}

TEST(TuneLines, MediansOverPasses) {
  const std::vector<TuneLine> odd = {timed(2, 64, 0.7), timed(2, 64, 2), timed(2, 64, 0.9)};
  EXPECT_DOUBLE_EQ(medians(odd).begin()->second.line.ratio, 0.9);
  EXPECT_EQ(medians(odd).begin()->second.passes, 3);
  EXPECT_DOUBLE_EQ(medians({timed(2, 64, 0.8), timed(2, 64, 1.2)}).begin()->second.line.ratio, 1);
  EXPECT_TRUE(medians({}).empty());
}

TEST(TuneRows, ARowServesDownToTheNextMeasuredCell) {
  const std::vector<TunedRow> rows =
      faster_rows({timed(2, 64, 0.5), timed(2, 1024, 0.98), timed(2, 4096, 0.9), timed(8, 64, 1.5), timed(8, 1024, 0.5),
                   timed(4, 0, 0.9, Collective::barrier)});
  ASSERT_EQ(rows.size(), 4U);
  const auto text = [](const TunedRow& one) {
    return std::to_string(one.row.ranks_min) + ".." + std::to_string(one.row.ranks_max) + ", " +
           std::to_string(one.row.bytes_min) + ".." +
           (one.row.bytes_max == SIZE_MAX ? "any" : std::to_string(one.row.bytes_max));
  };
  EXPECT_EQ(text(rows[0]), "3..4, 0..any") << "a barrier has no length";
  EXPECT_EQ(text(rows[1]), "2..2, 0..64");
  EXPECT_EQ(text(rows[2]), "2..2, 1025..4096") << "2 % are no gain";
  EXPECT_EQ(text(rows[3]), "5..8, 65..1024");
  EXPECT_EQ(rows[1].before, "node");
}

TEST(TuneRows, PassesByTurnsConfirm) {
  const std::vector<TunedRow> rows = faster_rows({timed(2, 64, 0.5), timed(2, 256, 0.5), timed(2, 1024, 0.5)});
  ASSERT_EQ(rows.size(), 3U);
  const std::vector<TunedRow> kept =
      confirmed_rows(rows, {timed(2, 64, 0.8), timed(2, 64, 0.6), timed(2, 64, 1.02),       // 1.25 in the median
                            timed(2, 256, 0.8), timed(2, 256, 0.6), timed(2, 256, 1.04)});  // slower once
  ASSERT_EQ(kept.size(), 1U) << "without figures of the last one it is out";
  EXPECT_EQ(kept[0].cell.bytes, 64U);
  EXPECT_DOUBLE_EQ(kept[0].gain, 1.25);
}

TEST(TuneRows, CallsInARowMustNotBeSlower) {
  const std::vector<TunedRow> rows = faster_rows({timed(2, 64, 0.5), timed(2, 256, 0.5), timed(2, 1024, 0.5)});
  ASSERT_EQ(rows.size(), 3U);
  const std::vector<TunedRow> kept =
      rows_good_in_a_row(rows, {timed(2, 64, 1.02), timed(2, 64, 1.5), timed(2, 64, 0.9),      // 1.02 in the median
                                timed(2, 256, 0.8), timed(2, 256, 1.1), timed(2, 256, 1.2)});  // 1.1
  ASSERT_EQ(kept.size(), 1U) << "without figures of the last one it is out";
  EXPECT_EQ(kept[0].cell.bytes, 64U);
  TuneLine undecided = timed(2, 64, 1);
  undecided.is_decided = false;
  EXPECT_TRUE(rows_good_in_a_row(rows, {undecided}).empty()) << "time was over before the final";
}

TEST(TuneRows, TheFileServesNodesAndKeepsTheOtherBuiltInRows) {
  const std::string text =
      tune_file_text(faster_rows({timed(4, 1024, 0.9), timed(4, 4096, 0.5)}), {{"host", "h\xff"}}, {8, 2, 1, 4});
  const TuneTable table = TuneTable::parse(text, "made");
  EXPECT_EQ(table.rows().size(), TuneTable::built_in().rows().size() + 2);
  EXPECT_TRUE(tests::holds(text, R"("topology":"node")"));
  ASSERT_TRUE(table.machine());
  EXPECT_EQ(table.machine()->l3_groups, 2);
  PlanRequest request;
  request.collective = Collective::allreduce;
  request.topology = Topology::node(4);
  const auto chosen = [&](std::size_t bytes, bool several_nodes = false) {
    return std::string(select(table, {}, request, bytes, several_nodes).algorithm->name);
  };
  EXPECT_EQ(chosen(2048), "ring");
  EXPECT_EQ(chosen(4096), "ring");
  EXPECT_EQ(chosen(4097), select(TuneTable::built_in(), {}, request, 4097).algorithm->name);
  const Selected between = select(table, {}, request, 2048, true);
  ASSERT_TRUE(between.row.has_value());
  EXPECT_TRUE(table.rows()[*between.row].is_switch) << "what was measured on one node says nothing of networks";
}

TEST(TuneRegret, MedianAndWorstHaveLimits) {
  const RegretRun run = {"the built-in table", 3, 1};
  const Report good = report_regret(run, {timed(2, 64, 1 / 1.02), timed(2, 256, 1.5), timed(2, 1024, 1 / 1.14)});
  EXPECT_EQ(good.code, kDone) << good.text;
  EXPECT_DOUBLE_EQ(good.json.at("median"), 1.02);
  EXPECT_DOUBLE_EQ(good.json.at("worst"), 1.14);
  EXPECT_DOUBLE_EQ(good.json.at("cells")[1].at("regret"), 1) << "auto was the best";
  const Report worst = report_regret(run, {timed(2, 64, 1), timed(2, 256, 1), timed(2, 1024, 1 / 1.2)});
  EXPECT_EQ(worst.code, kWrong) << worst.text;
  EXPECT_NE(worst.text.find("worst 1.200 (limit 1.15): allreduce, 2 ranks, 1K, where ring is faster than node"),
            std::string::npos)
      << worst.text;
  EXPECT_NE(worst.text.find("1.20  above the limit"), std::string::npos) << worst.text;
  const Report median = report_regret(run, {timed(2, 64, 1 / 1.04), timed(2, 256, 1 / 1.04), timed(2, 1024, 1)});
  EXPECT_EQ(median.code, kWrong) << median.text;
  const Report partly = report_regret(run, {timed(2, 64, 1)});
  EXPECT_EQ(partly.code, kTimedOut) << partly.text;
  EXPECT_NE(partly.text.find("1 of 3 cells were measured"), std::string::npos) << partly.text;
  EXPECT_EQ(report_regret(run, {}).code, kTimedOut);
  const Report fewer = report_regret({"t", 1, 2}, {timed(2, 64, 1)});
  EXPECT_EQ(fewer.code, kTimedOut) << "one pass of two";
}

TEST(TuneRequests, RanksGoUpToTheCpus) {
  using Ranks = std::vector<int>;
  EXPECT_EQ(read_ranks("", 2, false), (Ranks{2}));
  EXPECT_EQ(read_ranks("", 12, false), (Ranks{2, 4, 8, 12}));
  EXPECT_EQ(read_ranks("8,2,8", 8, false), (Ranks{2, 8}));
  EXPECT_EQ(read_ranks("8,2", 1, true), (Ranks{2, 8}));
  const auto refused = [](const std::string& text, int cpus, Status status, const std::string& said) {
    try {
      (void)read_ranks(text, cpus, false);
      ADD_FAILURE() << text << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), status);
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
    }
  };
  refused("", 1, Status::unsupported, "1 CPU may be used here");
  refused("2,4", 2, Status::unsupported, "--ranks has 4, but 2 CPUs may be used here");
  for (const std::string text : {"1", "2,", ",", "two", "2;4", "1025", "-2", "2 4", "99999999999"}) {
    refused(text, 8, Status::invalid_argument, "--ranks is '" + text + "'; it must be a list like 2,4,8");
  }
}

TEST(TuneRequests, CellsAreDifferentLengths) {
  TuneRequest request;
  request.collectives = "barrier,allreduce,alltoall";
  request.least = "4";
  request.most = "64";
  std::vector<std::string> texts;
  for (const TuneCell& cell : read_cells(request, 4)) texts.push_back(to_text(cell));
  EXPECT_EQ(texts,
            (std::vector<std::string>{"barrier, 4 ranks", "allreduce, 4 ranks, 4", "alltoall, 4 ranks, 16",
                                      "allreduce, 4 ranks, 16", "allreduce, 4 ranks, 64", "alltoall, 4 ranks, 64"}));
}

class WholeFile : public tests::FolderTest {
 protected:
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
};

TEST_F(WholeFile, ReplacesWhatIsBehindALink) {
  const std::string file = write("real", "old");
  fs::create_symlink("real", path("link"));
  require_writable(path("link"));
  EXPECT_EQ(content(file), "old");
  write_whole(path("link"), "new");
  EXPECT_EQ(content(file), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  require_writable(path("none"));
  write_whole(path("none"), "first");
  EXPECT_EQ(content(path("none")), "first");
  EXPECT_EQ(files(), 3U) << "nothing beside them is left";
}

TEST_F(WholeFile, SaysWhyNotAndLeavesNothing) {
  const auto refusal = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  const std::string file = write("file", "old");
  EXPECT_EQ(refusal([&] { require_writable(path("none/x")); }),
            "cannot write '" + path("none/x") + "': No such file or directory");
  EXPECT_EQ(refusal([&] { require_writable(folder_); }), "cannot write '" + folder_.string() + "': Is a directory");
  EXPECT_NE(refusal([&] { require_writable(file + "/x"); }), "accepted");
  EXPECT_EQ(refusal([&] { write_whole(path("none/x"), "text"); }),
            "cannot write '" + path("none/x") + "': No such file or directory");
  EXPECT_EQ(refusal([&] { write_whole(folder_, "text"); }), "cannot write '" + folder_.string() + "': Is a directory");
  EXPECT_EQ(refusal([&] { write_whole("/dev/full", "text"); }), "cannot write '/dev/full': No space left on device");
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(content(file), "old");
  if (geteuid() == 0) return;  // root may write everywhere
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(refusal([&] { require_writable(file); }), "cannot write '" + file + "': Permission denied");
  fs::permissions(folder_, fs::perms::owner_all);
}

}  // namespace
}  // namespace torii::tools
