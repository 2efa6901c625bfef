// SPDX-License-Identifier: Apache-2.0
// Every public function with arguments that no caller should give: each is refused with a text, nothing crashes or
// hangs, and the team works afterwards. tests/python/test_hostile.py does the same to the Python package.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/hostile.hpp"
#include "tests/conformance/leaf_data.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

using Given = HostileArguments;

constexpr std::size_t kElements = 4;
constexpr int kRanksMax = 2;

const HostileQuestion kQuestions[] = {
    {"torii_version", [](const Given&) { EXPECT_STRNE(torii_version(), ""); }},
    {"torii_last_error", [](const Given&) { EXPECT_NE(torii_last_error(), nullptr); }},
    {"torii_status_name",
     [](const Given&) {
       for (const int number : {-1, TORII_INTERNAL + 1, INT_MAX, INT_MIN}) {
         EXPECT_STRNE(torii_status_name(number_as<torii_status>(number)), "") << number;
       }
     }},
    {"torii_algorithm_name",
     [](const Given&) {
       for (const int number : {-1, INT_MAX, INT_MIN}) EXPECT_EQ(torii_algorithm_name(number), nullptr);
     }},
    {"torii_type_bytes",
     [](const Given&) {
       for (const int number : {-1, TORII_FLOAT8_E5M2 + 1, INT_MAX, INT_MIN}) {
         EXPECT_EQ(torii_type_bytes(number_as<torii_type>(number)), 0U);
       }
     }},
    {"torii_type_name",
     [](const Given&) {
       for (const int number : {-1, TORII_FLOAT8_E5M2 + 1, INT_MAX, INT_MIN}) {
         EXPECT_EQ(torii_type_name(number_as<torii_type>(number)), nullptr);
       }
     }},
    {"torii_op_name",
     [](const Given&) {
       for (const int number : {-1, TORII_PREMUL_SUM + 1, INT_MAX, INT_MIN}) {
         EXPECT_EQ(torii_op_name(number_as<torii_op>(number)), nullptr);
       }
     }},
    {"torii_collective_name",
     [](const Given&) {
       for (const int number : {-1, TORII_EXSCAN + 1, INT_MAX, INT_MIN}) {
         EXPECT_EQ(torii_collective_name(number_as<torii_collective>(number)), nullptr);
       }
     }},
    {"torii_set_log", [](const Given&) { torii_set_log(nullptr, nullptr); }},
    {"torii_context_rank", [](const Given&) { EXPECT_EQ(torii_context_rank(nullptr), -1); }},
    {"torii_context_ranks", [](const Given&) { EXPECT_EQ(torii_context_ranks(nullptr), -1); }},
    {"torii_context_nodes", [](const Given&) { EXPECT_EQ(torii_context_nodes(nullptr), -1); }},
    {"torii_context_node",
     [](const Given& a) {
       EXPECT_EQ(torii_context_node(nullptr, 0), -1);
       for (const int rank : {-1, kRanksMax, INT_MAX, INT_MIN}) EXPECT_EQ(torii_context_node(a.context, rank), -1);
     }},
    {"torii_context_host",
     [](const Given& a) {
       EXPECT_EQ(torii_context_host(nullptr, 0), nullptr);
       for (const int rank : {-1, kRanksMax, INT_MAX, INT_MIN}) EXPECT_EQ(torii_context_host(a.context, rank), nullptr);
     }},
    {"torii_context_local_rank", [](const Given&) { EXPECT_EQ(torii_context_local_rank(nullptr), -1); }},
    {"torii_context_local_ranks", [](const Given&) { EXPECT_EQ(torii_context_local_ranks(nullptr), -1); }},
    {"torii_context_event_fd", [](const Given&) { EXPECT_EQ(torii_context_event_fd(nullptr), -1); }},
    {"torii_engine_bytes",
     [](const Given& a) {
       std::uint64_t bytes = 7;
       EXPECT_EQ(torii_engine_bytes(nullptr, &bytes, 1), 0);
       for (const int engines : {0, -1, INT_MIN}) EXPECT_GE(torii_engine_bytes(a.context, &bytes, engines), 1);
       EXPECT_GE(torii_engine_bytes(a.context, nullptr, INT_MAX), 1);
       EXPECT_EQ(bytes, 7U) << "there was no room";
     }},
    {"torii_context_counters",
     [](const Given& a) {
       torii_counters counters{};
       counters.size = sizeof(counters);
       EXPECT_EQ(torii_context_counters(nullptr, &counters), TORII_INVALID_ARGUMENT);
       EXPECT_EQ(torii_context_counters(a.context, nullptr), TORII_INVALID_ARGUMENT);
       counters.size = 0;
       EXPECT_EQ(torii_context_counters(a.context, &counters), TORII_INVALID_ARGUMENT);
     }},
    {"torii_team_rank", [](const Given&) { EXPECT_EQ(torii_team_rank(nullptr), -1); }},
    {"torii_team_ranks", [](const Given&) { EXPECT_EQ(torii_team_ranks(nullptr), -1); }},
    {"torii_team_context", [](const Given&) { EXPECT_EQ(torii_team_context(nullptr), nullptr); }},
    {"torii_team_context_rank",
     [](const Given& a) {
       EXPECT_EQ(torii_team_context_rank(nullptr, 0), -1);
       for (const int rank : {-1, kRanksMax, INT_MAX, INT_MIN}) EXPECT_EQ(torii_team_context_rank(a.team, rank), -1);
     }},
    {"torii_team_health", [](const Given&) { EXPECT_EQ(torii_team_health(nullptr), TORII_INVALID_ARGUMENT); }},
    {"torii_team_lost",
     [](const Given& a) {
       int member = 7;
       EXPECT_EQ(torii_team_lost(nullptr, &member, 1), -1);
       for (const int capacity : {0, -1, INT_MIN}) EXPECT_EQ(torii_team_lost(a.team, &member, capacity), 0);
       EXPECT_EQ(torii_team_lost(a.team, nullptr, INT_MAX), 0);
     }},
    {"torii_team_absent",
     [](const Given& a) {
       int member = 7;
       EXPECT_EQ(torii_team_absent(nullptr, &member, 1), -1);
       for (const int capacity : {0, -1, INT_MIN}) EXPECT_EQ(torii_team_absent(a.team, &member, capacity), 0);
       EXPECT_EQ(torii_team_absent(a.team, nullptr, INT_MAX), 0);
       EXPECT_EQ(member, 7);
     }},
    {"torii_most_in_flight", [](const Given&) { EXPECT_EQ(torii_most_in_flight(nullptr), -1); }},
    // It takes a team of its own, which has failed afterwards.
    {"torii_team_abort", [](const Given&) { EXPECT_EQ(torii_team_abort(nullptr, nullptr), TORII_INVALID_ARGUMENT); }},
};

