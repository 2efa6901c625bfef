// SPDX-License-Identifier: Apache-2.0
// The tune table: which row serves a call, what forcing changes, and what a bad file is told.
#include "collectives/selection/selection.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <vector>

#include "runtime/base/status.hpp"
#include "tests/support/places.hpp"

namespace torii {
namespace {

constexpr std::string_view kTable = R"({"version": 1, "rows": [
  {"collective": "allreduce", "ranks": [2, 4], "bytes_max": 1024, "algorithm": "node", "segment": 1024, "slots": 4,
   "window": 1, "one_shot": true},
  {"collective": "allreduce", "ranks": [2, 4], "bytes_max": null, "algorithm": "rabenseifner", "segment": 4096,
   "slots": 8, "window": 2},
  {"collective": "allreduce", "ranks": [3, 3], "bytes_max": null, "algorithm": "ring", "segment": 8192, "slots": 2,
   "window": 1},
  {"collective": "all_gather", "ranks": [1, 9], "bytes_max": null, "algorithm": "node", "segment": 1024, "slots": 4,
   "window": 1, "one_shot": true}]})";

PlanRequest request_of(Collective collective, int ranks) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::node(ranks);
  return request;
}

Selected choose(Collective collective, int ranks, std::size_t bytes, const Forced& forced = {}) {
  static const TuneTable table = TuneTable::parse(kTable, "the test's table");
  return select(table, forced, request_of(collective, ranks), bytes);
}

TEST(Selection, TakesTheFirstRowThatFits) {
  const Selected small = choose(Collective::allreduce, 2, 1024);
  EXPECT_EQ(small.row, 0U);
  EXPECT_EQ(small.algorithm->name, "node");
  EXPECT_TRUE(small.request.tuning.one_shot);
  const Selected large = choose(Collective::allreduce, 2, 1025);
  EXPECT_EQ(large.row, 1U);
  EXPECT_EQ(large.request.tuning.window, 2);
}

TEST(Selection, ARowMayBeForOneKindOfTopology) {
  const TuneTable table = TuneTable::parse(R"({"version": 1, "rows": [
    {"topology": "torus", "collective": "allreduce", "ranks": [1, 99], "bytes_max": null, "algorithm": "bucket",
     "segment": 4096, "slots": 8, "window": 1},
    {"topology": "node", "collective": "allreduce", "ranks": [1, 99], "bytes_max": 64, "algorithm": "node",
     "segment": 4096, "slots": 8, "window": 1},
    {"collective": "allreduce", "ranks": [1, 99], "bytes_max": null, "algorithm": "ring",
     "segment": 4096, "slots": 8, "window": 1}]})",
                                           "the test's table");
  const auto chosen = [&](const Topology& topology, std::size_t bytes) {
    PlanRequest request;
    request.topology = topology;
    return select(table, {}, request, bytes).algorithm->name;
  };
  EXPECT_EQ(chosen(Topology::torus({2, 2, 1}), 8), "bucket");
  EXPECT_EQ(chosen(Topology::torus({2, 2, 1}, {false, false, false}, 2, 2), 8), "bucket") << "meshes are tori";
  EXPECT_EQ(chosen(Topology::node(4), 8), "node");
  EXPECT_EQ(chosen(Topology::node(4), 4096), "ring") << "a row without a kind serves all";
}

/// The build makes them from the files without parse().
TEST(Selection, TheBuiltInRowsAreThoseOfTheFiles) {
  std::vector<TuneRow> rows;
  TuneTable table;
  for (const char* const name : {"tune_table_torus.json", "tune_table_switch.json", "tune_table.json"}) {
    table = TuneTable::load(std::filesystem::path(tests::source_dir()) / "collectives/selection" / name);
    rows.insert(rows.end(), table.rows().begin(), table.rows().end());
  }
  EXPECT_EQ(TuneTable::built_in().rows(), rows);
  EXPECT_EQ(TuneTable::built_in().machine(), table.machine());
  EXPECT_NE(TuneTable::built_in().digest(), 0U);
  EXPECT_EQ(TuneTable::load("").digest(), TuneTable::built_in().digest());
  EXPECT_NE(table.digest(), TuneTable::built_in().digest());
}

