// SPDX-License-Identifier: Apache-2.0
// Runs MPI programs with coll/torii under mpirun, and looks at their verdicts and at the component's counters.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

using Words = std::vector<std::string>;

bool is_full() { return std::getenv("TORII_TEST_FULL") != nullptr; }

std::string program(const std::string& name) { return TORII_TEST_PROGRAMS "/" + name; }
std::string source(const std::string& name) {
  return std::filesystem::path(TORII_TEST_SOURCE_DIR) / "tests/clients" / name;
}

struct Job {
  int ranks = 2;
  Words options;  ///< of mpirun, for all ranks
  Words command;
  Words environment = {};
  bool with_torii = true;
  double deadline_s = 60;
};

void add(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

Outcome mpirun(const Job& job) {
  Words words = {TORII_TEST_MPIRUN, "--allow-run-as-root", "--oversubscribe"};
  if (job.with_torii) add(words, {"--mca", "coll_torii_enable", "1"});
  add(words, job.options);
  add(words, {"-n", std::to_string(job.ranks)});
  add(words, job.command);
  Words environment = {"OMPI_MCA_mca_base_component_path=" TORII_TEST_COMPONENTS ":SYSTEM_DEFAULT"};
  add(environment, job.environment);  // the last of a name holds
  return Process(words, environment).wait(job.deadline_s);
}

/// The least count of any rank, by operation ("ibcast"), of what the component prints at its end.
std::map<std::string, long> counts(const std::string& output, const std::string& what) {
  std::map<std::string, long> least;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("coll/torii: " + what + " ");
    if (at == std::string::npos) continue;
    std::istringstream fields(line.substr(at + 12 + what.size()));
    for (std::string field; fields >> field;) {
      const std::size_t equal = field.find('=');
      const long count = std::strtol(field.c_str() + equal + 1, nullptr, 10);
      const auto [place, is_new] = least.emplace(field.substr(0, equal), count);
      if (!is_new) place->second = std::min(place->second, count);
    }
  }
  return least;
}

/// Those that torii runs in every form.
const char* const kOperations[] = {"allgather",
                                   "allgatherv",
                                   "allreduce",
                                   "alltoall",
                                   "alltoallv",
                                   "alltoallw",
                                   "barrier",
                                   "bcast",
                                   "exscan",
                                   "gather",
                                   "gatherv",
                                   "reduce",
                                   "scan",
                                   "scatter",
                                   "scatterv",
                                   "reduce_scatter",
                                   "reduce_scatter_block"};

Job fuzz(int ranks, int cases, int seed) {
  Job job;
  job.ranks = ranks;
  // tuned chooses by sizes of types that differ between ranks, and op/avx adds small integers with saturation.
  job.options = {"--mca", "coll", "^tuned", "--mca", "op", "^avx", "--mca", "coll_torii_verbose", "1"};
  job.command = {program("differential_fuzz"), std::to_string(cases), std::to_string(seed)};
  job.deadline_s = is_full() ? 1500 : 60;
  return job;
}

TEST(Fuzz, NoByteDiffersFromOpenMpi) {
  for (const int ranks : is_full() ? std::vector<int>{2, 3, 4, 7} : std::vector<int>{2, 3}) {
    const int cases = is_full() ? 20000 : ranks == 2 ? 500 : 150;
    const Outcome outcome = mpirun(fuzz(ranks, cases, 100 + ranks));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("no difference"), std::string::npos) << outcome.output;
    if (cases < 500) continue;  // too few for every operation to be drawn
    auto taken = counts(outcome.output, "taken");
    for (const std::string operation : kOperations) {
      for (const std::string& form : {operation, "i" + operation, operation + "_init"}) {
        EXPECT_GT(taken[form], 0) << form << " on " << ranks << " ranks: " << outcome.output;
      }
    }
  }
}

