// SPDX-License-Identifier: Apache-2.0
// torii-info: what it prints, that its JSON parses and says the same, bad command lines, and limits of the machine that
// doctor must see.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/processes/torii_info_runs.hpp"
#include "tests/support/places.hpp"
#include "tools/torii-info/tune.hpp"

namespace torii::tests {
namespace {

/// Under limits that a shell sets first.
Outcome limited(const std::string& limits, const std::string& arguments) {
  return run({"sh", "-c", limits + " " + kToriiInfo + " " + arguments});
}

const json& named(const json& list, std::string_view name) {
  for (const json& one : list) {
    if (one.at("name") == name) return one;
  }
  throw std::out_of_range(std::string(name));
}

TEST(ToriiInfo, HelpAndVersion) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{},
                                                  {"plan"},
                                                  {"tune"},
                                                  {"measure"},
                                                  {"doctor"},
                                                  {"phases"},
                                                  {"bits"},
                                                  {"constants"},
                                                  {"costs"}}) {
    std::vector<std::string> line = command;
    line.push_back("--help");
    const Outcome help = torii_info(line);
    EXPECT_EQ(help.code, 0);
    EXPECT_TRUE(holds(help.output, "Example:\n  torii-info ")) << help.output;
  }
  const Outcome version = torii_info({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.output.rfind("torii-info ", 0), 0u) << version.output;
}

TEST(ToriiInfo, BadCommandLinesEndWithTwoAndAMessageOfTheirOwn) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines{
      {{"bogus"}, "bogus"},
      {{"--bogus"}, "--bogus"},
      {{"plan"}, "collective is required"},
      {{"bits"}, "--leaves is missing; give a number of leaves, or a list such as 3,0,4"},
      {{"bits", "--leaves", "3,,4"}, "--leaves is '3,,4'; it must be a number from 1 to 65536, or a list"},
      {{"bits", "--leaves", "0"}, "--leaves is '0'"},
      {{"bits", "--leaves", "3,4", "--ranks", "3"}, "--leaves lists 2 ranks, but --ranks is 3"},
      {{"bits", "--leaves", "3", "--ranks", "0"}, "--ranks is 0; it must be from 1 to 65536"},
      {{"plan", "scan", "--leaves", "3,4"}, "--leaves has no meaning for scan"},
      {{"costs"}, "there is no program to run; put it and its arguments behind --"},
      {{"costs", "--", "no-such-program"}, "cannot start no-such-program: No such file or directory"},
      {{"plan", "gossip"}, "'gossip' is no collective; it must be one of barrier broadcast"},
      {{"plan", "allreduce", "--topology", "torus:4x"}, "an extent is missing"},
      {{"plan", "allreduce", "--topology", "torus:0x2"}, "the extent 0"},
      {{"plan", "allreduce", "--topology", "torus:99999x99999x99999"}, "more than 1048576"},
      {{"plan", "allreduce", "--topology", "torus:4x4x4", "--ranks", "65"}, "64 places, but there are 65 ranks"},
      {{"plan", "allreduce", "--topology", "torus:2", "--rank-map", "list:0,0"}, "entry 1 is 0, the place of rank 0"},
      {{"plan", "allreduce", "--topology", "torus:2", "--rank-map", "no-map"},
       "cannot read 'no-map': No such file or directory"},
      {{"plan", "allreduce", "--topology", "cube"}, "TORII_TOPOLOGY is 'cube'"},
      {{"plan", "allreduce", "--ranks", "0"}, "a node of 0 ranks"},
      {{"plan", "allreduce", "--ranks", "x"}, "--ranks"},
      {{"plan", "allreduce", "--bytes", "1Q"}, "--bytes is '1Q'"},
      {{"plan", "allreduce", "--bytes", "99999999999G"}, "--bytes is '99999999999G'"},
      {{"plan", "allreduce", "--type", "f12"}, "--type is 'f12'"},
      {{"plan", "allreduce", "--root", "1"}, "--root has no meaning for allreduce"},
      {{"plan", "reduce", "--root", "4"}, "--root is 4; it must be from 0 to 3"},
      {{"plan", "allreduce", "--rank", "4"}, "--rank is 4; it must be from 0 to 3"},
      {{"plan", "barrier", "--bytes", "8"}, "--bytes has no meaning for a barrier"},
      {{"plan", "barrier", "--type", "f32"}, "--type has no meaning for a barrier"},
      {{"plan", "allreduce", "--segment", "7"}, "TORII_SEGMENT is '7' (option)"},
      {{"plan", "allreduce", "--algorithm", "magic"}, "TORII_ALGORITHM is 'magic' (option)"},
      {{"plan", "allreduce", "--ranks", "257", "--svg", "never.svg"}, "at most 256 are drawn"},
      {{"plan", "allreduce", "--json", "-", "--svg", "-"}, "both want stdout"},
      {{"plan", "allreduce", "--json", "no/such/folder/file"}, "cannot write 'no/such/folder/file'"},
      {{"tune", "--tune-file", "no-such-file"}, "cannot read 'no-such-file'"},
      {{"tune", "--tune-file", "/dev/zero"}, "cannot read '/dev/zero': it is no regular file"},
      {{"tune", "--tune-file", ""}, "--tune-file: its value is empty"},
      {{"doctor", "--ranks", "0"}, "--ranks"}};
  std::set<std::string> messages;
  for (const auto& [line, message] : lines) {
    const Outcome outcome = torii_info(line);
    EXPECT_EQ(outcome.code, 2) << message << ": " << outcome.output;
    EXPECT_TRUE(holds(outcome.output, message)) << message << ": " << outcome.output;
    EXPECT_TRUE(outcome.output.starts_with("torii-info: ")) << outcome.output;
    messages.insert(outcome.output);
  }
  EXPECT_EQ(messages.size(), lines.size());
  EXPECT_FALSE(std::filesystem::exists("never.svg"));
  const Outcome setting = torii_info({}, {"TORII_ENGINES=99"});
  EXPECT_EQ(setting.code, 2);
  EXPECT_TRUE(holds(setting.output, "TORII_ENGINES is '99' (environment)")) << setting.output;
}