/// The measured rows serve ranks on a node as ever; tori have rows of their own for every collective.
TEST(Selection, TheBuiltInTableHasRowsForTori) {
  const TuneTable& table = TuneTable::built_in();
  for (int collective = 0; collective < kCollectiveCount; ++collective) {
    PlanRequest request;
    request.collective = static_cast<Collective>(collective);
    for (const Topology& topology :
         {Topology::torus({3, 3, 1}), Topology::torus({3, 3, 1}, {true, true, true}, 2, 2)}) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{40'000}, std::size_t{1} << 24}) {
        request.topology = topology;
        const Selected selected = select(table, {}, request, bytes);
        if (selected.explanation.empty()) {
          ASSERT_TRUE(selected.row.has_value()) << name(request.collective) << " " << topology.text();
          EXPECT_EQ(table.rows()[*selected.row].topology, Topology::Kind::torus) << name(request.collective);
        } else {
          EXPECT_EQ(selected.algorithm->name, "floyd") << name(request.collective) << " " << topology.text();
        }
        request.topology = Topology::node(topology.ranks());
        const Selected on_node = select(table, {}, request, bytes);
        ASSERT_TRUE(on_node.row.has_value());
        EXPECT_FALSE(table.rows()[*on_node.row].topology.has_value());
      }
    }
  }
}

/// Folded one after the other, products of floats of ten ranks that are exact pairwise are not (MPICH's test allred).
/// One step to few ranks is quicker than a tree's steps one after the other.
TEST(Selection, ShortBroadcastsOnSmallToriGoStraight) {
  const auto chosen = [](const std::array<int, 3>& extents, std::size_t bytes) {
    PlanRequest request;
    request.collective = Collective::broadcast;
    request.topology = Topology::torus(extents);
    return std::string(select(TuneTable::built_in(), {}, request, bytes).algorithm->name);
  };
  EXPECT_EQ(chosen({3, 3, 1}, 64), "node");
  EXPECT_EQ(chosen({4, 4, 1}, 1024), "node");
  EXPECT_EQ(chosen({4, 4, 1}, 1025), "binomial");
  EXPECT_EQ(chosen({17, 1, 1}, 64), "binomial");
}

TEST(Selection, ShortAllreducesOfManyRanksCombinePairwise) {
  PlanRequest request;
  request.collective = Collective::allreduce;
  for (const int ranks : {9, 10, 16, 20}) {
    request.topology = Topology::node(ranks);
    for (const std::size_t bytes : {std::size_t{4}, std::size_t{40}, std::size_t{2048}}) {
      EXPECT_EQ(select(TuneTable::built_in(), {}, request, bytes).algorithm->name, "recursive_doubling") << ranks;
    }
  }
}

/// What was measured on one node says little about a network: there the rows for switches come first.
TEST(Selection, RowsForSwitchesServeRanksOnSeveralNodes) {
  const TuneTable& table = TuneTable::built_in();
  for (int collective = 0; collective < kCollectiveCount; ++collective) {
    for (const int ranks : {2, 17, 1000}) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{40'000}, std::size_t{1} << 24}) {
        const PlanRequest request = request_of(static_cast<Collective>(collective), ranks);
        const Selected between = select(table, {}, request, bytes, true);
        if (between.explanation.empty()) {
          ASSERT_TRUE(between.row.has_value()) << name(request.collective) << " " << ranks;
          EXPECT_TRUE(table.rows()[*between.row].is_switch) << name(request.collective) << " " << ranks;
        }
        const Selected within = select(table, {}, request, bytes);
        EXPECT_FALSE(within.row && table.rows()[*within.row].is_switch) << name(request.collective) << " " << ranks;
        PlanRequest torus = request;
        torus.topology = Topology::torus({ranks, 1, 1});
        const Selected links = select(table, {}, torus, bytes, true);
        EXPECT_FALSE(links.row && table.rows()[*links.row].is_switch) << name(request.collective) << " " << ranks;
      }
    }
  }
}