TEST(Fuzz, CanonicalAndForcedAlgorithmsToo) {
  if (!is_full()) GTEST_SKIP() << "longer than the short test has time for; TORII_TEST_FULL runs it";
  for (const std::string algorithm : {"ring", "binomial", "recursive_doubling", "rabenseifner", "node"}) {
    Job job = fuzz(4, 2000, 7);
    add(job.options, {"--mca", "coll_torii_algorithm", algorithm});
    const Outcome outcome = mpirun(job);
    EXPECT_EQ(outcome.code, 0) << algorithm << ": " << outcome.output;
  }
  Job job = fuzz(4, 2000, 8);
  add(job.options, {"--mca", "coll_torii_determinism", "canonical"});
  const Outcome outcome = mpirun(job);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(Fuzz, OverLibfabricToo) {
  if (!is_full()) GTEST_SKIP() << "longer than the short test has time for; TORII_TEST_FULL runs it";
  if (!std::filesystem::exists(TORII_TEST_COMPONENTS "/../libtorii_libfabric.so")) {
    GTEST_SKIP() << "this build has no transport libfabric";
  }
  // Two nodes played on this machine, of one rank and of two.
  Job job = fuzz(1, 2000, 9);
  const Words command = job.command;
  job.options.insert(job.options.end(), {"-x", "TORII_NODE=a"});
  add(job.command, {":", "-n", "2", "-x", "TORII_NODE=b"});
  add(job.command, command);
  const Outcome outcome = mpirun(job);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_GT(counts(outcome.output, "taken")["allreduce"], 0) << outcome.output;
}

TEST(Semantics, GroupsRequestsAndThreads) {
  Words cases = {"absolute_addresses", "attributes", "derived_broadcasts",      "empty_calls", "idup", "messages_move",
                 "other_groups",       "persistent", "requests_outlive_groups", "threads",     "spawn"};
  if (is_full()) add(cases, {"far_places", "many_groups", "many_persistent"});
  for (const int ranks : is_full() ? std::vector<int>{2, 3, 4, 7} : std::vector<int>{2}) {
    Job job = {ranks, {}, {program("mpi_semantics")}};
    add(job.command, cases);
    job.deadline_s = is_full() ? 600 : 60;
    const Outcome outcome = mpirun(job);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    for (const std::string& one : cases) {
      EXPECT_NE(outcome.output.find(one + ": ok"), std::string::npos) << outcome.output;
    }
  }
}

TEST(Semantics, ARefusedCallLeavesNoRequest) {
  const Outcome outcome = mpirun({2, {}, {program("mpi_semantics"), "refused_calls"}});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("refused_calls: ok"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("is poisoned"), std::string::npos) << outcome.output;
}

/// One allocation of the component fails on one rank, each in turn (every third one in a short run): whoever runs the
/// operations, nobody waits for ever.
TEST(Component, OneAllocationFailsOnOneRank) {
  bool has_failed = true;
  const int step = is_full() ? 1 : 3;
  int number = 0;
  while (has_failed && !::testing::Test::HasFailure()) {
    Job job = {2, {}, {program("mpi_scarce")}};
    job.environment = {"LD_PRELOAD=" TORII_TEST_SCARCE_MALLOC, "TORII_TEST_FAILS_AT=" + std::to_string(number += step)};
    job.deadline_s = 20;
    const Outcome outcome = mpirun(job);
    SCOPED_TRACE("allocation " + std::to_string(number) + ": " + outcome.output);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.output.find("a result is wrong"), std::string::npos);
    has_failed = outcome.output.find("an allocation has failed") != std::string::npos;
  }
  EXPECT_GT(number, 8) << "no allocation has failed";
}

TEST(Component, IsOffUnlessEnabledAndGoneWhenExcluded) {
  const Job off = {2, {"--mca", "coll_torii_verbose", "1"}, {program("mpi_semantics"), "messages_move"}, {}, false};
  const Job gone = {2, {"--mca", "coll", "^torii", "--mca", "coll_torii_verbose", "1"}, off.command, {}, true};
  for (const Job& job : {off, gone}) {
    const Outcome outcome = mpirun(job);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(outcome.output.find("torii"), std::string::npos) << outcome.output;
  }
}

