// SPDX-License-Identifier: Apache-2.0
// Instructions per call: the program under no tool at all, the script's command line, and its verdicts where valgrind
// is. The saved counts of the repository belong to one compiler, so ./dev instructions compares them and no test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;
const std::string kInstructions = (fs::path(source_dir()) / "perf" / "instructions").string();

class InstructionsTest : public FolderTest {
 protected:
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  /// The saved counts with another number for one cell, or without it.
  std::string changed(const std::string& name, const std::string& cell, double factor) const {
    std::istringstream lines(read("saved"));
    std::ofstream file(folder_ / name);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(cell + " ", 0) != 0) {
        file << line << "\n";
      } else if (factor > 0) {
        file << cell << " " << factor * std::stod(line.substr(cell.size())) << "\n";
      }
    }
    return path(name);
  }
  Outcome compare(const std::string& saved) const {
    return Process({kInstructions, "--bin", bin_dir(), "--saved", saved}).wait(60);
  }
};

TEST_F(InstructionsTest, TheProgramMakesItsCallsWithoutValgrind) {
  const Outcome outcome = run({bin_dir() + "/instructions_perf", "-n", "10", "-w", "5"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "allreduce 8 blocking 2 0 10\n")) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "alltoall 64K started 4 3 10\n")) << outcome.output;
  const Outcome isa = run({bin_dir() + "/instructions_perf", "--isa", "abacus"});
  EXPECT_EQ(isa.code, 2) << isa.output;
  EXPECT_TRUE(holds(isa.output, "abacus")) << isa.output;
}

TEST_F(InstructionsTest, ScriptRefusesWhatItDoesNotKnow) {
  const auto refuses = [](const std::vector<std::string>& command, const std::string& reason) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, reason)) << outcome.output;
  };
  refuses({kInstructions, "--fast"}, "'--fast'");
  refuses({kInstructions, "--saved"}, "--saved needs a value");
  refuses({kInstructions, "--within", "few"}, "--within 'few'");
  refuses({kInstructions, "--saved", path("none")}, "cannot read '" + path("none") + "'");
  const Outcome nothing = run({kInstructions, "--bin", folder_.string(), "--saved", write("empty", "")});
  EXPECT_EQ(nothing.code, 3) << nothing.output;
  EXPECT_EQ(run({kInstructions, "--help"}).code, 0);
}

TEST_F(InstructionsTest, CountsRepeatAndAGreaterOneFails) {
  if (run({"which", "valgrind"}).code != 0) GTEST_SKIP() << "valgrind is not here (Debian package valgrind)";
  const Outcome saved = Process({kInstructions, "--bin", bin_dir(), "--saved", path("saved"), "--save"}).wait(60);
  if (saved.code == 3) GTEST_SKIP() << saved.output;
  ASSERT_EQ(saved.code, 0) << saved.output;
  const Outcome same =
      Process({kInstructions, "--bin", bin_dir(), "--saved", path("saved"), "--within", "0.1", "--keep", path("kept")})
          .wait(60);
  EXPECT_EQ(same.code, 0) << same.output;
  EXPECT_TRUE(fs::exists(folder_ / "kept" / "broadcast-1K-started-2-1")) << same.output;
  const std::string cell = "allreduce 8 named 2 0";
  const Outcome dearer = compare(changed("less", cell, 0.97));
  EXPECT_EQ(dearer.code, 1) << dearer.output;
  EXPECT_TRUE(holds(dearer.output, "+3.09 %  too many")) << dearer.output;
  const Outcome cheaper = compare(changed("more", cell, 1.1));
  EXPECT_EQ(cheaper.code, 0) << cheaper.output;
  EXPECT_TRUE(holds(cheaper.output, "-9.09 %\n")) << cheaper.output;
  const Outcome missing = compare(changed("without", cell, 0));
  EXPECT_EQ(missing.code, 1) << missing.output;
  EXPECT_TRUE(holds(missing.output, "not saved")) << missing.output;
  // A place that cannot be written is told, and so is a saved file of another build.
  const std::string none = path("none") + "/file";
  const Outcome unsaved = Process({kInstructions, "--bin", bin_dir(), "--saved", none, "--save"}).wait(60);
  EXPECT_EQ(unsaved.code, 2) << unsaved.output;
  EXPECT_TRUE(holds(unsaved.output, "cannot write '" + none + "'")) << unsaved.output;
  const Outcome unkept =
      Process({kInstructions, "--bin", bin_dir(), "--saved", path("saved"), "--keep", path("saved") + "/kept"})
          .wait(60);
  EXPECT_EQ(unkept.code, 2) << unkept.output;
  EXPECT_TRUE(holds(unkept.output, "cannot make '")) << unkept.output;
  std::ofstream(path("other")) << "# built by a slide rule\n" << cell << " 1\n";
  const Outcome other = compare(path("other"));
  EXPECT_EQ(other.code, 3) << other.output;
  EXPECT_TRUE(holds(other.output, "built by a slide rule")) << other.output;
}

TEST_F(InstructionsTest, APathNamesFunctionsInTheOrderOfTheCall) {
  if (run({"which", "valgrind"}).code != 0) GTEST_SKIP() << "valgrind is not here (Debian package valgrind)";
  const Outcome outcome = Process({kInstructions, "--bin", bin_dir(), "--path"}).wait(60);
  if (outcome.code == 3) GTEST_SKIP() << outcome.output;
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::size_t place = 0;
  // "run_inside" and "end_all" are inlined.
  for (const std::string name : {"  torii_run  api/c/", "::run_inside  api/running/", "::advance  runtime/execution/",
                                 "fold  reduce_kernels/", "::end_all  api/running/"}) {
    place = outcome.output.find(name, place);
    ASSERT_NE(place, std::string::npos) << name << "\n" << outcome.output;
  }
  EXPECT_TRUE(holds(outcome.output, " functions in ")) << outcome.output;
  EXPECT_FALSE(holds(outcome.output, "std::")) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
