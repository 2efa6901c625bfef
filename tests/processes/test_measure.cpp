// SPDX-License-Identifier: Apache-2.0
// torii-info measure: what it writes is what the library reads, for networks made up here and for a job on this
// machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "collectives/building/sites.hpp"
#include "runtime/base/status.hpp"
#include "tests/processes/torii_info_runs.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tools/torii-info/measured_network.hpp"

namespace torii::tests {
namespace {

/// Sites of two hosts, the second of which has two ranks.
tools::MeasuredNetwork measured_network(int sites) {
  tools::MeasuredNetwork network;
  int rank = 0;
  for (int host = 0; host < 2 * sites; ++host) {
    tools::MeasuredHost& one = network.hosts.emplace_back();
    one.name = "a name # with signs";
    one.site = host / 2;
    one.ranks.push_back(rank++);
    if (host % 2 != 0) {
      one.to_site = {100e6, 90e6, 50e-6};
      one.ranks.push_back(rank++);
      one.inside = {5e9, 4e9, 1e-6};
    }
  }
  network.sites = sites;
  const auto count = static_cast<std::size_t>(sites);
  network.latency_s.assign(count, std::vector<double>(count, 8e-3));
  network.rates.assign(count, std::vector<std::vector<double>>(count, {3e6, 2.5e6}));
  return network;
}

/// What measure writes is read back by the library: the same sites, ways and rates.
TEST(Measure, FilesAreReadBack) {
  for (const int sites : {1, 2, 3}) {
    const tools::MeasuredNetwork network = measured_network(sites);
    const TreeTopology tree = TreeTopology::parse(tools::tree_text(network), "measured");
    EXPECT_EQ(tree.ranks(), 3 * sites);
    const Sites found = sites_of(tree);
    ASSERT_EQ(found.ranks.size(), static_cast<std::size_t>(sites));
    const TuneTable table = TuneTable::parse(tools::tune_text("", tools::stream_rates(network)), "measured");
    EXPECT_EQ(table.rows().size(), TuneTable::built_in().rows().size());
    ASSERT_EQ(table.streams().size(), static_cast<std::size_t>(sites * (sites - 1)));
    if (sites == 1) continue;
    EXPECT_EQ(found.ranks[1], (std::vector<int>{3, 4, 5}));
    const SiteWay way = way_between(tree, found, 0, 1);
    EXPECT_EQ(way.from, table.streams().front().from);
    EXPECT_EQ(way.to, table.streams().front().to);
    EXPECT_NEAR(way.latency_s, 8e-3, 1e-4);
    EXPECT_NEAR(way.capacity, 5e6, 1);
    EXPECT_NEAR(way.site_rate, 90e6, 1);
    EXPECT_EQ(table.streams().front().rates, (std::vector<double>{3e6, 2.5e6}));
  }
  // Streams of another day are replaced, rows are kept.
  const std::string again =
      tools::tune_text(R"({"version": 1, "rows": [], "streams": [{"from": "x", "to": "y", "rates": [1]}]})",
                       tools::stream_rates(measured_network(2)));
  EXPECT_TRUE(TuneTable::parse(again, "again").rows().empty());
  EXPECT_EQ(TuneTable::parse(again, "again").streams().size(), 2u);
  EXPECT_THROW((void)tools::tune_text("no JSON", {}), Error);
  EXPECT_THROW((void)tools::tune_text("{\"x\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}", {}),
               Error);
  EXPECT_TRUE(holds(tools::report_network(measured_network(2)).text, "site 0 to site 1: 8 ms; MB/s of each of 1 to 2"));
}

/// Streams that together fill the link are as fast as they were measured, others have had half a window for nothing.
TEST(Measure, RatesAreThoseOfLongTransfers) {
  const std::vector<double> windows = tools::steady_rates({3e6, 3e6}, 8e-3, 0.2);
  EXPECT_NEAR(windows[0], 3e6 / (1 + 0.04 * 3 / 4), 1);
  EXPECT_NEAR(windows[1], 3e6 / (1 + 0.04 * 2 / 4), 1);
  const std::vector<double> full = tools::steady_rates({4e6, 2e6}, 8e-3, 0.2);
  EXPECT_NEAR(full[0], 4e6, 1);
  EXPECT_NEAR(full[1], 2e6, 1);
  EXPECT_TRUE(tools::steady_rates({}, 8e-3, 0.2).empty());
}

TEST(Measure, WritesTheTreeOfARunningJob) {
  const std::string folder = testing::TempDir() + "torii_test_measure_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string torii_info = bin_dir() + "/torii-info";
  const std::string run_program = bin_dir() + "/torii-run";
  const Outcome outcome = run({run_program, "-n", "3", "--timeout", "40", "--", torii_info, "measure", "--tree",
                               folder + "/tree", "--tune", folder + "/tune", "--json", folder + "/json"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(TreeTopology::parse(content(folder + "/tree"), "tree").ranks(), 3);
  EXPECT_TRUE(TuneTable::parse(content(folder + "/tune"), "tune").streams().empty());
  const auto report = nlohmann::json::parse(content(folder + "/json"));
  EXPECT_EQ(report["hosts"].size(), 1u);
  EXPECT_GT(report["hosts"][0]["bandwidth_inside"], 1e6);
  const std::string missing = (std::filesystem::path(folder) / "missing" / "tree").string();
  const Outcome refused =
      run({run_program, "-n", "2", "--timeout", "40", "--", torii_info, "measure", "--tree", missing});
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_TRUE(holds(refused.output, "cannot write '" + missing + "'")) << refused.output;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace torii::tests
