// SPDX-License-Identifier: Apache-2.0
// tune_perf: which candidates it tries, its lines, what it refuses. `torii-info tune`, which runs it, is tested in
// tests/processes and tests/tools.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "collectives/selection/catalogue.hpp"
#include "collectives/selection/selection.hpp"
#include "perf/common/names.hpp"
#include "perf/tuning/candidates.hpp"
#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"

namespace torii::perf {
namespace {

using Json = nlohmann::json;
const std::string kPerf = tests::bin_dir() + "/tune_perf";

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

/// A search on another machine tries what was found to be fast on this one.
TEST(TuneCandidates, HoldTheBuiltInRowsOfANode) {
  int rows = 0;
  for (const TuneRow& row : TuneTable::built_in().rows()) {
    if (row.topology != Topology::Kind::node || row.is_switch) continue;
    ++rows;
    const auto collective = static_cast<torii_collective>(row.collective);
    const Choice choice = {std::string(row.algorithm), row.tuning.segment_bytes, row.tuning.slots, row.tuning.window,
                           row.tuning.one_shot};
    const std::vector<Choice> all = candidates(collective, row.bytes_max, row.ranks_max, {choice.algorithm});
    EXPECT_NE(std::ranges::find(all, choice), all.end())
        << name(collective) << " of " << row.bytes_max << " bytes on " << row.ranks_max << ": " << to_text(choice);
  }
  EXPECT_GT(rows, 10);
}

class TuneProgram : public tests::FolderTest {
 protected:
  /// The lines of a short run of 2 ranks.
  std::vector<Json> lines(const std::vector<std::string>& flags) {
    std::vector<std::string> command = {kPerf,        "--ranks", "2",      "--rounds", "3",
                                        "--block-ms", "0.05",    "--json", path("raw")};
    command.insert(command.end(), flags.begin(), flags.end());
    const tests::Outcome outcome = tests::Process(command).wait(60);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::ifstream file(path("raw"));
    std::vector<Json> all;
    for (std::string line; std::getline(file, line);) all.push_back(Json::parse(line));
    std::filesystem::remove(path("raw"));
    return all;
  }
};

TEST_F(TuneProgram, ComparesTuningsAlgorithmsOrATable) {
  const std::string ring = R"({"version": 1, "rows": [{"collective": "allreduce", "ranks": [1, 4], "bytes_max": null,
    "algorithm": "ring", "segment": 4096, "slots": 4, "window": 1}]})";
  const std::vector<std::string> cell = {"--cells", "allreduce:64,barrier", "--algorithms", "ring,node"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), cell.begin(), cell.end());
    return lines(more);
  };
  const std::vector<Json> tunings = with({});
  ASSERT_EQ(tunings.size(), 2U);
  EXPECT_EQ(tunings[0].at("bytes"), 64);
  EXPECT_EQ(tunings[1].at("collective"), "barrier");
  EXPECT_GT(tunings[0].at("candidates").size(), 4U);
  const std::vector<Json> algorithms = with({"--rivals", "algorithms", "--tune-file", write("ring", ring)});
  ASSERT_EQ(algorithms.size(), 2U);
  EXPECT_EQ(algorithms[0].at("table").at("algorithm"), "ring");
  ASSERT_EQ(algorithms[0].at("candidates").size(), 1U) << "ring would run the same plan again";
  EXPECT_EQ(algorithms[0].at("candidates")[0].at("algorithm"), "node");
  EXPECT_EQ(algorithms[0].at("candidates")[0].at("slots"), 0) << "the library chooses them";
  const std::vector<Json> tables = with({"--rivals", "table", "--other", path("ring"), "--quiet"});
  ASSERT_EQ(tables.size(), 2U);
  ASSERT_EQ(tables[0].at("candidates").size(), 1U);
  EXPECT_EQ(tables[0].at("candidates")[0].at("algorithm"), "ring");
  for (const Json& line : {tunings[0], algorithms[0], tables[0]}) {
    // The final is for a candidate that won the search.
    if (line.at("best").is_null()) continue;
    EXPECT_GE(line.at("best").at("rounds"), 3) << line;
  }
}

TEST_F(TuneProgram, TimeThatIsOverIsSaid) {
  const tests::Outcome outcome = tests::run(
      {kPerf, "--ranks", "2", "--budget", "0.1", "--cells", "allreduce:1M,reduce:1M,broadcast:1M,alltoall:1M"});
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_NE(outcome.output.find("sizes left out: 0.1 s are over"), std::string::npos) << outcome.output;
}