/// Over networks where a put costs as much as many bytes no row for switches has shorter segments, unless somebody
/// wants them; rows for links keep theirs, and so do those of rounds, whose segments are bundled.
TEST(Selection, SegmentsAreWorthAPut) {
  const TuneTable& table = TuneTable::built_in();
  const auto segment = [&](Collective collective, int ranks, std::size_t bytes, const Forced& forced = {},
                           std::size_t put_bytes = 16384) {
    return select(table, forced, request_of(collective, ranks), bytes, true, put_bytes).request.tuning.segment_bytes;
  };
  for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::scan}) {
    for (const int ranks : {2, 3, 4, 8, 64, 300}) {
      for (std::size_t bytes = 16384; bytes <= (std::size_t{8} << 20); bytes *= 4) {
        EXPECT_GE(segment(collective, ranks, bytes), ranks == 2 ? 32768u : 16384u) << name(collective) << ' ' << ranks;
        EXPECT_EQ(segment(collective, ranks, bytes, {.algorithm = "", .segment_bytes = 1024}), 1024u);
      }
    }
  }
  EXPECT_EQ(segment(Collective::broadcast, 4, 65536, {}, 0), 2048u);
  EXPECT_EQ(segment(Collective::barrier, 4, 0), 64u);
  EXPECT_EQ(segment(Collective::broadcast, 4, 65536, {}, 4096), 4096u);
  EXPECT_EQ(segment(Collective::all_gather, 257, 262144), segment(Collective::all_gather, 257, 262144, {}, 0));
  PlanRequest torus = request_of(Collective::broadcast, 9);
  torus.topology = Topology::parse("torus:3x3", 9);
  EXPECT_EQ(select(table, {}, torus, 65536, true, 16384).request.tuning,
            select(table, {}, torus, 65536, true).request.tuning);
  EXPECT_EQ(select(table, {}, request_of(Collective::broadcast, 4), 65536, false, 16384).request.tuning,
            select(table, {}, request_of(Collective::broadcast, 4), 65536).request.tuning);
}

TEST(Selection, PassesOverARowWhoseAlgorithmCannot) {
  // On three ranks rabenseifner may refuse; then the next row serves.
  const Selected selected = choose(Collective::allreduce, 3, 1 << 20);
  const bool can = find_algorithm("rabenseifner")->why_not(request_of(Collective::allreduce, 3)).empty();
  EXPECT_EQ(selected.row, can ? 1U : 2U);
}

TEST(Selection, WithoutARowTheCatalogueDecides) {
  const Selected selected = choose(Collective::allreduce, 7, 100);
  EXPECT_FALSE(selected.row.has_value());
  EXPECT_NE(selected.algorithm, nullptr);
}

TEST(Selection, ForcingTakesTheRowOfThatAlgorithm) {
  const Selected ring = choose(Collective::allreduce, 3, 100, {.algorithm = "ring", .slots = 5});
  EXPECT_EQ(ring.row, 2U);
  EXPECT_EQ(ring.request.tuning.segment_bytes, 8192U);
  EXPECT_EQ(ring.request.tuning.slots, 5);
  EXPECT_FALSE(choose(Collective::allreduce, 2, 100, {.algorithm = "ring"}).row.has_value());
}

TEST(Selection, OneShotIsForWhatFitsIntoOneMessage) {
  EXPECT_TRUE(choose(Collective::all_gather, 4, 4 * 1024).request.tuning.one_shot) << "blocks of 1024 bytes";
  EXPECT_FALSE(choose(Collective::all_gather, 4, 4 * 1025).request.tuning.one_shot);
  EXPECT_FALSE(choose(Collective::allreduce, 2, 1024, {.algorithm = "", .segment_bytes = 512}).request.tuning.one_shot);
}

TEST(Selection, AForcedAlgorithmThatCannotIsRefusedWithThoseThatCan) {
  try {
    choose(Collective::all_gather, 4, 100, {.algorithm = "binomial"});
    FAIL() << "binomial has no all_gather";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unsupported);
    const std::string text = error.what();
    EXPECT_NE(text.find("binomial cannot serve this call: "), std::string::npos) << text;
    EXPECT_NE(text.find("(those that can: "), std::string::npos) << text;
    EXPECT_NE(text.find("ring"), std::string::npos) << text;
  }
}