TEST(Component, RanksThatDifferLeaveItOut) {
  const std::string command = program("mpi_semantics");
  // The second application of the job has a parameter of its own.
  Words second = {"-n", "1", "-x", "OMPI_MCA_coll_torii_determinism=canonical", command, "messages_move"};
  Job job = {
      1, {"--mca", "coll_torii_verbose", "1", "--mca", "coll_torii_priority", "80"}, {command, "messages_move", ":"}};
  job.with_torii = false;
  job.environment = {"OMPI_MCA_coll_torii_enable=1"};
  add(job.command, second);
  const Outcome outcome = mpirun(job);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("has no coll/torii of the same version and parameters"), std::string::npos)
      << outcome.output;
  EXPECT_EQ(outcome.output.find("taken"), std::string::npos) << outcome.output;
}

TEST(Component, AFailedSetUpLeavesTheJobToOthers) {
  const Words command = {program("mpi_semantics"), "messages_move"};
  const Outcome bad_setting = mpirun({2, {"-x", "TORII_ENGINES=none"}, command});
  EXPECT_EQ(bad_setting.code, 0) << bad_setting.output;
  EXPECT_NE(bad_setting.output.find("left out of this job: no context (TORII_ENGINES is 'none'"), std::string::npos)
      << bad_setting.output;
  // Only one of the ranks fails: the other must not wait for it.
  Job uneven = {1, {"-x", "TORII_ENGINES=none"}, command};
  add(uneven.command, {":", "-n", "1", command[0], command[1]});
  const Outcome one_rank = mpirun(uneven);
  EXPECT_EQ(one_rank.code, 0) << one_rank.output;
  EXPECT_NE(one_rank.output.find("left out of this job: no context"), std::string::npos) << one_rank.output;
  const Outcome bad_name = mpirun({2, {"--mca", "coll_torii_algorithm", "fastest"}, command});
  EXPECT_EQ(bad_name.code, 0) << bad_name.output;
  EXPECT_NE(bad_name.output.find("is left to others: algorithm is 'fastest'; it must be one of"), std::string::npos)
      << bad_name.output;
}

TEST(Component, ShowsItsParameters) {
  const Outcome outcome = Process({"ompi_info", "--param", "coll", "torii", "--level", "9"},
                                  {"OMPI_MCA_mca_base_component_path=" TORII_TEST_COMPONENTS ":SYSTEM_DEFAULT"})
                              .wait();
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const std::string name : {"enable", "priority", "verbose", "algorithm", "determinism", "topology"}) {
    EXPECT_NE(outcome.output.find("\"coll_torii_" + name + "\""), std::string::npos) << outcome.output;
  }
}

TEST(Programs, SideBySideRunsToItsEnd) {
  const Outcome outcome = mpirun({2, {}, {program("mpi_side_by_side"), "4"}});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const std::string name : {"allreduce", "reduce", "bcast", "bcast_holes", "allgather", "reduce_scatter_block",
                                 "alltoall", "dup", "dup and first use"}) {
    EXPECT_NE(outcome.output.find("\n" + name + " "), std::string::npos) << outcome.output;
  }
  const Outcome refused = mpirun({2, {}, {program("mpi_side_by_side"), "3"}});
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
    for (const std::string operation : kOperations) EXPECT_GT(taken[operation], 0) << operation;
  }
}

/// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "torii_clients_XXXXXX").string();
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
  const Outcome made = Process({"cpack", "--config", TORII_TEST_BUILD "/CPackConfig.cmake", "-B", folder.path(), "-D",
                                "CPACK_COMPONENTS_ALL=openmpi"})
                           .wait(1200);
  ASSERT_EQ(made.code, 0) << made.output;
  std::string package;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".deb") package = entry.path();
  }
  ASSERT_NE(package, "") << made.output;
  for (const char* const name : {"info", "updates"}) std::filesystem::create_directories(root / "var/lib/dpkg" / name);
  for (const char* const name : {"status", "available"}) std::ofstream(root / "var/lib/dpkg" / name);
  // What the package depends on is there, but the scratch root's dpkg does not know it.
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
  Job job = {2, {"--mca", "coll_torii_verbose", "1"}, {program("mpi_semantics"), "messages_move", "idup"}};
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
