// SPDX-License-Identifier: Apache-2.0
// The gauge of calls that change: its command lines, a short run beside each MPI that is here, and MPIs named by a
// folder.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "perf/sequences/sequence.hpp"
#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;
const std::string kVaried = (fs::path(source_dir()) / "perf" / "varied").string();
const std::string kMerge = (fs::path(source_dir()) / "perf" / "merge_calls").string();
const std::string kRecord = (fs::path(source_dir()) / "perf" / "programs").string();
const std::string kCompare = (fs::path(source_dir()) / "perf" / "compare").string();

class VariedTest : public FolderTest {
 protected:
  static bool has(const std::string& mpi) {
    return fs::exists(fs::path(bin_dir()) / ("varied_perf." + mpi)) && run({"which", "mpirun." + mpi}).code == 0;
  }
  static Outcome varied(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {kVaried, "--bin", bin_dir()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Process(command).wait(120);
  }
  std::vector<nlohmann::json> rows() const {
    std::vector<nlohmann::json> rows;
    std::ifstream file(path("rows.json"));
    for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::json::parse(line));
    return rows;
  }
  /// A folder as an MPI that is not Debian's has it, made of Debian's.
  std::string prefix_of(const std::string& mpi) const {
    const fs::path prefix = folder_ / "prefix";
    for (const char* const part : {"bin", "lib"}) fs::create_directories(prefix / part);
    const char* const library = mpi == "mpich" ? "libmpich.so" : "libmpi.so";
    std::istringstream shown(run({"mpicc." + mpi, "-show"}).output);
    for (std::string word; shown >> word;) {
      const fs::path folder = word.size() > 2 ? word.substr(2) : "";
      if (word.starts_with("-I") && fs::exists(folder / "mpi.h") && !fs::exists(prefix / "include"))
        fs::create_symlink(folder, prefix / "include");
      if (word.starts_with("-L") && fs::exists(folder / library)) {
        fs::create_symlink(folder / library, prefix / "lib/libmpi.so");
      }
    }
    const std::string launcher = run({"which", "mpirun." + mpi}).output;
    fs::create_symlink(launcher.substr(0, launcher.find('\n')), prefix / "bin/mpirun");
    return prefix.string();
  }
};

TEST_F(VariedTest, RefusesWhatItDoesNotKnow) {
  const auto refuses = [&](const std::vector<std::string>& arguments, int code, const std::string& reason) {
    const Outcome outcome = varied(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, reason)) << outcome.output;
  };
  refuses({"--fast"}, 2, "--fast");
  refuses({"--ranks", "two"}, 2, "--ranks 'two' is not a list like 2,4");
  refuses({"--ranks", "1"}, 2, "--ranks must be at least 2");
  refuses({"--jobs", "0"}, 2, "--jobs must be at least 1");
  refuses({"--mpi", "openmpi=/opt"}, 2, "--mpi 'openmpi=/opt' is not NAME=PREFIX");
  refuses({"--mpi", "other"}, 2, "--mpi 'other' is not NAME=PREFIX");
  refuses({"--mpi", "other=" + folder_.string()}, 2, "there is no " + path("include") + "/mpi.h");
  EXPECT_EQ(run({kVaried, "--help"}).code, 0);
  const Outcome nothing = run({kVaried, "--bin", folder_.string()});
  EXPECT_EQ(nothing.code, 3) << nothing.output;
  EXPECT_TRUE(holds(nothing.output, "no MPI to compare with")) << nothing.output;
  const Outcome compared = run({kCompare, "--bin", bin_dir(), "--mpi", "other", "--json", path("none.json")});
  EXPECT_EQ(compared.code, 2) << compared.output;
  EXPECT_TRUE(holds(compared.output, "--mpi 'other' is not NAME=PREFIX")) << compared.output;
}

TEST_F(VariedTest, TheProgramOpensTheModuleOfItsName) {
  const fs::path program = fs::path(bin_dir()) / "varied_perf.openmpi";
  if (!fs::exists(program)) GTEST_SKIP() << "Open MPI is not here";
  fs::create_symlink(program, folder_ / "varied_perf.none");
  fs::create_symlink(program, folder_ / "varied_perf");
  const Outcome none = run({path("varied_perf.none")});
  EXPECT_EQ(none.code, 3) << none.output;
  EXPECT_TRUE(holds(none.output, "cannot open the module of its MPI: " + path("torii_mpi_none.so"))) << none.output;
  const Outcome nameless = run({path("varied_perf")});
  EXPECT_EQ(nameless.code, 3) << nameless.output;
  EXPECT_TRUE(holds(nameless.output, "its name must end in that of an MPI, as in compare_mpi.openmpi"));
  write("torii_mpi_none.so", "");
  EXPECT_TRUE(holds(run({path("varied_perf.none")}).output, "cannot open the module of its MPI: "));
}

