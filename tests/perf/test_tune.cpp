// SPDX-License-Identifier: Apache-2.0
// Tune tables from measurements: how rows are merged, that selection obeys a table that was just measured, and what is
// refused.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "collectives/selection/selection.hpp"
#include "perf/common/names.hpp"
#include "perf/tuning/table.hpp"
#include "tests/support/folder_test.hpp"
#include "tests/support/process.hpp"

namespace torii::perf {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;
const std::string kBin = TORII_TEST_BIN_DIR;
const Choice kRing{"ring", 4096, 4, 1, false};
const Choice kNode{"node", 32768, 8, 4, false};
const Choice kShot{"node", 4096, 4, 1, true};

struct Figure {
  Choice choice;
  double ratio;
  double spread = 0;
  int rounds = 7;
};

Point point(int ranks, size_t bytes, const std::vector<Figure>& figures,
            torii_collective collective = TORII_ALLREDUCE) {
  Point result{collective, ranks, {}};
  result.result.bytes = bytes;
  result.result.rounds = 7;
  result.result.table.rounds = 7;
  for (const Figure& one : figures) {
    result.result.candidates.push_back({one.choice, 1, 1, one.ratio, one.spread, one.rounds});
  }
  return result;
}

/// "1..2 <= 512: node 4K/4/1 one_shot" for every row.
std::vector<std::string> texts(const std::vector<TableRow>& rows) {
  std::vector<std::string> list;
  for (const TableRow& row : rows) {
    list.push_back(
        std::to_string(row.ranks_min) + ".." + (row.ranks_max == kAnyRanks ? "any" : std::to_string(row.ranks_max)) +
        " <= " + (row.bytes_max == kAnyBytes ? "any" : std::to_string(row.bytes_max)) + ": " + to_text(row.choice));
  }
  return list;
}
using Texts = std::vector<std::string>;

TEST(TuneRows, ALengthChangesTheRowOnlyWhereItGains) {
  // ring is 2 % behind at 64 and 5 % behind at 4096.
  const std::vector<Point> points = {point(2, 8, {{kRing, 0.5}, {kNode, 0.9}}),
                                     point(2, 64, {{kRing, 0.51}, {kNode, 0.5}}),
                                     point(2, 4096, {{kRing, 1.05}, {kNode, 1.0}})};
  EXPECT_EQ(texts(make_rows(points, 0.03)), (Texts{"1..any <= 64: ring 4K/4/1", "1..any <= any: node 32K/8/4"}));
  EXPECT_EQ(texts(make_rows(points, 0.01)), (Texts{"1..any <= 8: ring 4K/4/1", "1..any <= any: node 32K/8/4"}));
}

TEST(TuneRows, NoiseCountsAsEqualUpToATenth) {
  const auto rows = [](double spread, double behind) {
    return make_rows({point(2, 8, {{kRing, 1}, {kNode, 2}}), point(2, 64, {{kRing, behind}, {kNode, 1, spread}}),
                      point(2, 512, {{kRing, 1}, {kNode, 2}})},
                     0.03);
  };
  EXPECT_EQ(rows(0.00, 1.08).size(), 4u);
  EXPECT_EQ(texts(rows(0.09, 1.08)), (Texts{"1..any <= any: ring 4K/4/1", "1..any <= any: node 32K/8/4"}));
  EXPECT_EQ(rows(0.50, 1.20).size(), 4u);
}

TEST(TuneRows, WhoWasDroppedIsOut) {
  const std::vector<Point> points = {point(2, 8, {{kRing, 0.01, 0, 1}, {kNode, 0.9}})};
  EXPECT_EQ(texts(make_rows(points, 0.03)), (Texts{"1..any <= any: node 32K/8/4"}));
  EXPECT_EQ(best_of(points[0].result).choice, kNode);
}

TEST(TuneRows, PassesAreOneGeometricMeanInWhichDroppedOnesAreOut) {
  PointResult all = point(2, 8, {{kRing, 0.8}, {kNode, 0.5}, {kShot, 0.4}}).result;
  add_pass(all, point(2, 8, {{kNode, 2, 0.2}, {kRing, 0.8}, {kShot, 0.1, 0, 1}}).result);
  EXPECT_EQ(all.rounds, 14);
  EXPECT_EQ(best_of(all).choice, kRing) << "the one that was quickest was dropped once";
  EXPECT_DOUBLE_EQ(all.candidates[1].ratio, 1);
  EXPECT_DOUBLE_EQ(all.candidates[1].spread, 0.2);
  add_pass(all, point(2, 8, {{kNode, 0.125, 0, 1}}).result);
  EXPECT_DOUBLE_EQ(all.candidates[1].ratio, 0.5) << "the third of three counts for a third";
  EXPECT_EQ(all.rounds, 15) << "who stayed for longest has stayed, where nobody did in every pass";
}

TEST(TuneRows, ANumberOfRanksServesThoseBelowAndTheGreatestAllAbove) {
  const std::vector<Point> points = {point(8, 8, {{kNode, 1}, {kRing, 2}}), point(2, 8, {{kRing, 1}, {kNode, 2}}),
                                     point(4, 8, {{kRing, 1}, {kNode, 2}})};
  const std::vector<TableRow> rows = make_rows(points, 0.03);
  EXPECT_EQ(texts(rows), (Texts{"1..4 <= any: ring 4K/4/1", "1..any <= any: node 32K/8/4"}));
  EXPECT_EQ(find_row(rows, TORII_ALLREDUCE, 3, 1 << 30)->choice, kRing);
  EXPECT_EQ(find_row(rows, TORII_ALLREDUCE, 5, 8)->choice, kNode);
  EXPECT_EQ(find_row(rows, TORII_REDUCE, 2, 8), nullptr);
}

TEST(TuneRows, OneShotEndsWithItsSegmentAndIsShortOnManyRanks) {
  const std::vector<Point> points = {point(4, 4096, {{kShot, 1}, {kNode, 2}})};
  EXPECT_EQ(texts(make_rows(points, 0.03)),
            (Texts{"9..any <= 2048: node 4K/4/1 one_shot", "1..8 <= 4096: node 4K/4/1 one_shot",
                   "1..any <= any: node 32K/8/4"}));
}

TEST(TuneRows, TextIsStableAndReadBack) {
  const std::vector<Point> points = {point(2, 512, {{kShot, 1}, {kNode, 2}}), point(2, 4096, {{kRing, 1}, {kNode, 2}}),
                                     point(2, 0, {{kNode, 1}}, TORII_BARRIER)};
  const std::string text = to_json_text(make_rows(points, 0.03), R"({"host": "h"})");
  const std::string all = R"("ranks": [1, 256], "bytes_max": )";
  const std::string node = R"("algorithm": "node", "segment": 32768, "slots": 8, "window": 4})";
  EXPECT_EQ(text,
            "{\n  \"version\": 1,\n  \"measured\": {\"host\": \"h\"},\n  \"rows\": [\n"
            R"(    {"collective": "barrier", )" +
                all + "null, " + node + ",\n" + R"(    {"collective": "allreduce", )" + all + "512, " +
                R"("algorithm": "node", "segment": 4096, "slots": 4, "window": 1, "one_shot": true},)" + "\n" +
                R"(    {"collective": "allreduce", )" + all + "null, " +
                R"("algorithm": "ring", "segment": 4096, "slots": 4, "window": 1},)" + "\n" +
                R"(    {"collective": "allreduce", )" + all + "null, " + node + "\n  ]\n}\n");
  const TuneTable table = TuneTable::parse(text, "test");
  ASSERT_EQ(table.rows().size(), 4u);
  EXPECT_EQ(table.rows()[1].bytes_max, 512u);
  EXPECT_TRUE(table.rows()[1].tuning.one_shot);
}

/// Every candidate is one that a table can name, and the library names the algorithms of the catalogue.
TEST(TuneCandidates, AreThoseOfTheCatalogue) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : catalogue()) names.emplace_back(algorithm.name);
  EXPECT_EQ(names, std::vector<std::string>(all_algorithms().begin(), all_algorithms().end()));
  for (const size_t bytes : {0, 8, 4096, 20000, 1 << 25}) {
    const torii_collective collective = bytes == 0 ? TORII_BARRIER : TORII_REDUCE;
    std::set<Choice> seen;
    for (const Choice& choice : candidates(collective, bytes, 2, names)) {
      EXPECT_TRUE(seen.insert(choice).second) << to_text(choice);
      const TuneTable table = TuneTable::parse(one_row_table(collective, choice), to_text(choice));
      EXPECT_EQ(table.rows()[0].algorithm, choice.algorithm);
      EXPECT_EQ(table.rows()[0].tuning.segment_bytes, choice.segment_bytes);
      EXPECT_EQ(table.rows()[0].tuning.one_shot, choice.one_shot);
    }
    EXPECT_GE(seen.size(), names.size());
  }
}

