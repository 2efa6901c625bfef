// SPDX-License-Identifier: Apache-2.0
// Short runs of put_latency and put_bandwidth over the providers that work here, and their bad command lines.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

using Json = nlohmann::json;

Outcome puts(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), bin_dir() + "/" + program);
  return Process(arguments, {"TORII_ENGINES="}).wait(60);
}

std::vector<Json> rows_of(const Outcome& outcome) {
  std::vector<Json> rows;
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('{')) rows.push_back(Json::parse(line));
  }
  return rows;
}

/// Where puts run on this machine.
struct Provider {
  std::string library;
  std::string name;
  int engines;
};
const Provider kProviders[] = {
#ifdef TORII_PERF_LIBFABRIC
    {"libfabric", "tcp;ofi_rxm", 3},
    {"libfabric", "net", 1},
#endif
#ifdef TORII_PERF_UCX
    {"ucx", "tcp", 3},
    {"ucx", "posix", 1},
#endif
};

TEST(PutPerf, EveryProviderAndSeveralEngines) {
  for (const std::string program : {"put_latency", "put_bandwidth"}) {
    for (const auto& [library, provider, engines] : kProviders) {
      const Outcome outcome = puts(
          program, {"-b",          "8",     "-e",         "72K",      "-f",     "96",        "-n",
                    "3",           "-w",    "1",          "--rounds", "2",      "--engines", std::to_string(engines),
                    "--transport", library, "--provider", provider,   "--json", "-"});
      EXPECT_EQ(outcome.code, 0) << outcome.output;
      const std::vector<Json> rows = rows_of(outcome);
      ASSERT_EQ(rows.size(), 3u) << outcome.output;
      for (const Json& row : rows) {
        EXPECT_EQ(row.at("benchmark"), program);
        EXPECT_EQ(row.at("transport"), library);
        EXPECT_EQ(row.at("provider"), provider);
        EXPECT_EQ(row.at("engines"), engines);
        EXPECT_EQ(row.at("iterations"), 3);
        EXPECT_EQ(row.at("wrong"), 0) << row;
        EXPECT_GT(row.at("time_us_median").get<double>(), 0);
        EXPECT_GT(row.at("bare_time_us_median").get<double>(), 0);
        EXPECT_GT(row.at("ratio").get<double>(), 0);
        EXPECT_EQ(row.contains("GBps"), program == "put_bandwidth");
        EXPECT_EQ(row.at("window"), program == "put_bandwidth" ? 64 : 1);
      }
      EXPECT_EQ(rows[2].at("bytes"), 8 * 96 * 96);
    }
  }
}

TEST(PutPerf, WithoutADescriptorToSleepOn) {
  const Outcome outcome =
      Process({bin_dir() + "/put_latency", "-e", "8", "-n", "3", "--rounds", "1"}, {"TORII_WAIT=spin"}).wait(60);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(PutPerf, BadCommandLinesAreRefusedWithTheirReason) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines = {
      {{"--colour"}, "--colour"},
      {{"-b", "0"}, "-b '0' must be at least 1 byte"},
      {{"-b", "64", "-e", "8"}, "-e 8 must be from -b 64 to 64M"},
      {{"-e", "65M"}, "-e 65M must be from -b 8 to 64M"},
      {{"-f", "1"}, "-f"},
      {{"-n", "0"}, "-n"},
      {{"--rounds", "0"}, "--rounds"},
      {{"--engines", "17"}, "TORII_ENGINES is '17'"},
      {{"--transport", "shared_memory"}, "--transport 'shared_memory' has no bare loop"},
      {{"--provider", "a b"}, "TORII_PROVIDER is 'a b'"},
      {{"--json", "no_such_folder/x"}, "cannot write 'no_such_folder/x'"}};
  for (const auto& [line, message] : lines) {
    const Outcome outcome = puts("put_latency", line);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
  }
  const Outcome provider = puts("put_latency", {"--provider", "carrier_pigeon"});
  EXPECT_EQ(provider.code, 3) << provider.output;
  EXPECT_NE(provider.output.find("cannot use TORII_PROVIDER 'carrier_pigeon'"), std::string::npos) << provider.output;
  const Outcome three = run({bin_dir() + "/torii-run", "-n", "3", "--", bin_dir() + "/put_latency", "-e", "8"});
  EXPECT_EQ(three.code, 2) << three.output;
  EXPECT_NE(three.output.find("3 ranks; puts are timed between 2"), std::string::npos) << three.output;
}

TEST(PutPerf, HelpAndVersion) {
  for (const std::string program : {"put_latency", "put_bandwidth"}) {
    const Outcome help = puts(program, {"--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.output.find("Example:\n  " + program), std::string::npos) << help.output;
    EXPECT_EQ(puts(program, {"--version"}).output.rfind("torii ", 0), 0u);
  }
}

}  // namespace
}  // namespace torii::tests