/// Good arguments of a rank, and what they point to.
class Bench {
 public:
  Bench(torii_context* context, torii_team* team) : leaves_(team, Counts(ranks_of(team), 2)) {
    torii_team* gone = nullptr;
    EXPECT_EQ(torii_team_split(team, 0, 0, nullptr, &gone), TORII_OK) << torii_last_error();
    gone_leaves_.emplace(gone, Counts(ranks_of(team), 1));
    EXPECT_EQ(torii_team_destroy(gone), TORII_OK) << torii_last_error();
    inputs_.fill(input_.data());
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i] = result_.data() + i * kElements;
    const auto rank = static_cast<std::size_t>(torii_team_rank(team));
    for (std::size_t i = 0; i < kElements; ++i) destinations_[i] = rank * kElements + (i + 1) % kElements;
    extents_ = {4, 2};
    axes_ = {1, 0};
    counts_.fill(kElements);
    set(context, team);
  }
  const Given& good() const { return good_; }
  /// The team serves a call with the right result.
  void expect_works(const std::string& after) {
    input_.fill(static_cast<float>(torii_team_rank(good_.team) + 1));
    ASSERT_EQ(torii_allreduce(good_.team, input_.data(), result_.data(), kElements, TORII_F32, TORII_SUM), TORII_OK)
        << "after " << after << ": " << torii_last_error();
    EXPECT_EQ(result_[kElements - 1], ranks_of(good_.team) == 1 ? 1.0F : 3.0F) << "after " << after;
  }

 private:
  static std::size_t ranks_of(const torii_team* team) { return static_cast<std::size_t>(torii_team_ranks(team)); }
  void set(torii_context* context, torii_team* team) {
    good_ = {};
    good_.context = context;
    good_.team = team;
    good_.input = input_.data();
    good_.result = result_.data();
    good_.count = good_.result_count = kElements;
    good_.type = TORII_F32;
    good_.input_counts = good_.result_counts = counts_.data();
    good_.inputs = inputs_.data();
    good_.results = results_.data();
    good_.leaves = leaves_.get();
    good_.leaves_of_gone_team = gone_leaves_->get();
    good_.call = make_call(TORII_ALLREDUCE, input_.data(), result_.data(), kElements, TORII_F32);
    good_.team_options.size = sizeof(good_.team_options);
    good_.context_options.size = sizeof(good_.context_options);
    good_.context_options.settings = "ARENA=256M";
    good_.choice.size = sizeof(good_.choice);
    good_.received.size = sizeof(good_.received);
    good_.peer = torii_team_rank(team);
    good_.tag = 3;
    good_.extents = extents_.data();
    good_.axes = axes_.data();
    good_.destinations = destinations_.data();
    good_.operand = [](int, std::size_t, std::size_t count, void* out, void*) {
      std::fill_n(static_cast<float*>(out), count, 1.0F);
    };
    good_.done = [](torii_status, void*) {};
  }

  std::array<float, 64> input_ = {};
  std::array<float, 64> result_ = {};
  std::array<std::size_t, kRanksMax> counts_ = {};
  std::array<const void*, kRanksMax> inputs_ = {};
  std::array<void*, kRanksMax> results_ = {};
  std::array<std::uint64_t, kElements> destinations_ = {};
  std::array<std::size_t, 2> extents_ = {};
  std::array<int, 2> axes_ = {};
  Leaves leaves_;
  std::optional<Leaves> gone_leaves_;
  Given good_ = {};
};