/// Builds make manual pages of them where MPI may not be able to start.
TEST_F(VariedTest, HelpNeedsNoMpi) {
  const std::vector<std::string> no_mpi = {"OPAL_PREFIX=" + path("nowhere")};
  for (const std::string name : {"compare_mpi.openmpi", "varied_perf.openmpi"}) {
    const std::string program = bin_dir() + "/" + name;
    if (!fs::exists(program)) GTEST_SKIP() << "Open MPI is not here";
    for (const std::string question : {"--help", "--version"}) {
      const Outcome told = run({program, question}, no_mpi);
      EXPECT_EQ(told.code, 0) << told.output;
    }
    EXPECT_NE(run({program}, no_mpi).code, 0) << "the setting stops no MPI";
  }
}

TEST_F(VariedTest, EverySequenceIsRightBesideEachMpi) {
  int found = 0;
  for (const std::string mpi : {"openmpi", "mpich"}) {
    if (!has(mpi)) continue;
    ++found;
    const std::vector<std::string> as_root = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
    const std::string ranks = mpi == "openmpi" ? "4" : "2";
    std::vector<std::string> command = {"mpirun." + mpi, "-n", ranks};
    if (mpi == "openmpi") command.insert(command.end(), {"--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
    command.insert(command.end(), {bin_dir() + "/varied_perf." + mpi, "--passes", "2", "--calls", "20", "--json",
                                   path("rows.json"), "--setting", mpi});
    const Outcome outcome = Process(command, as_root).wait(90);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
  }
  if (found == 0) GTEST_SKIP() << "neither Open MPI nor MPICH is here";
  std::set<std::string> names;
  for (const auto& row : rows()) {
    names.insert(row.at("sequence").get<std::string>());
    EXPECT_EQ(row.at("wrong"), 0) << row;
    for (const char* const field :
         {"torii_passes_us", "mpi_passes_us", "torii_faults", "mpi_faults", "torii_call_plans", "torii_installed_plans",
          "torii_staging_bytes", "torii_cold_messages", "torii_sleeps"}) {
      EXPECT_EQ(row.at(field).size(), 2u) << row;
    }
    for (const char* const field : {"mpi_first_us", "torii_first_us", "ratio_first", "mpi_us", "torii_us", "ratio"}) {
      EXPECT_GT(row.at(field), 0) << row;
    }
  }
  EXPECT_EQ(names.size(), perf::own_sequences(2, 1, 1).size());
  const Outcome report = varied({"--report", path("rows.json")});
  EXPECT_EQ(report.code, 0) << report.output;
  EXPECT_TRUE(holds(report.output, "calls that change, later")) << report.output;
}

TEST_F(VariedTest, RecordedCallsAreReplayed) {
  const std::string mpi = has("openmpi") ? "openmpi" : "mpich";
  if (!has(mpi)) GTEST_SKIP() << "neither Open MPI nor MPICH is here";
  const std::string file = write("solver.txt",
                                 "torii-calls 1\nranks 2\nteam 0 1\nteam 1\n3 0 broadcast f64 - 1 100\n"
                                 "2 1 allreduce f32 max - 7\n1 0 allreduce f64 sum - 3 in_place\n"
                                 "1 0 alltoall u8 - - 8,0,16,8\n2 0 scatter i32 - 1 5,0\n2 0 gather i64 - 0 5,9\n"
                                 "1 0 scan f64 min - 9 in_place\n1 0 exscan i32 sum - 9\n3 0 barrier - - - -\n");
  const Outcome outcome = varied({"--ranks", "2", "--jobs", "1", "--recorded", file, "--json", path("rows.json"),
                                  "--summary", path("summary.json")});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_FALSE(rows().empty()) << outcome.output;
  for (const auto& row : rows()) {
    EXPECT_EQ(row.at("sequence"), "solver");
    EXPECT_EQ(row.at("calls"), 16) << row;
    EXPECT_EQ(row.at("wrong"), 0) << row;
  }
  EXPECT_EQ(varied({"--report", path("summary.json")}).code, 0);
  const Outcome wrong = varied({"--ranks", "3", "--jobs", "1", "--recorded", file});
  EXPECT_EQ(wrong.code, 1) << wrong.output;
  EXPECT_TRUE(holds(wrong.output, "line 2: was recorded with 2 ranks, and there are 3")) << wrong.output;
}

/// What four ranks have recorded, in one order: a call comes when it is the next one of all its members.
TEST_F(VariedTest, RecordedCallsAreMerged) {
  write("calls.0", "0,1 alltoall u8 - - 1,2\n0,1 barrier - - - -\n0 barrier - - - -\n");
  write("calls.1", "0,1 alltoall u8 - - 3,4\n3,1 gather u8 - 0 ?\n0,1 barrier - - - -\n");
  write("calls.2", "2 allreduce f64 sum - 1\n# left out: 3 calls\n");
  write("calls.3", "3,1 gather u8 - 0 7,8\n");
  const Outcome merged = run({kMerge, path("calls"), "--about", "a test"});
  EXPECT_EQ(merged.code, 0) << merged.output;
  EXPECT_EQ(merged.output,
            "torii-calls 1\n# SPDX-License-Identifier: Apache-2.0\n# a test\nranks 4\nteam 0 1\nteam 1 3\n"
            "1 0 alltoall u8 - - 1,3,2,4\n1 1 gather u8 - 1 8,7\n1 0 barrier - - - -\n");
  const Outcome cut = run({kMerge, path("calls"), "--most", "1"});
  EXPECT_TRUE(cut.output.ends_with("team 0 1\n1 0 alltoall u8 - - 1,3,2,4\n")) << cut.output;
}

TEST_F(VariedTest, FilesThatDoNotFitTogetherAreRefused) {
  const auto refuses = [&](const std::string& reason) {
    const Outcome outcome = run({kMerge, path("calls")});
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, reason)) << outcome.output;
  };
  refuses("there is no " + path("calls") + ".0");
  write("calls.0", "0,1 barrier -\n");
  refuses("line 1: 3 words instead of 6 or 7");
  write("calls.0", "0,1 barrier - - - -\n");
  write("calls.1", "0,1 allreduce f64 sum - 1\n");
  refuses("no call is the next one of all its members: rank 0: barrier of (0, 1), rank 1: allreduce of (0, 1)");
  write("calls.1", "0,7 barrier - - - -\n");
  refuses("perf/merge_calls: ");
  EXPECT_EQ(run({kMerge, "--help"}).code, 0);
}