TEST(TuneFile, RowsMayServeALengthInTheMiddleAndNameTheBuiltInOnes) {
  const TuneTable table = TuneTable::parse(R"({"version": 1, "rows": ["built-in torus", "built-in switch",
    {"collective": "allreduce", "ranks": [2, 4], "bytes_min": 100, "bytes_max": 200, "algorithm": "ring",
     "segment": 4096, "slots": 4, "window": 1}, "built-in node"],
    "machine": {"cpus": 8, "l3_groups": 2, "numa_nodes": 1, "ranks": 4}})",
                                           "the test's table");
  const TuneTable& built_in = TuneTable::built_in();
  ASSERT_EQ(table.rows().size(), built_in.rows().size() + 1);
  const auto chosen = [&](const TuneTable& one, std::size_t bytes, bool several_nodes = false) {
    return std::string(select(one, {}, request_of(Collective::allreduce, 4), bytes, several_nodes).algorithm->name);
  };
  EXPECT_EQ(chosen(table, 100), "ring");
  EXPECT_EQ(chosen(table, 200), "ring");
  for (const std::size_t bytes : {std::size_t{99}, std::size_t{201}}) {
    EXPECT_EQ(chosen(table, bytes), chosen(built_in, bytes));
  }
  EXPECT_EQ(chosen(table, 150, true), chosen(built_in, 150, true)) << "rows for switches come before";
  ASSERT_TRUE(table.machine());
  EXPECT_EQ(table.machine()->cpus, 8);
  EXPECT_TRUE(built_in.machine()) << "the built-in table says where its rows for nodes were measured";
}

TEST(TuneFile, RowsOfANodeAreForOneNode) {
  const TuneTable table = TuneTable::parse(R"({"version": 1, "rows": [
    {"topology": "node", "collective": "allreduce", "ranks": [2, 4], "bytes_max": null, "algorithm": "ring",
     "segment": 4096, "slots": 2, "window": 1},
    {"topology": "switch", "collective": "allreduce", "ranks": [2, 4], "bytes_max": null, "algorithm": "ring",
     "segment": 8192, "slots": 8, "window": 4}]})",
                                           "the test's table");
  for (const char* algorithm : {"auto", "ring"}) {
    const auto slots = [&](bool several_nodes) {
      const PlanRequest request = request_of(Collective::allreduce, 4);
      return select(table, {.algorithm = algorithm}, request, 150, several_nodes).request.tuning.slots;
    };
    EXPECT_EQ(slots(false), 2) << algorithm;
    EXPECT_EQ(slots(true), 8) << algorithm << ", over a network few slots cost round trips";
  }
}

TEST(TuneFile, BadValuesAreNamedWithTheirPlace) {
  const std::string row = R"("collective": "allreduce", "ranks": [1, 2], "bytes_max": null, "algorithm": "node", )";
  const auto table_of = [](const std::string& one) { return R"({"version": 1, "rows": [{)" + one + "}]}"; };
  const struct {
    std::string text;
    std::string said;
  } cases[] = {
      {"{", "not JSON"},
      {R"({"version": 2, "rows": []})", "\"version\" is 2; this library reads 1"},
      {R"({"version": 1})", "\"rows\" must be an array"},
      {table_of(row + R"("segment": 4096, "slots": 257, "window": 1)"), "slots"},
      {table_of(row + R"("segment": 65, "slots": 4, "window": 1)"), "segment"},
      {table_of(row + R"("segment": 64, "slots": 4, "window": 1, "topology": "ring")"), "\"topology\" is \"ring\""},
      {table_of(row + R"("segment": 64, "slots": 4, "window": 1, "topology": 3)"), "\"topology\" must be a string"},
      {table_of(row + R"("segment": 64, "slots": 4, "window": 1, "radix": 1)"), "\"radix\" is 1"},
      {table_of(row + R"("segment": 64, "slots": 4, "window": 1, "bytes_min": -1)"), "\"bytes_min\" is -1"},
      {R"({"version": 1, "rows": [{"collective": "allreduce", "ranks": [1, 2], "bytes_min": 9, "bytes_max": 8}]})",
       "\"bytes_max\" is 8; it must be a whole number from 9"},
      {R"({"version": 1, "rows": ["built-in"]})", "row 0: it is \"built-in\"; names of rows are \"built-in torus\""},
      {R"({"version": 1, "rows": [], "machine": 3})", "file.json, machine: it must be an object"},
      {R"({"version": 1, "rows": [], "machine": {"cpus": 0}})", "machine: \"cpus\" is 0"},
      {R"({"version": 1, "rows": [], "machine": {"cpus": 1}})", "machine: \"l3_groups\" is missing"},
      {table_of(R"("collective": "allreduces")"), "allreduces"}};
  for (const auto& one : cases) {
    try {
      (void)TuneTable::parse(one.text, "file.json");
      FAIL() << one.text;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(text.find("file.json"), std::string::npos) << text;
      EXPECT_NE(text.find(one.said), std::string::npos) << text;
    }
  }
}