TEST_F(TuneProgram, BadCommandLinesAreNamed) {
  struct Bad {
    std::vector<std::string> flags;
    const char* message;
  };
  const Bad all[] = {
      {{}, "--cells is required"},
      {{"--cells", "transpose:8"}, "--cells 'transpose:8' must be COLLECTIVE:SIZE, or barrier"},
      {{"--cells", "reduce"}, "--cells 'reduce' must be"},
      {{"--cells", "barrier:8"}, "--cells 'barrier:8' must be"},
      {{"--cells", "reduce:8X"}, "--cells"},
      {{"--cells", "reduce:8", "--algorithms", "quantum"}, "--algorithms 'quantum' is unknown"},
      {{"--cells", "reduce:8", "--ranks", "0"}, "--ranks"},
      {{"--cells", "reduce:8", "--rivals", "none"}, "--rivals"},
      {{"--cells", "reduce:8", "--rivals", "table"}, "--rivals table needs --other FILE"},
      {{"--cells", "reduce:8", "--rivals", "table", "--other", "no_such_file"}, "--other: cannot read 'no_such_file'"},
      {{"--cells", "reduce:8", "--ranks", "2", "--tune-file", "no_such_file"}, "cannot read"},
      {{"--cells", "reduce:8", "--ranks", "2", "--json", "no_such_folder/x"}, "cannot write 'no_such_folder/x'"},
  };
  for (const Bad& bad : all) {
    std::vector<std::string> command = {kPerf};
    command.insert(command.end(), bad.flags.begin(), bad.flags.end());
    const tests::Outcome outcome = tests::run(command);
    EXPECT_EQ(outcome.code, 2) << bad.message << ": " << outcome.output;
    EXPECT_NE(outcome.output.find(bad.message), std::string::npos) << bad.message << ": " << outcome.output;
  }
}

/// perf/tune_rows with a program that stands for tune_perf and says how much slower calls are without a row. Its lines
/// are in another order than the cells.
class TuneRows : public tests::FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    time_by("1.2 if collective == 'reduce' else 1.0");
  }
  /// `ratio` is an expression of collective, bytes, and the segments of the rows of both tables; None: left out.
  void time_by(const std::string& ratio) const {
    stand_in(R"(
import json, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
def segment_of(table):
    rows = [row for row in json.load(open(table))["rows"] if row["collective"] == collective]
    return next(row["segment"] for row in rows if row["bytes_max"] is None or bytes <= row["bytes_max"])
for cell in reversed(words["--cells"].split(",")):
    collective, _, length = cell.partition(":")
    bytes = int(length or 0)
    one, other = segment_of(words["--tune-file"]), segment_of(words["--other"])
    ratio = )" +
             ratio + R"(
    if ratio is not None:
        with open(sys.argv[-1], "a") as file:
            file.write(json.dumps({"collective": collective, "ranks": int(words["--ranks"]), "bytes": bytes,
                                   "candidates": [{"ratio": ratio}]}) + "\n")
)");
  }
  void stand_in(const std::string& text) const {
    std::filesystem::permissions(write("tune_perf", "#!/usr/bin/env python3\n" + text),
                                 std::filesystem::perms::owner_all);
  }
  static std::string row(const std::string& collective, int ranks_max, const std::string& bytes_max,
                         const std::string& algorithm, int segment_bytes) {
    return R"({"collective": ")" + collective + R"(", "ranks": [1, )" + std::to_string(ranks_max) +
           R"(], "bytes_max": )" + bytes_max + R"(, "algorithm": ")" + algorithm + R"(", "segment": )" +
           std::to_string(segment_bytes) + R"(, "slots": 4, "window": 1})";
  }
  tests::Outcome tune_rows(const std::vector<std::string>& flags) const {
    std::vector<std::string> command = {(std::filesystem::path(tests::source_dir()) / "perf" / "tune_rows").string(),
                                        "--table", path("table.json"), "--output", path("new.json")};
    command.insert(command.end(), flags.begin(), flags.end());
    return tests::run(command);
  }
};