TEST_F(VariedTest, AProgramIsRecordedAndItsCallsAreMadeAgain) {
  if (!has("openmpi") || !fs::exists(fs::path(bin_dir()) / "mpi_communicators")) {
    GTEST_SKIP() << "the program to be recorded needs openmpi-bin and libopenmpi-dev: no mpirun.openmpi, or no "
                    "varied_perf.openmpi and mpi_communicators in "
                 << bin_dir();
  }
  const Outcome recorded =
      run({kRecord, "--bin", bin_dir(), "--record", path("."), "--only", "communicators", "--ranks", "2"});
  EXPECT_EQ(recorded.code, 0) << recorded.output;
  const std::string file = path("communicators.txt");
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_TRUE(holds(text.str(), "allreduce f64 sum - 1")) << text.str();
  const Outcome outcome = varied({"--ranks", "2", "--jobs", "1", "--recorded", file});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "\ncommunicators ")) << outcome.output;
}

TEST_F(VariedTest, AnMpiNamedByItsFolderIsCompiledAndRun) {
  const std::string mpi = has("openmpi") ? "openmpi" : "mpich";
  if (!has(mpi)) GTEST_SKIP() << "neither Open MPI nor MPICH is here";
  const std::string named = "other=" + prefix_of(mpi);
  const Outcome outcome = varied(
      {"--ranks", "2", "--jobs", "1", "--sequences", "broadcast-long", "--mpi", named, "--json", path("rows.json")});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::set<std::string> settings;
  for (const auto& row : rows()) settings.insert(row.at("setting").get<std::string>());
  EXPECT_TRUE(settings.contains("other")) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