TEST(ToriiInfo, WhatStdoutCannotTakeIsNoSuccess) {
  for (const std::string command : {"", " plan allreduce", " tune", " phases"}) {
    const Outcome outcome = run({"sh", "-c", bin_dir() + "/torii-info" + command + " >/dev/full"});
    EXPECT_EQ(outcome.code, 2) << command << ": " << outcome.output;
    EXPECT_TRUE(holds(outcome.output, "torii-info: cannot write ")) << command << ": " << outcome.output;
  }
}

TEST(ToriiInfo, WhatIsNotPossibleEndsWithThreeAndTheReason) {
  const Outcome order = torii_info({"plan", "allreduce", "--algorithm", "trinaryx3", "--determinism", "canonical"});
  EXPECT_EQ(order.code, 3);
  EXPECT_TRUE(holds(order.output, "trinaryx3 cannot serve this call: ") && holds(order.output, "binomial"))
      << order.output;
  EXPECT_EQ(torii_info({"plan", "broadcast", "--topology", "torus:3x3", "--algorithm", "scheduled"}).code, 3);
}

#ifdef TORII_TEST_LIBFABRIC
constexpr const char* kLibfabric = "libfabric      works: two processes";
#else
constexpr const char* kLibfabric = "libfabric      no: ";
#endif

#ifdef TORII_TEST_UCX
constexpr bool kUcxWorks = true;
#else
constexpr bool kUcxWorks = false;
#endif