TEST_F(TuneRows, LeavesOutThoseThatWinNothing) {
  const std::string wins = row("reduce", 2, "1024", "node", 1024);
  const std::string last = row("reduce", 4, "null", "node", 4096);
  const std::string others = row("scan", 16, "1024", "node", 1024);  // ring would serve 16 ranks
  const std::string rest = row("scan", 16, "null", "ring", 4096);
  const std::string kept = row("broadcast", 4, "null", "node", 4096);
  const std::string wins_nothing = row("broadcast", 2, "1024", "node", 1024);
  const std::string says_nothing = row("broadcast", 2, "null", "node", 4096);
  const std::string all = "{\"version\": 1, \"rows\": [\n" + wins + ",\n" + last + ",\n" + others + ",\n" + rest +
                          ",\n" + wins_nothing + ",\n" + says_nothing + ",\n" + kept + "\n]}\n";
  write("table.json", all);
  const tests::Outcome outcome = tune_rows({"--bin", folder_.string(), "--ranks", "2"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("# 5 rows stay, 2 go"), std::string::npos) << outcome.output;
  std::ifstream file(path("new.json"));
  const Json rows = Json::parse(file).at("rows");
  const std::vector<std::string> stay = {wins, last, others, rest, kept};
  ASSERT_EQ(rows.size(), stay.size());
  for (size_t i = 0; i < stay.size(); ++i) EXPECT_EQ(rows[i], Json::parse(stay[i]));
}

/// Each of two rows may go as long as the next one serves its calls; the first one is missed when both have gone.
TEST_F(TuneRows, PutsBackARowThatWinsAgainstWhatIsLeft) {
  const std::string first = row("reduce", 4, "1024", "node", 1024);
  const std::string second = row("reduce", 4, "4096", "node", 2048);
  const std::string last = row("reduce", 4, "null", "node", 4096);
  write("table.json", "{\"version\": 1, \"rows\": [\n" + first + ",\n" + second + ",\n" + last + "\n]}\n");
  time_by("1.2 if other > 2 * one else 1.0");
  const tests::Outcome outcome = tune_rows({"--bin", folder_.string(), "--ranks", "2,4"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("  back   1.20   1.20"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("# 2 rows stay, 1 go"), std::string::npos) << outcome.output;
  std::ifstream file(path("new.json"));
  EXPECT_EQ(Json::parse(file).at("rows"), Json::array({Json::parse(first), Json::parse(last)}));
}

TEST_F(TuneRows, NamesACellThatWasNotTimed) {
  write("table.json", "{\"version\": 1, \"rows\": [\n" + row("barrier", 2, "null", "node", 1024) + ",\n" +
                          row("barrier", 4, "null", "node", 4096) + ",\n" + row("reduce", 2, "32", "node", 1024) +
                          ",\n" + row("reduce", 4, "null", "node", 4096) + "\n]}\n");
  const std::vector<std::string> flags = {"--bin", folder_.string(), "--ranks", "2", "--budget", "7.5"};
  time_by("None if bytes == 16 else 1.2");
  const tests::Outcome one = tune_rows(flags);
  EXPECT_EQ(one.code, 1) << one.output;
  EXPECT_NE(one.output.find("tune_perf timed no reduce of 16 bytes on 2 ranks (isolated): its 7.5 s were over; give a "
                            "longer --budget"),
            std::string::npos)
      << one.output;
  time_by("None");
  const tests::Outcome all = tune_rows(flags);
  EXPECT_EQ(all.code, 1) << all.output;
  EXPECT_NE(all.output.find("tune_perf timed no barrier of 0 bytes on 2 ranks (isolated)"), std::string::npos)
      << all.output;
  EXPECT_FALSE(std::filesystem::exists(path("new.json")));
}

TEST_F(TuneRows, RefusesWhatItCannotUse) {
  write("table.json", "rows");
  const tests::Outcome table = tune_rows({"--bin", folder_.string()});
  EXPECT_EQ(table.code, 2) << table.output;
  EXPECT_NE(table.output.find("--table '" + path("table.json") + "' is no tune file"), std::string::npos);
  write("table.json", "{\"version\": 1, \"rows\": [\n" + row("reduce", 2, "1024", "node", 1024) + ",\n" +
                          row("reduce", 4, "null", "node", 4096) + "\n]}\n");
  const tests::Outcome ranks = tune_rows({"--bin", folder_.string(), "--ranks", "two"});
  EXPECT_EQ(ranks.code, 2) << ranks.output;
  EXPECT_NE(ranks.output.find("--ranks 'two' is no list of numbers"), std::string::npos) << ranks.output;
  const tests::Outcome programs = tune_rows({"--bin", path("nowhere")});
  EXPECT_EQ(programs.code, 2) << programs.output;
  EXPECT_NE(programs.output.find("no tune_perf in '" + path("nowhere") + "'"), std::string::npos) << programs.output;
  stand_in("import sys\nsys.exit('no memory')\n");
  const tests::Outcome failed = tune_rows({"--bin", folder_.string()});
  EXPECT_EQ(failed.code, 1) << failed.output;
  EXPECT_NE(failed.output.find("tune_perf --ranks 2"), std::string::npos) << failed.output;
  EXPECT_NE(failed.output.find("no memory"), std::string::npos) << failed.output;
  EXPECT_FALSE(std::filesystem::exists(path("new.json")));
}

}  // namespace
}  // namespace torii::perf