class TuneProgram : public tests::FolderTest {
 protected:
  static tests::Outcome tune(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {(fs::path(TORII_TEST_SOURCE_DIR) / "perf" / "tune").string(), "--bin", kBin});
    return tests::Process(arguments).wait(60);
  }
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The row of a table that holds for `bytes`.
const Json& row_of(const Json& document, int bytes) {
  for (const Json& one : document.at("rows")) {
    if (one.at("bytes_max").is_null() || one.at("bytes_max") >= bytes) return one;
  }
  throw std::out_of_range("no row for " + std::to_string(bytes) + " bytes");
}

TEST_F(TuneProgram, SelectionObeysTheMeasuredTable) {
  const std::string table = path("table.json"), json = path("raw.json");
  const std::vector<std::string> small = {"--ranks", "2",   "--collective", "allreduce", "--budget", "20",
                                          "-b",      "64",  "--block-ms",   "0.1",       "--rounds", "3",
                                          "-e",      "64K", "-f",           "1024"};
  std::vector<std::string> arguments = small;
  arguments.insert(arguments.end(),
                   {"--algorithms", "ring,binomial", "--passes", "2", "--table", table, "--json", json});
  const tests::Outcome made = tune(arguments);
  ASSERT_EQ(made.code, 0) << made.output;
  const Json document = Json::parse(text_of(table));
  EXPECT_NE(document.at("measured").at("command").get<std::string>().find("perf/tune --bin"), std::string::npos);
  ASSERT_GE(document.at("rows").size(), 1u);
  EXPECT_EQ(document.at("rows")[0].at("algorithm") == "node", false);

  // torii-info shows the same rows, and a program runs what they say.
  const std::string setting = "TORII_TUNE_FILE=" + table;
  const tests::Outcome info = tests::run({kBin + "/torii-info", "--json", path("info.json"), "tune"}, {setting});
  ASSERT_EQ(info.code, 0) << info.output;
  const Json shown = Json::parse(text_of(path("info.json")));
  ASSERT_EQ(shown.at("rows").size(), document.at("rows").size());
  for (size_t i = 0; i < shown.at("rows").size(); ++i) {
    for (const char* key : {"ranks", "bytes_max", "algorithm", "segment", "slots", "window"}) {
      EXPECT_EQ(shown["rows"][i].at(key), document["rows"][i].at(key)) << key;
    }
  }
  for (const int bytes : {64, 65536}) {
    const std::string size = std::to_string(bytes);
    const tests::Outcome ran = tests::run({kBin + "/all_reduce_perf", "--ranks", "2", "-b", size, "-e", size, "-n", "3",
                                           "-w", "1", "--json", path("run.json")},
                                          {setting});
    ASSERT_EQ(ran.code, 0) << ran.output;
    const Json row = Json::parse(text_of(path("run.json")));
    const Json& expected = row_of(document, bytes);
    EXPECT_EQ(row.at("algorithm"), expected.at("algorithm")) << bytes;
    EXPECT_EQ(row.at("segment_bytes"), expected.at("segment")) << bytes;
  }

  // --check measures the table's own choices again and writes nothing.
  fs::remove(path("tune_table.json"));
  arguments = small;
  arguments.insert(arguments.end(), {"--check", table, "--json", json});
  const tests::Outcome checked = tune(arguments);
  ASSERT_EQ(checked.code, 0) << checked.output;
  EXPECT_NE(checked.output.find("of " + table), std::string::npos) << checked.output;
  std::istringstream lines(text_of(json));
  int points = 0;
  for (std::string line; std::getline(lines, line); ++points) {
    const Json one = Json::parse(line);
    EXPECT_EQ(one.at("tune_file"), table);
    EXPECT_NE(one.at("table").at("algorithm"), "node") << "the table names no node";
  }
  EXPECT_EQ(points, 2);
  EXPECT_FALSE(fs::exists(path("tune_table.json")));
}