TEST(ToriiInfo, OverviewAsText) {
  const Outcome outcome = torii_info({}, {"TORII_ENGINE=3", "TORII_WINDOW=2", "TORII_JOB_TOKEN=hidden"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* part :
       {"algorithms  trinaryx3 ", "shared_memory  works: two processes", kLibfabric, "reference (8-byte",
        "TORII_WINDOW       2 ", " environment ", "TORII_ENGINE is not a setting; the nearest one is TORII_ENGINES",
        ": CPUs ", "waiting ", "rails ", "memory      NUMA node", "(set)"}) {
    EXPECT_TRUE(holds(outcome.output, part)) << part << " in " << outcome.output;
  }
  EXPECT_FALSE(holds(outcome.output, "hidden")) << "a secret is not printed";
}

TEST(ToriiInfo, OverviewAsJson) {
  const json all = json_of({}, {"TORII_ENGINES=2", "TORII_FOO=\xff"});
  EXPECT_TRUE(named(all.at("transports"), "shared_memory").at("works").get<bool>());
  const json& ucx = named(all.at("transports"), "ucx");
  EXPECT_EQ(ucx.at("works").get<bool>(), kUcxWorks) << ucx;
  EXPECT_TRUE(kUcxWorks || holds(ucx.at("reason"), "ucx")) << ucx;
  EXPECT_EQ(all.at("engines"), 2);
  const json& engines = named(all.at("settings"), "TORII_ENGINES");
  EXPECT_EQ(engines.at("value"), "2");
  EXPECT_EQ(engines.at("default"), "4");
  EXPECT_EQ(engines.at("origin"), "environment");
  EXPECT_EQ(named(all.at("settings"), "TORII_ISA").at("origin"), "default");
  EXPECT_EQ(all.at("isas").front().at("name"), "reference");
  EXPECT_EQ(all.at("isas").back().at("name"), all.at("isa_best"));
  EXPECT_GE(all.at("cpus").at("all"), all.at("cpus").at("allowed"));
  EXPECT_EQ(all.at("warnings").size(), 1u);
}

TEST(ToriiInfo, OverviewNamesFilesWithoutWhichNoJobStarts) {
  for (const std::string variable : {"TORII_TUNE_FILE=", "TORII_RANK_MAP=", "TORII_TOPOLOGY=tree:"}) {
    const json warnings = json_of({}, {variable + "no_such.file"}).at("warnings");
    ASSERT_EQ(warnings.size(), 1u) << variable;
    const std::string warning = warnings[0];
    EXPECT_TRUE(holds(warning, "no job can start with " + variable.substr(0, variable.find('=')))) << warning;
    EXPECT_TRUE(holds(warning, "no_such.file")) << warning;
  }
  const Outcome text = torii_info({}, {"TORII_TUNE_FILE=no_such.file"});
  EXPECT_TRUE(holds(text.output, "no job can start with TORII_TUNE_FILE: ")) << text.output;
  EXPECT_TRUE(holds(text.output, "ports of rank 0; engines ignore it")) << text.output;
}

TEST(ToriiInfo, OverviewDrawsDevicesAndMemoriesOfTheMachine) {
  const std::filesystem::path source = source_dir();
  const std::string machine = source / "tests/runtime/devices/machines/two_sides.xml";
  const Outcome text = torii_info({}, {"HWLOC_XMLFILE=" + machine});
  EXPECT_EQ(text.code, 0) << text.output;
  for (const char* part : {"mlx5_0: InfiniBand or its like, ", "NUMA node 1, CPUs 2-3",
                           "NUMA node 1: 8.0 GiB, CPUs 2-3", "2 x package with its own memory"}) {
    EXPECT_TRUE(holds(text.output, part)) << part << " in " << text.output;
  }
  const json all = json_of({}, {"HWLOC_XMLFILE=" + machine, "TORII_ENGINES=3", "TORII_INTERFACE=lo"});
  EXPECT_EQ(all.at("devices").size(), 3u);
  EXPECT_EQ(named(all.at("devices"), "mlx5_1").at("cpus"), "2-3");
  EXPECT_EQ(all.at("memories").size(), 2u);
  ASSERT_EQ(all.at("rails").at("ip").size(), 3u);
  EXPECT_EQ(all.at("rails").at("ip")[2].at("device"), "lo");
  // The list says what auto would choose for the interfaces of a job.
  for (const auto& [transport, provider] : {std::pair("libfabric", "tcp;ofi_rxm"), std::pair("ucx", "tcp")}) {
    const json& providers = all.at("providers").at(transport);
    if (!providers.is_array()) continue;  // this build has no such transport
    EXPECT_EQ(named(providers, provider).at("devices"), json::array({"lo"})) << providers;
  }
  EXPECT_TRUE(all.at("left_out").is_array());
}

TEST(ToriiInfo, ProbeSeesThatSharedMemoryDoesNotWork) {
  // Too little address space for two arenas of the least size.
  const Outcome outcome = limited("ulimit -v 500000;", "--json -");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const json all = json::parse(outcome.output);
  const json& transports = all.at("transports");
  const json& shared_memory = named(transports, "shared_memory");
  EXPECT_FALSE(shared_memory.at("works").get<bool>()) << shared_memory;
  EXPECT_TRUE(holds(shared_memory.at("reason"), "ulimit -v")) << shared_memory;
  // A transport that does not work has no provider that is usable and chosen.
  for (const auto& [transport, providers] : all.at("providers").items()) {
    if (!providers.is_array() || named(transports, transport).at("works").get<bool>()) continue;
    for (const json& one : providers) {
      EXPECT_FALSE(one.at("chosen").get<bool>() && one.at("usable").get<bool>()) << transport << ": " << one;
    }
  }
}

TEST(ToriiInfo, DoctorSeesLimits) {
  const json fine = json_of({"doctor", "--ranks", "1"});
  EXPECT_TRUE(fine.at("possible").get<bool>());
  for (const char* check :
       {"memfd_create", "MADV_WIPEONFORK", "pidfd_open", "CPUs", "/dev/shm", "CPU quota", "cross-memory", "overcommit",
        "memlock", "userfaultfd", "memory placement", "interfaces", "ports", "devices", "libfabric", "PMIx"}) {
    EXPECT_FALSE(named(fine.at("checks"), check).at("found").get<std::string>().empty()) << check;
  }
  EXPECT_EQ(named(fine.at("checks"), "address space").at("state"), "ok");

  const json nowhere = json_of({"doctor"}, {"TORII_INTERFACE=no_such_name"});
  EXPECT_EQ(named(nowhere.at("checks"), "interfaces").at("state"), "limit");
  EXPECT_TRUE(holds(named(nowhere.at("checks"), "ports").at("found"), "not tried")) << nowhere;
  const json crowd = json_of({"doctor", "--ranks", "4096"}, {"TORII_ARENA=256M"});
  EXPECT_EQ(named(crowd.at("checks"), "CPUs").at("state"), "limit");
  const Outcome locked = limited("ulimit -l 64;", "doctor --ranks 1");
  EXPECT_TRUE(holds(locked.output, "memlock          limit    64 KiB")) << locked.output;
  EXPECT_TRUE(holds(locked.output, "to lift it: ulimit -l unlimited")) << locked.output;
  const Outcome halved = limited("ulimit -v 9000000;", "doctor --ranks 2");
  EXPECT_EQ(halved.code, 0);
  EXPECT_TRUE(holds(halved.output, "address space    limit    2 arenas of 4096 MiB")) << halved.output;
  const Outcome blocked = limited("ulimit -v 600000;", "doctor --ranks 8");
  EXPECT_EQ(blocked.code, 3);
  EXPECT_TRUE(holds(blocked.output, "address space    blocked")) << blocked.output;
  EXPECT_TRUE(holds(blocked.output, "shared_memory cannot work here")) << blocked.output;
}

TEST(ToriiInfo, TunePrintsTheTableInForce) {
  const json built_in = json_of({"tune"});
  EXPECT_EQ(built_in.at("origin"), "built-in");
  ASSERT_EQ(built_in.at("rows").size(), TuneTable::built_in().rows().size());
  EXPECT_EQ(built_in.at("rows")[0].at("algorithm"), TuneTable::built_in().rows()[0].algorithm);
  // What is printed can be read back.
  const TuneTable again = TuneTable::parse(built_in.dump(), "its own print");
  ASSERT_EQ(again.rows().size(), built_in.at("rows").size());
  for (std::size_t row = 0; row < again.rows().size(); ++row) {
    EXPECT_EQ(again.rows()[row].is_switch, TuneTable::built_in().rows()[row].is_switch) << row;
    EXPECT_EQ(again.rows()[row].topology, TuneTable::built_in().rows()[row].topology) << row;
    EXPECT_EQ(again.rows()[row].tuning, TuneTable::built_in().rows()[row].tuning) << row;
  }

  const std::string path = testing::TempDir() + "torii_test_tune.json";
  std::ofstream(path) << R"({"version": 1, "rows": [{"collective": "reduce", "ranks": [2, 9], "bytes_max": 4096,
    "algorithm": "binomial", "segment": 128, "slots": 3, "window": 2}]})";
  const Outcome mine = torii_info({"tune", "--tune-file", path});
  EXPECT_EQ(mine.code, 0);
  EXPECT_TRUE(holds(
      mine.output, "  0  any       reduce          2..9                       4K  binomial                 128     3 "))
      << mine.output;
  const json plan = json_of({"plan", "reduce", "--bytes", "4K"}, {"TORII_TUNE_FILE=" + path});
  EXPECT_EQ(plan.at("algorithm"), "binomial");
  EXPECT_EQ(plan.at("tuning").at("slots"), 3);
  EXPECT_TRUE(holds(plan.at("why"), "row 0 of " + path)) << plan.at("why");
  const json beyond = json_of({"plan", "reduce", "--bytes", "8K"}, {"TORII_TUNE_FILE=" + path});
  EXPECT_TRUE(holds(beyond.at("why"), "no row of " + path + " fits")) << beyond.at("why");
  std::filesystem::remove(path);
}

