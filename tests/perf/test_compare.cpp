// SPDX-License-Identifier: Apache-2.0
// The comparison with MPI: a short run under each MPI that is here, and the report that picks the best setting.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;

class CompareTest : public FolderTest {
 protected:
  static std::string line(const std::string& setting, double mpi_us, double torii_us, int wrong = 0) {
    nlohmann::json json = {{"collective", "allreduce"},
                           {"timing", "isolated"},
                           {"mpi", "Some MPI"},
                           {"setting", setting},
                           {"algorithm", "node"},
                           {"ranks", 2},
                           {"bytes", 8192},
                           {"mpi_us", mpi_us},
                           {"torii_malloc_us", torii_us},
                           {"torii_allocated_us", 1.0},
                           {"wrong_mpi", 0},
                           {"wrong_torii", wrong},
                           {"host", "h"},
                           {"commit", "c"},
                           {"version", "v"}};
    json["ratio_malloc"] = mpi_us / torii_us;
    json["ratio_allocated"] = mpi_us;
    return json.dump() + "\n";
  }
};

TEST_F(CompareTest, ReportPicksTheLeastMpiTimeAndItsOwnRatio) {
  const fs::path json = write("a.json", line("slow", 9, 3) + line("fast", 6, 4) + line("middle", 8, 1));
  const fs::path svg = folder_ / "a.svg";
  const Outcome outcome = run({bin_dir() + "/compare_report", "--svg", svg.string(), json.string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("Some MPI, fast"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("1.50"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("slow"), std::string::npos) << outcome.output;
  std::ifstream file(svg);
  const std::string drawing((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(drawing.rfind("<svg ", 0), 0u);
  EXPECT_NE(drawing.find("allreduce, 2 ranks"), std::string::npos);
}

TEST_F(CompareTest, ReportShowsAdoptedMemoryWhereItWasMeasured) {
  auto with = nlohmann::json::parse(line("new", 6, 4));
  with["torii_adopted_us"] = 2.34;
  with["ratio_adopted"] = 2.56;
  const fs::path svg = folder_ / "b.svg";
  const Outcome outcome = run({bin_dir() + "/compare_report", "--svg", svg.string(), write("n.json", with.dump())});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find(" 2.34 "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find(" 2.56 "), std::string::npos) << outcome.output;
  const Outcome before = run({bin_dir() + "/compare_report", write("o.json", line("old", 6, 4))});
  EXPECT_EQ(before.code, 0) << before.output;
  EXPECT_NE(before.output.find(" - "), std::string::npos) << before.output;
}

TEST_F(CompareTest, ReportShowsHowFarTheLimitIs) {
  auto with = nlohmann::json::parse(line("new", 6, 4));
  with["limit_private_us"] = 3.125;
  with["limit_mapped_us"] = 0.8;
  const Outcome outcome = run({bin_dir() + "/compare_report", write("limit.json", with.dump())});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find(" 1.28 "), std::string::npos) << outcome.output;  // malloc'ed: 4 / 3.125
  EXPECT_NE(outcome.output.find(" 1.25 "), std::string::npos) << outcome.output;  // allocated: 1 / 0.8
  const fs::path svg = folder_ / "ratios.svg";
  EXPECT_EQ(run({bin_dir() + "/compare_report", "--ratios", svg.string(), write("ratios.json", with.dump())}).code, 0);
  std::ifstream file(svg);
  const std::string drawing((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(drawing.find("Time over the limit"), std::string::npos);
  EXPECT_NE(drawing.find(" x<"), std::string::npos) << drawing;  // a step of the axis
  const Outcome table =
      run({bin_dir() + "/compare_report", "--markdown", "allreduce", write("table.json", with.dump())});
  EXPECT_EQ(table.code, 0) << table.output;
  EXPECT_NE(table.output.find("| 2 | 8 KiB | 6.00 | 4.00 | 1.50 | 1.00 | 6.00 | - | - | 3.12 | 0.80 | Some MPI, new |"),
            std::string::npos)
      << table.output;
  const Outcome unknown = run({bin_dir() + "/compare_report", "--markdown", "dance", write("table.json", with.dump())});
  EXPECT_EQ(unknown.code, 2) << unknown.output;
  EXPECT_NE(unknown.output.find("'dance'"), std::string::npos) << unknown.output;
  with["wrong_limits"] = 7;
  const Outcome wrong = run({bin_dir() + "/compare_report", write("wrong.json", with.dump())});
  EXPECT_EQ(wrong.code, 1) << wrong.output;
  EXPECT_NE(wrong.output.find("WRONG data: 7"), std::string::npos) << wrong.output;
}

TEST_F(CompareTest, ReportOfSeveralRunsHasMedians) {
  const std::string first = write("r1.json", line("a", 6, 4)), second = write("r2.json", line("b", 2, 4)),
                    third = write("r3.json", line("c", 3, 4));
  const Outcome table = run({bin_dir() + "/compare_report", first, second, third});
  EXPECT_EQ(table.code, 0) << table.output;
  EXPECT_NE(table.output.find("medians of 3 runs"), std::string::npos) << table.output;
  EXPECT_NE(table.output.find(" 3.00 "), std::string::npos) << table.output;
  const Outcome lost = run({bin_dir() + "/compare_report", "--lost", first, second, third});
  EXPECT_EQ(lost.code, 0) << lost.output;
  EXPECT_EQ(lost.output, "torii lost 1 of 2 comparisons: allreduce 8 KiB on 2 ranks 0.75.\n");
  EXPECT_EQ(run({bin_dir() + "/compare_report", "--lost", first}).output, "torii lost 0 of 2 comparisons.\n");
}

TEST_F(CompareTest, ReportSaysWhatIsWrong) {
  const Outcome wrong = run({bin_dir() + "/compare_report", write("w.json", line("a", 2, 1, 5))});
  EXPECT_EQ(wrong.code, 1) << wrong.output;
  EXPECT_NE(wrong.output.find("WRONG data: 5"), std::string::npos) << wrong.output;
  const Outcome bad = run({bin_dir() + "/compare_report", write("b.json", line("a", 2, 1) + "{\"x\"\n")});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.output.find("b.json:2:"), std::string::npos) << bad.output;
  const std::string levels = std::string(100'000, '[') + std::string(100'000, ']');
  const Outcome deep = run({bin_dir() + "/compare_report", write("d.json", line("a", 2, 1) + levels + "\n")});
  EXPECT_EQ(deep.code, 2);
  EXPECT_NE(deep.output.find("d.json:2: a value is nested more than 16 deep"), std::string::npos) << deep.output;
  const Outcome longer = run({bin_dir() + "/compare_report", write("l.json", std::string(100'000, 'x'))});
  EXPECT_EQ(longer.code, 2);
  EXPECT_LT(longer.output.size(), 1000u);
  const Outcome empty = run({bin_dir() + "/compare_report", write("e.json", "")});
  EXPECT_EQ(empty.code, 2);
  EXPECT_NE(empty.output.find("has no results"), std::string::npos) << empty.output;
  EXPECT_EQ(run({bin_dir() + "/compare_report", (folder_ / "none").string()}).code, 2);
  EXPECT_EQ(run({bin_dir() + "/compare_report"}).code, 2);
}

TEST_F(CompareTest, ScriptRefusesWhatItDoesNotKnow) {
  const std::string script = (fs::path(source_dir()) / "perf" / "compare").string();
  const Outcome unknown = run({script, "--fast"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.output.find("'--fast'"), std::string::npos) << unknown.output;
  EXPECT_EQ(run({script, "--ranks", "two", "--bin", bin_dir()}).code, 2);
  EXPECT_EQ(run({script, "--bin", folder_.string()}).code, 3);
  EXPECT_EQ(run({script, "--help"}).code, 0);
}

TEST_F(CompareTest, ScriptBesideGlooRefusesWhatItDoesNotKnow) {
  const std::string script = (fs::path(source_dir()) / "perf" / "compare_gloo").string();
  const Outcome unknown = run({script, "--fast", "1"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.output.find("'--fast'"), std::string::npos) << unknown.output;
  EXPECT_EQ(run({script, "--ranks"}).code, 2);
  EXPECT_EQ(run({script, "--ranks", "two", "--bin", bin_dir()}).code, 2);
  EXPECT_EQ(run({script, "--json", (folder_ / "none" / "x").string(), "--bin", bin_dir()}).code, 2);
  EXPECT_EQ(run({script, "--bin", folder_.string()}).code, 3);
  EXPECT_EQ(run({script, "--help"}).code, 0);
  if (!fs::exists(fs::path(bin_dir()) / "gloo_perf")) return;
  const Outcome scan = run({script, "--bin", bin_dir(), "--collective", "scan", "--sizes", "8"});
  EXPECT_EQ(scan.code, 2) << scan.output;
  EXPECT_NE(scan.output.find("--collective scan: Gloo has none"), std::string::npos) << scan.output;
  EXPECT_EQ(run({bin_dir() + "/gloo_perf", "--collective", "allreduced"}).code, 2);
  EXPECT_EQ(run({bin_dir() + "/gloo_perf", "--sizes", "8G"}).code, 2);
}

/// Both sides' data are right, and the directory in which Gloo's ranks met is gone.
TEST_F(CompareTest, EveryCollectiveBesideGloo) {
  if (!fs::exists(fs::path(bin_dir()) / "gloo_perf")) GTEST_SKIP() << "libgloo-dev is not installed";
  const std::string script = (fs::path(source_dir()) / "perf" / "compare_gloo").string();
  const fs::path json = folder_ / "gloo.json", temporary = folder_ / "temporary";
  fs::create_directory(temporary);
  for (const std::string timing : {"isolated", "loop"}) {
    // Ranks that share CPUs make Gloo's calls take milliseconds, so few are made.
    const bool is_loop = timing == "loop";
    const char* const all = "allreduce,broadcast,reduce,all_gather,reduce_scatter,alltoall,scatter,gather,barrier";
    const Outcome outcome = Process({script, "--bin", bin_dir(), "--ranks", is_loop ? "3" : "2", "--collective",
                                     is_loop ? "allreduce,reduce_scatter" : all, "--sizes", is_loop ? "64K" : "8,2M",
                                     "--rounds", "1", "--block-ms", "0.5", "--timing", timing, "--json", json.string()},
                                    {"TMPDIR=" + temporary.string()})
                                .wait(60);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_TRUE(fs::is_empty(temporary));
    std::ifstream file(json);
    int rows = 0;
    for (std::string text; std::getline(file, text); ++rows) {
      const auto row = nlohmann::json::parse(text);
      EXPECT_EQ(row.at("timing"), timing);
      EXPECT_GT(row.at("ratio"), 0) << text;
      EXPECT_EQ(row.at("ways").size(), row.at("collective") == "allreduce" ? 4U : 2U) << text;
      for (const auto& way : row.at("ways")) {
        EXPECT_EQ(way.at("wrong"), 0) << text;
        EXPECT_EQ(way.at("rounds_us").size(), 1U) << text;
      }
    }
    EXPECT_EQ(rows, is_loop ? 2 : 8 * 2 + 1) << outcome.output;
  }
}

const std::vector<std::string> kMpiAsRoot = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                             "OMPI_MCA_rmaps_base_oversubscribe=1"};

/// One process per MPI joins through MPI_Allgather, and both sides' data are right for every collective.
TEST_F(CompareTest, EveryCollectiveUnderEachMpi) {
  int found = 0;
  for (const std::string mpi : {"openmpi", "mpich"}) {
    // MPICH's ranks wait for the scheduler where they outnumber the CPUs. 9M is stored past the caches.
    const std::string ranks = mpi == "openmpi" ? "3" : "2";
    const std::string sizes = mpi == "openmpi" ? "12,3000,200K" : "8,8K,9M";
    const fs::path program = fs::path(bin_dir()) / fmt::format("compare_mpi.{}", mpi);
    const std::string launcher = fmt::format("mpirun.{}", mpi);
    if (!fs::exists(program) || run({"which", launcher}).code != 0) continue;
    ++found;
    const fs::path json = folder_ / fmt::format("{}.json", mpi);
    const Outcome outcome =
        Process({launcher, "-n", ranks, program.string(), "--sizes", sizes, "--block-ms", "0.5", "--collective",
                 "allreduce,broadcast,reduce,barrier,all_gather,reduce_scatter,alltoall,scatter,gather", "--json",
                 json.string()},
                kMpiAsRoot)
            .wait(60);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::ifstream file(json);
    int rows = 0;
    for (std::string text; std::getline(file, text); ++rows) {
      const auto row = nlohmann::json::parse(text);
      EXPECT_EQ(row.at("wrong_mpi"), 0) << text;
      EXPECT_EQ(row.at("wrong_torii"), 0) << text;
      EXPECT_EQ(row.at("wrong_limits"), 0) << text;
      EXPECT_GT(row.at("limit_private_us"), 0) << text;
      EXPECT_GT(row.at("limit_mapped_us"), 0) << text;
    }
    EXPECT_EQ(rows, 2 * (8 * 3 + 1)) << outcome.output;
    const Outcome report = run({bin_dir() + "/compare_report", json.string()});
    EXPECT_EQ(report.code, 0) << report.output;
  }
  if (found == 0) GTEST_SKIP() << "neither Open MPI nor MPICH is here";
}

/// This machine plays nodes: the hand-written loops then go over TCP, whatever memory the processes could share.
TEST_F(CompareTest, BetweenNodesTheLimitIsThatOfSockets) {
  const fs::path program = fs::path(bin_dir()) / "compare_mpi.openmpi";
  if (!fs::exists(program) || run({"which", "mpirun.openmpi"}).code != 0) GTEST_SKIP() << "Open MPI is not here";
  for (const size_t ranks : {2u, 3u}) {
    const fs::path json = folder_ / fmt::format("nodes{}.json", ranks);
    std::vector<std::string> command = {"mpirun.openmpi"};
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (rank > 0) command.emplace_back(":");
      command.insert(command.end(),
                     {"-n", "1", "-x", fmt::format("TORII_NODE=node{}", rank), program.string(), "--sizes",
                      "4,12,3000,1M", "--block-ms", "0.5", "--timing", "isolated", "--collective",
                      "allreduce,broadcast,reduce,barrier,all_gather,reduce_scatter,alltoall,scatter,gather", "--json",
                      json.string()});
    }
    Outcome outcome = Process(command, kMpiAsRoot).wait(60);
    // mpirun of Open MPI 4.1 seldom hears of a process' end before it hears of its MPI_Finalize, and then fails.
    if (outcome.output.find("exiting improperly") != std::string::npos) {
      fs::remove(json);
      outcome = Process(command, kMpiAsRoot).wait(60);
    }
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::ifstream file(json);
    std::set<std::string> loops;
    int rows = 0;
    for (std::string text; std::getline(file, text); ++rows) {
      const auto row = nlohmann::json::parse(text);
      EXPECT_EQ(row.at("wrong_limits"), 0) << text;
      EXPECT_GT(row.at("limit_private_us"), 0) << text;
      EXPECT_FALSE(row.contains("limit_mapped_us")) << text;
      loops.insert(row.at("limit_private_loop").get<std::string>());
    }
    EXPECT_EQ(rows, 8 * 4 + 1) << outcome.output;
    for (const std::string& loop : loops) EXPECT_TRUE(loop.starts_with("sockets")) << loop;
  }
}

}  // namespace
}  // namespace torii::tests