TEST_F(TuneProgram, TimeThatIsOverIsSaid) {
  const tests::Outcome outcome = tests::run({kBin + "/tune_perf", "--ranks", "2", "--budget", "0.1", "-e", "1M"});
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_NE(outcome.output.find("sizes left out: 0.1 s are over"), std::string::npos) << outcome.output;
}

TEST_F(TuneProgram, BadCommandLinesAreNamed) {
  struct Bad {
    std::vector<std::string> command;
    const char* message;
  };
  const std::string perf = kBin + "/tune_perf", report = kBin + "/tune_report";
  const Bad all[] = {
      {{perf, "--collective", "transpose"}, "--collective 'transpose' is unknown"},
      {{perf, "--algorithms", "quantum"}, "--algorithms 'quantum' is unknown"},
      {{perf, "-b", "64K", "-e", "8"}, "-e 8 must be from -b 64K"},
      {{perf, "--ranks", "0"}, "--ranks"},
      {{perf, "--ranks", "2", "--tune-file", path("none")}, "cannot read"},
      {{perf, "--ranks", "2", "-e", "8", "--json", "no_such_folder/x"}, "cannot write 'no_such_folder/x'"},
      {{report, path("none")}, "cannot read"},
      {{report}, "input"},
      {{report, write("empty", "")}, "has no points"},
      {{report, write("bad", "{\"collective\": 3}\n")}, "bad:1:"},
      {{report, "--within", "-1", "x"}, "--within"},
  };
  for (const Bad& bad : all) {
    const tests::Outcome outcome = tests::run(bad.command);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(bad.message), std::string::npos) << outcome.output;
  }
  EXPECT_EQ(tune({"--fast"}).code, 2);
  EXPECT_EQ(tune({"--ranks", "two"}).code, 2);
  EXPECT_EQ(tune({"--budget", "0"}).code, 2);
  EXPECT_EQ(tune({"--passes", "0"}).code, 2);
  EXPECT_EQ(tune({"--check", path("none")}).code, 2);
  EXPECT_EQ(tune({"--check", kBin, "--table", "x"}).code, 2);
  EXPECT_EQ(tune({"--bin", folder_.string()}).code, 3);
  EXPECT_EQ(tune({"--help"}).code, 0);
}