TEST(ToriiInfo, PhasesPrintsBothBoundsBesideFloyd) {
  const Outcome alltoall = torii_info({"phases", "--ranks", "3"});
  EXPECT_EQ(alltoall.code, 0) << alltoall.output;
  EXPECT_TRUE(holds(alltoall.output, "pairs   at least 3: 3 by potential (0 to 14.2647, 6 a phase), 2 by reach"))
      << alltoall.output;
  EXPECT_TRUE(holds(alltoall.output, "rounds  at least 2: 2 by potential (0 to 14.2647, 9 a phase), 2 by reach"))
      << alltoall.output;
  const Outcome transposed = torii_info({"phases", "--ranks", "64", "--of", "transpose:8192x8192", "--json", "-"});
  EXPECT_EQ(nlohmann::json::parse(transposed.output).at("pairs").at("least"), 6) << transposed.output;
  const Outcome rotated = torii_info({"phases", "--ranks", "4", "--of", "rotate:40+10"});
  EXPECT_TRUE(holds(rotated.output, "at least 1: 0 by potential")) << rotated.output;
  const Outcome shuffled = torii_info({"phases", "--ranks", "16", "--of", "shuffle:16000+1"});
  EXPECT_TRUE(holds(shuffled.output, "at least 4: 4 by potential")) << shuffled.output;
  for (const std::string of : {"transpose:8", "transpose:0x4", "transpose:4x", "rotate:0+1", "shuffle:5", "other"}) {
    const Outcome refused = torii_info({"phases", "--of", of});
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_TRUE(holds(refused.output, "--of is '" + of + "'; it must be alltoall, transpose:ROWSxCOLUMNS"))
        << refused.output;
  }
  const Outcome ranks = torii_info({"phases", "--ranks", "0"});
  EXPECT_EQ(ranks.code, 2);
  EXPECT_TRUE(holds(ranks.output, "--ranks is 0; it must be from 1 to 4096")) << ranks.output;
}