/// Files of any content end in a short message. Each level of a value that is printed or copied takes stack.
TEST(TuneFile, DeepAndLongValuesGiveShortMessages) {
  constexpr std::size_t kLevels = 100'000;
  constexpr std::size_t kTextBytes = 10'000'000;
  const std::string deep = std::string(kLevels, '[') + std::string(kLevels, ']');
  const std::string text = '"' + std::string(kTextBytes, 'a') + '"';
  const std::string levels = "a value is nested more than 16 deep";
  const auto with_rates = [](const std::string& rate) {
    return R"({"version": 1, "rows": [], "streams": [{"from": "a", "to": "b", "rates": [)" + rate + "]}]}";
  };
  const auto with_collective = [](const std::string& name) {
    return R"({"version": 1, "rows": [{"collective": )" + name + "}]}";
  };
  const struct {
    std::string text;
    std::string said;
  } cases[] = {{deep, levels},
               {std::string(kLevels, '['), levels},
               {R"({"version": )" + deep + "}", levels},
               {R"({"version": 1, "rows": )" + deep + "}", levels},
               {with_rates(deep), levels},
               {with_collective(deep), levels},
               {R"({"version": 1, "rows": [], "other": [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]})", levels},
               {R"({"version": )" + text + "}", "... (10000002 bytes); it must be a whole number"},
               {with_rates(text), "... (10000002 bytes); it must be a number of bytes per second"},
               {with_collective(text), "... (10000000 bytes)\", which is no collective"},
               {text.substr(1), "not JSON"},
               {'"' + text.substr(1, kTextBytes), "not JSON"}};
  for (const auto& one : cases) {
    try {
      (void)TuneTable::parse(one.text, "file.json");
      FAIL() << one.said;
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find(one.said), std::string::npos) << said.substr(0, 1000);
      EXPECT_LT(said.size(), 1000u) << one.said;
    }
  }
  // As deep as is allowed.
  EXPECT_TRUE(TuneTable::parse(R"({"version": 1, "rows": [], "other": [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]})", "file.json")
                  .rows()
                  .empty());
}

/// What is special about an algorithm is in its own file. "node" is also a topology.
TEST(Selection, NamesNoAlgorithm) {
  std::set<std::string, std::less<>> names(algorithm_names().begin(), algorithm_names().end());
  ASSERT_EQ(names.erase("node"), 1u);
  const auto is_in_a_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto folder = std::filesystem::path(tests::source_dir()) / "collectives" / "selection";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
    ++files;
    std::ifstream stream(entry.path());
    std::string word;
    for (char c = ' '; stream.get(c);) {
      if (is_in_a_word(c)) word += c;
      if (is_in_a_word(c)) continue;
      EXPECT_EQ(names.count(word), 0u) << entry.path() << " names " << word;
      word.clear();
    }
  }
  EXPECT_GE(files, 5);
}

}  // namespace
}  // namespace torii