/// What it takes for one row differs from others in its numbers only.
Given good_for(const HostileRow& row, const Bench& bench) {
  Given given = bench.good();
  if ((row.takes & kLeafClaim) != 0) {
    const auto rank = static_cast<std::size_t>(torii_team_rank(given.team));
    given.count = 2 * static_cast<std::size_t>(torii_team_ranks(given.team));
    given.first = 2 * rank;
  }
  return given;
}

/// Whether the value is refused on all ranks of the team, or on none.
bool is_alike(const HostileRow& row, const HostileValue& value, int ranks) {
  return ranks == 1 || !row.is_lopsided || (value.spoils & kLopsided) == 0;
}

void expect_refused(torii_status status, const std::string& what) {
  EXPECT_NE(status, TORII_OK) << what;
  const std::string text = torii_last_error();
  EXPECT_FALSE(text.empty() || text.starts_with("rank is 7 of 0")) << what << " has no text";
}

/// So that a text that is found afterwards is that of a later call.
void forget_error() {
  std::size_t out = 0;
  EXPECT_EQ(torii_split(1, 0, 7, &out, &out), TORII_INVALID_ARGUMENT);
}

void try_row(const HostileRow& row, Bench& bench, bool in_group) {
  const int ranks = torii_team_ranks(bench.good().team);
  Given good = good_for(row, bench);
  EXPECT_EQ(row.call(good), TORII_OK) << row.name << ": " << torii_last_error();
  for (const HostileValue& value : hostile_values()) {
    if ((value.spoils & row.takes) == 0 || !is_alike(row, value, ranks)) continue;
    const std::string what = std::string(row.name) + ", " + value.name + (in_group ? ", in a group" : "");
    Given given = good_for(row, bench);
    value.set(given);
    if (in_group) {
      EXPECT_EQ(torii_group_begin(bench.good().team), TORII_OK) << what;
    }
    forget_error();
    torii_status status = row.call(given);
    if (in_group) {
      // What is found wrong only with the plan is refused at the end.
      const torii_status end = torii_group_end(bench.good().team);
      if (status == TORII_OK) status = end;
    }
    expect_refused(status, what);
  }
  bench.expect_works(row.name);
}

void try_all(int ranks) {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=512M\nTIMEOUT=20";
  run_as_threads(options, [](torii_context* context, torii_team* team) {
    Bench bench(context, team);
    for (const HostileRow& row : hostile_rows()) {
      try_row(row, bench, false);
      if (row.joins) try_row(row, bench, true);
    }
    for (const HostileQuestion& question : kQuestions) {
      question.ask(bench.good());
      bench.expect_works(question.name);
    }
  });
}

TEST(Hostile, ArgumentsAreRefusedOnOneRank) { try_all(1); }

TEST(Hostile, ArgumentsAreRefusedOnTwoRanks) { try_all(2); }

/// The functions that the headers declare.
std::set<std::string> public_functions() {
  std::set<std::string> names;
  const std::regex declaration(R"(TORII_API\s[^;{}]*?\b(torii_\w+)\()");
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source_dir()) / "include" / "torii")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (std::sregex_iterator found(text.begin(), text.end(), declaration), end; found != end; ++found) {
      names.insert((*found)[1].str());
    }
  }
  return names;
}

TEST(Hostile, EveryPublicFunctionIsInATable) {
  std::multiset<std::string> listed;
  for (const HostileRow& row : hostile_rows()) listed.insert(row.name);
  for (const HostileQuestion& question : kQuestions) listed.insert(question.name);
  const std::set<std::string> declared = public_functions();
  EXPECT_GT(declared.size(), 80U) << "the headers are not read";
  for (const std::string& name : declared) {
    EXPECT_EQ(listed.count(name), 1U) << name << " needs a row in hostile_rows.cpp, or a question in test_hostile.cpp";
  }
  for (const std::string& name : listed) EXPECT_TRUE(declared.contains(name)) << name << " is no public function";
}

}  // namespace
}  // namespace torii::tests