TEST_F(TuneProgram, ReportRefusesPointsThatMakeNoSense) {
  const auto line = [](const std::string& collective, double ratio) {
    const Json one = {{"algorithm", "node"}, {"segment", 64},     {"slots", 4},     {"window", 1}, {"one_shot", false},
                      {"malloc_us", 1.0},    {"allocated_us", 1}, {"ratio", ratio}, {"spread", 0}, {"rounds", 1}};
    return Json{{"collective", collective},
                {"ranks", 2},
                {"bytes", 8},
                {"rounds", 1},
                {"table", one},
                {"candidates", {one}},
                {"tune_file", ""},
                {"host", "h"},
                {"commit", "c"},
                {"version", "v"},
                {"command", "x"}}
               .dump() +
           "\n";
  };
  const auto answer = [&](const std::string& text) {
    const tests::Outcome outcome = tests::run({kBin + "/tune_report", write("raw", text)});
    return std::to_string(outcome.code) + " " + outcome.output;
  };
  EXPECT_EQ(answer(line("reduce", 1)).rfind("0 ", 0), 0u) << answer(line("reduce", 1));
  std::string other = line("reduce", 1);
  other.replace(other.rfind("\"node\""), 6, "\"ring\"");
  EXPECT_NE(answer(line("reduce", 1) + other)
                .find("raw:2: a second point of equal collective, ranks and bytes was "
                      "compared with another choice: ring 64/4/1, not node 64/4/1"),
            std::string::npos)
      << answer(line("reduce", 1) + other);
  EXPECT_NE(answer(line("transpose", 1)).find("raw:1: \"collective\" is \"transpose\""), std::string::npos);
  EXPECT_NE(answer(line("reduce", 0)).find("raw:1: \"ratio\" is 0.0, not above 0"), std::string::npos);
}

}  // namespace
}  // namespace torii::perf