TEST(ToriiInfo, ConstantsAsTextAndAsJson) {
  const Outcome outcome = torii_info({"constants"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* part : {"waiting.polls_shared ", "\n\nstores.hot_bytes ", " 1.5e-06 s ", " origin: a guess\n"}) {
    EXPECT_TRUE(holds(outcome.output, part)) << part << " in " << outcome.output;
  }
  const json polls = named(json_of({"constants"}).at("constants"), "waiting.polls_shared");
  EXPECT_EQ(polls.at("value"), 5);
  EXPECT_TRUE(holds(polls.at("origin"), "perf/results/2026-11-24-spins-shared.txt")) << polls;
}

TEST(ToriiInfo, BitsPrintsTheExpressionAndItsParts) {
  const Outcome bits = torii_info({"bits", "--leaves", "3,3"});
  EXPECT_EQ(bits.code, 0) << bits.output;
  for (const char* line : {"leaves      6 on 2 ranks\n", "expression  (((0 1) (2 3)) (4 5))\n",
                           "rank 0      leaves 0 to 2; operands (0 1), 2\n",
                           "rank 1      leaves 3 to 5; operands 3, (4 5)\n", "with 4 operands\n"}) {
    EXPECT_TRUE(holds(bits.output, line)) << line << bits.output;
  }
  const Outcome dealt = torii_info({"bits", "--leaves", "4", "--ranks", "3", "--json", "-"});
  const json facts = json::parse(dealt.output);
  EXPECT_EQ(facts.at("expression"), "((0 1) (2 3))");
  EXPECT_EQ(facts.at("plan"), "leaves");
  EXPECT_EQ(facts.at("ranks").at(0).at("count"), 2);
  EXPECT_EQ(facts.at("ranks").at(2).at("operands").at(0).at("expression"), "3");
  const Outcome aligned = torii_info({"bits", "--leaves", "8", "--ranks", "4", "--json", "-"});
  EXPECT_EQ(json::parse(aligned.output).at("plan"), "canonical");
}

TEST(ToriiInfo, CostsAreSummedOverRanks) {
  const std::string program = bin_dir() + "/torii-run";
  const Outcome run = torii_info({"costs", "--", program, "-n", "2", "--", kToriiInfo, "measure"});
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_TRUE(holds(run.output, "2 contexts, each counted at its end:\n")) << run.output;
  EXPECT_TRUE(holds(run.output, "\nplans installed ")) << run.output;
  EXPECT_FALSE(holds(run.output, "torii info: rank ")) << run.output;
}

TEST(ToriiInfo, CostsPassesOnWhatTheProgramPrints) {
  const std::string line =
      "torii info: rank 3 at its end: call plans 5, plans installed 9, bytes of team memory assigned "
      "for the first time 64, cold messages 1, sleeps 4, hops ";
  const Outcome run = torii_info({"costs", "--json", "-", "--", "sh", "-c",
                                  "echo '[1] " + line + "7' >&2; echo '" + line + "2' >&2; echo '" + line +
                                      "' >&2; echo $TORII_LOG; echo other >&2; exit 7"});
  EXPECT_EQ(run.code, 7) << run.output;
  EXPECT_TRUE(holds(run.output, "info\n")) << run.output;
  EXPECT_TRUE(holds(run.output, "other\n")) << run.output;
  EXPECT_TRUE(holds(run.output, line + "\n")) << "half a line is none" << run.output;
  EXPECT_TRUE(holds(run.output, R"({"ranks":2,)")) << run.output;
  EXPECT_TRUE(holds(run.output, R"("hops":{"least":2,"most":7,"all":9},"exit_code":7})")) << run.output;
  const Outcome words = torii_info({"costs", "--", "printf", "<%s>", "", "[a, b]", "--", "nan"});
  EXPECT_EQ(words.code, 0) << words.output;
  EXPECT_TRUE(holds(words.output, "<><[a, b]><--><nan>")) << words.output;
  const Outcome left = torii_info({"costs", "--", "sh", "-c", "sleep 20 & echo last >&2"});
  EXPECT_EQ(left.code, 0) << left.output;
  EXPECT_TRUE(holds(left.output, "last\n")) << left.output;
  const Outcome unwritten = torii_info({"costs", "--json", "no/such/folder/file", "--", "echo", "ran"});
  EXPECT_EQ(unwritten.code, 2) << unwritten.output;
  EXPECT_FALSE(holds(unwritten.output, "ran\n")) << unwritten.output;
  const Outcome killed = torii_info({"costs", "--", "sh", "-c", "kill -9 $$"}, {"TORII_LOG=debug"});
  EXPECT_EQ(killed.code, 137) << killed.output;
  EXPECT_TRUE(holds(killed.output, "no rank told its figures")) << killed.output;
}

TEST(ToriiInfo, PlanOverLeavesIsProved) {
  const Outcome plan = torii_info({"plan", "allreduce", "--leaves", "3,3", "--algorithm", "binomial"});
  EXPECT_EQ(plan.code, 0) << plan.output;
  EXPECT_TRUE(holds(plan.output, "own 1")) << plan.output;
  EXPECT_TRUE(holds(plan.output, "(((0 1) (2 3)) (4 5))")) << plan.output;
  EXPECT_TRUE(holds(plan.output, "a number is that leaf's vector")) << plan.output;
  const Outcome refused = torii_info({"plan", "allreduce", "--leaves", "3,3", "--algorithm", "ring"});
  EXPECT_EQ(refused.code, 3) << refused.output;
}

}  // namespace
}  // namespace torii::tests
