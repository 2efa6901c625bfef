// SPDX-License-Identifier: Apache-2.0
// A short run of every perf binary: every type and operation, 2 and 3 ranks, all flags that change how a call is made.
// The programs check their data themselves; here it is checked that they say so.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

using Json = nlohmann::json;

struct PerfRun {
  Outcome outcome;
  std::vector<Json> rows;
};

/// Runs with --json -, so that stdout and stderr hold JSON lines and the table.
PerfRun measured(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), bin_dir() + "/" + program);
  arguments.insert(arguments.end(), {"--json", "-", "-n", "3", "-w", "1"});
  PerfRun result{Process(arguments).wait(120), {}};
  std::istringstream lines(result.outcome.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind('{', 0) == 0) result.rows.push_back(Json::parse(line));
  }
  return result;
}

void expect_right(const PerfRun& run) {
  EXPECT_EQ(run.outcome.code, 0) << run.outcome.output;
  EXPECT_FALSE(run.rows.empty()) << run.outcome.output;
  EXPECT_NE(run.outcome.output.find("# data: OK"), std::string::npos) << run.outcome.output;
  for (const Json& row : run.rows) EXPECT_EQ(row.at("wrong"), 0) << row;
}

struct Program {
  const char* name;
  bool combines;
};
constexpr Program kPrograms[] = {{"all_reduce_perf", true},  {"reduce_perf", true},         {"broadcast_perf", false},
                                 {"all_gather_perf", false}, {"reduce_scatter_perf", true}, {"alltoall_perf", false},
                                 {"scatter_perf", false},    {"gather_perf", false},        {"scan_perf", true},
                                 {"exscan_perf", true}};

TEST(PerfSmoke, EveryTypeAndOperation) {
  for (const Program& program : kPrograms) {
    for (const char* ranks : {"2", "3"}) {
      std::vector<std::string> arguments = {"--ranks", ranks, "-b", "16", "-e", "16K", "-f", "1024", "-d", "all"};
      if (program.combines) arguments.insert(arguments.end(), {"-o", "all"});
      const PerfRun run = measured(program.name, arguments);
      expect_right(run);
      std::set<std::string> pairs;
      for (const Json& row : run.rows)
        pairs.insert(row.at("type").get<std::string>() + row.at("op").get<std::string>());
      // 8 integer types x 11, 6 real types x 5, 2 complex x 3, 5 pairs x 2, bool x 10; without averages for prefixes.
      const bool is_prefix = program.name == std::string("scan_perf") || program.name == std::string("exscan_perf");
      EXPECT_EQ(pairs.size(), !program.combines ? 22u : is_prefix ? 128u : 144u) << program.name;
    }
  }
}

TEST(PerfSmoke, InPlaceAllocatedAndLoop) {
  for (const Program& program : kPrograms) {
    for (const char* memory : {"malloc", "allocated", "adopted"}) {
      for (const char* timing : {"isolated", "loop"}) {
        std::vector<std::string> arguments = {"--ranks", "3",        "-b",   "4",        "-e",   "4M",        "-f",
                                              "64",      "--memory", memory, "--timing", timing, "--engines", "2"};
        if (program.name != std::string("broadcast_perf")) arguments.push_back("--in-place");
        const PerfRun run = measured(program.name, arguments);
        expect_right(run);
        for (const Json& row : run.rows) {
          EXPECT_EQ(row.at("memory"), memory);
          EXPECT_EQ(row.at("timing"), timing);
          EXPECT_EQ(row.at("engines"), 2);
        }
      }
    }
  }
}

TEST(PerfSmoke, CostsBesideCalls) {
  for (const char* ranks : {"1", "3"}) {
    const Outcome outcome =
        run({bin_dir() + "/costs_perf", "--ranks", ranks, "-n", "3", "--json", "-", "--set", "CHANNELS=1"});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::set<std::string> costs;
    std::istringstream lines(outcome.output);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind('{', 0) != 0) continue;
      const Json row = Json::parse(line);
      costs.insert(row.at("cost").get<std::string>());
      EXPECT_EQ(row.contains("least"), row.contains("least_is")) << line;
      EXPECT_GE(row.at("value"), 0) << line;
    }
    EXPECT_EQ(costs.size(), 8u) << outcome.output;
  }
}

TEST(PerfSmoke, Barrier) {
  for (const char* ranks : {"1", "2", "3"}) {
    const PerfRun run = measured("barrier_perf", {"--ranks", ranks});
    expect_right(run);
    ASSERT_EQ(run.rows.size(), 1u);
    EXPECT_EQ(run.rows[0].at("bytes"), 0);
  }
}

