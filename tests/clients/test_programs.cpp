// SPDX-License-Identifier: Apache-2.0
// Runs MPI programs of others with coll/torii under mpirun, programs for people, and the Debian package.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/clients/mpi_job.hpp"
#include "tests/support/places.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

TEST(Programs, SideBySideRunsToItsEnd) {
  const Outcome outcome = mpirun({2, {}, {helper("mpi_side_by_side"), "4"}});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const std::string name : {"allreduce", "reduce", "bcast", "bcast_holes", "allgather", "reduce_scatter_block",
                                 "alltoall", "dup", "dup and first use"}) {
    EXPECT_NE(outcome.output.find("\n" + name + " "), std::string::npos) << outcome.output;
  }
  const Outcome refused = mpirun({2, {}, {helper("mpi_side_by_side"), "3"}});
  EXPECT_EQ(refused.code, 2) << refused.output;
}

TEST(Clients, Mpi4py) {
  if (run({"/usr/bin/python3", "-c", "import mpi4py"}).code != 0) GTEST_SKIP() << "python3-mpi4py is not installed";
  for (const int ranks : is_full() ? std::vector<int>{2, 3, 4, 7} : std::vector<int>{3}) {
    Job job = {ranks, {"--mca", "coll_torii_verbose", "1"}, {"/usr/bin/python3", source("all_collectives.py")}};
    const Outcome outcome = mpirun(job);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("ok\n"), std::string::npos) << outcome.output;
    auto taken = counts(outcome.output, "taken");
    taken["alltoallw"] = 1;  // mpi4py calls it with MPI types only, which the script does not make
    for (const std::string& operation : kOperations) EXPECT_GT(taken[operation], 0) << operation;
  }
}

/// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "torii_test_clients_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The lines of hpcc's report that say whether a residue passed, without times and the residues themselves, whose last
/// bits depend on the order of sums.
Words hpcc_verdicts(int ranks, bool with_torii, std::string& output) {
  const Folder folder;
  std::ifstream example("/usr/share/doc/hpcc/examples/_hpccinf.txt");
  std::ofstream input(folder.path() / "hpccinf.txt");
  for (std::string line; std::getline(example, line);) {
    if (line.ends_with("Ps")) line = ranks == 4 ? "2 Ps" : "1 Ps";
    if (line.ends_with("Qs")) line = "2 Qs";
    if (line.ends_with(" Ns")) line = "600 Ns";
    input << line << '\n';
  }
  input.close();
  const Outcome outcome =
      mpirun({ranks, {"--wdir", folder.path(), "--mca", "coll_torii_verbose", "1"}, {"hpcc"}, {}, with_torii, 1200});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  output = outcome.output;
  Words verdicts;
  std::ifstream report(folder.path() / "hpccoutf.txt");
  const std::regex verdict("PASSED|FAILED|residual checks|Success=|Errors=");
  for (std::string line; std::getline(report, line);) {
    if (!std::regex_search(line, verdict)) continue;
    const std::size_t passed = line.find("PASSED");
    verdicts.push_back(passed != std::string::npos ? "PASSED" : line);
  }
  return verdicts;
}

TEST(Clients, HpccHasTheSameVerdicts) {
  if (!is_full()) GTEST_SKIP() << "longer than the short test has time for; TORII_TEST_FULL runs it";
  if (!std::filesystem::exists("/usr/bin/hpcc")) GTEST_SKIP() << "hpcc is not installed";
  for (const int ranks : {2, 4}) {
    std::string with, without;
    const Words got = hpcc_verdicts(ranks, true, with);
    const Words wanted = hpcc_verdicts(ranks, false, without);
    EXPECT_EQ(got, wanted) << ranks << " ranks";
    EXPECT_GT(std::count(got.begin(), got.end(), "PASSED"), 5) << ranks << " ranks";
    auto taken = counts(with, "taken");
    for (const std::string operation : {"allgather", "allreduce", "barrier", "bcast", "reduce"}) {
      EXPECT_GT(taken[operation], 0) << operation << " on " << ranks << " ranks";
    }
  }
}

/// The files below `root` without dpkg's own.
Words files_below(const std::filesystem::path& root) {
  Words files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string name = entry.path().lexically_relative(root);
    if (!name.starts_with("var/lib/dpkg") && !entry.is_directory()) files.push_back(name);
  }
  return files;
}

TEST(Package, InstallsWorksAndGoes) {
  if (!is_full()) GTEST_SKIP() << "longer than the short test has time for; TORII_TEST_FULL runs it";
  if (run({"dpkg-shlibdeps", "--version"}).code != 0) GTEST_SKIP() << "dpkg-dev is not installed";
  const Folder folder;
  const std::filesystem::path root = folder.path() / "root";
  const Outcome made = Process({"cpack", "-G", "DEB", "--config", build_dir() + "/CPackConfig.cmake", "-B",
                                folder.path(), "-D", "CPACK_COMPONENTS_ALL=openmpi"})
                           .wait(1200);
  ASSERT_EQ(made.code, 0) << made.output;
  std::string package;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".deb") package = entry.path();
  }
  ASSERT_NE(package, "") << made.output;
  for (const char* const name : {"info", "updates"}) std::filesystem::create_directories(root / "var/lib/dpkg" / name);
  for (const char* const name : {"status", "available"}) std::ofstream(root / "var/lib/dpkg" / name);
  // The package's dependencies are there, but the scratch root's dpkg does not know it.
  const Words dpkg = {"dpkg", "--root=" + root.string(), "--force-depends", "--force-not-root"};
  const auto call = [&](const Words& arguments) {
    Words words = dpkg;
    add(words, arguments);
    return Process(words, {}).wait(60);
  };
  const Outcome installed = call({"--install", package});
  ASSERT_EQ(installed.code, 0) << installed.output;
  const Words files = files_below(root);
  const auto link = std::find_if(files.begin(), files.end(),
                                 [](const std::string& name) { return name.ends_with("openmpi3/mca_coll_torii.so"); });
  ASSERT_NE(link, files.end()) << installed.output;
  const std::string components = (root / *link).parent_path();
  const Words environment = {"OMPI_MCA_mca_base_component_path=" + components + ":SYSTEM_DEFAULT"};
  const Outcome shown = Process({"ompi_info", "--param", "coll", "torii", "--level", "9"}, environment).wait();
  EXPECT_NE(shown.output.find("\"coll_torii_enable\""), std::string::npos) << shown.output;
  Job job = {2, {"--mca", "coll_torii_verbose", "1"}, {helper("mpi_semantics"), "messages_move", "idup"}};
  job.environment = environment;
  const Outcome ran = mpirun(job);
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_GT(counts(ran.output, "taken")["allreduce"], 0) << ran.output;
  const Outcome removed = call({"--purge", "torii-openmpi"});
  EXPECT_EQ(removed.code, 0) << removed.output;
  EXPECT_EQ(files_below(root), Words());
}

}  // namespace
}  // namespace torii::tests