TEST(PerfSmoke, EveryRoot) {
  for (const char* program : {"reduce_perf", "broadcast_perf"}) {
    for (const char* root : {"0", "1", "2"}) expect_right(measured(program, {"--ranks", "3", "-e", "64K", "-r", root}));
  }
}

TEST(PerfSmoke, JsonHasAllKeys) {
  const PerfRun run = measured("all_reduce_perf", {"--ranks", "2", "-b", "4M", "-e", "4M", "--algorithm", "trinaryx3"});
  expect_right(run);
  ASSERT_EQ(run.rows.size(), 1u);
  const Json& row = run.rows[0];
  for (const char* key : {"collective",   "algorithm",     "transport",   "topology",   "ranks",      "engines",
                          "engine_bytes", "segment_bytes", "bytes",       "type",       "op",         "determinism",
                          "memory",       "in_place",      "isa",         "timing",     "iterations", "time_us_median",
                          "time_us_mad",  "time_us_p99",   "time_us_max", "algbw_GBps", "busbw_GBps", "wrong",
                          "hash",         "host",          "commit",      "version"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(row.at("algorithm"), "trinaryx3");
  EXPECT_EQ(row.at("bytes"), 4 << 20);
  EXPECT_EQ(row.at("iterations"), 15);
  EXPECT_EQ(row.at("hash").get<std::string>().size(), 16u);
  const double busbw = row.at("busbw_GBps"), algbw = row.at("algbw_GBps");
  EXPECT_NEAR(busbw, algbw, 1e-9) << "2 (P - 1) / P is 1 for two ranks";
}

/// With 4 engines and 4 MiB no engine carries less than 15 % of the bytes.
TEST(PerfSmoke, EnginesShareTheBytes) {
  const PerfRun run = measured("all_reduce_perf", {"--ranks", "2", "-b", "4M", "-e", "4M", "--algorithm", "trinaryx3",
                                                   "--engines", "4", "--memory", "allocated"});
  expect_right(run);
  ASSERT_EQ(run.rows.size(), 1u);
  const auto bytes = run.rows[0].at("engine_bytes").get<std::vector<int64_t>>();
  ASSERT_EQ(bytes.size(), 4u);
  int64_t all = 0;
  for (const int64_t share : bytes) all += share;
  EXPECT_GT(all, 0);
  for (const int64_t share : bytes) EXPECT_GE(static_cast<double>(share), 0.15 * static_cast<double>(all));
}

TEST(PerfSmoke, HashDependsOnSeedAndNotOnEnginesOrMemory) {
  auto hash = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--ranks", "3", "-b", "100000", "-e", "100000", "--algorithm", "trinaryx3", "--hash"});
    const PerfRun run = measured("all_reduce_perf", more);
    expect_right(run);
    return run.rows.empty() ? "" : run.rows[0].at("hash").get<std::string>();
  };
  const std::string first = hash({});
  EXPECT_EQ(hash({"--engines", "1", "--segment", "4K"}), first);
  EXPECT_EQ(hash({"--memory", "allocated", "--in-place"}), first);
  EXPECT_EQ(hash({"--memory", "adopted"}), first);
  EXPECT_EQ(hash({"--timing", "loop"}), first);
  EXPECT_NE(hash({"--seed", "2"}), first);
}

/// The leaves have the data of ranks, so as many leaves as ranks give the hash of a canonical call.
TEST(PerfSmoke, LeavesHaveOneHashOnAnyNumberOfRanks) {
  const auto hash = [](const char* ranks, std::vector<std::string> more) {
    more.insert(more.end(), {"--ranks", ranks, "-b", "10000", "-e", "10000", "-d", "f32,bf16", "--hash"});
    const PerfRun run = measured("all_reduce_perf", more);
    expect_right(run);
    std::string hashes;
    for (const Json& row : run.rows) hashes += row.at("hash").get<std::string>() + ' ';
    return hashes;
  };
  const std::string first = hash("4", {"--determinism", "canonical"});
  EXPECT_EQ(first.size(), 34u);
  for (const char* ranks : {"1", "2", "3", "4", "5"}) EXPECT_EQ(hash(ranks, {"--leaves", "4"}), first) << ranks;
  EXPECT_NE(hash("3", {"--leaves", "5"}), first);
}

TEST(PerfSmoke, CsvHasOneLinePerRow) {
  const Outcome outcome =
      run({bin_dir() + "/all_reduce_perf", "--ranks", "2", "-b", "8", "-e", "512", "-f", "8", "-n", "3", "--csv", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("collective,algorithm,transport"), std::string::npos) << outcome.output;
  size_t rows = 0;
  for (size_t at = outcome.output.find("\nallreduce,"); at != std::string::npos;
       at = outcome.output.find("\nallreduce,", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, 3u) << outcome.output;
}

}  // namespace
}  // namespace torii::tests
