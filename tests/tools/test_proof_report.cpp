// SPDX-License-Identifier: Apache-2.0
// torii-info plan says what was proved, a line for each property.
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "tools/torii-info/plan.hpp"
#include "tools/torii-info/proof_report.hpp"

namespace torii::tests {
namespace {

tools::PlanAnswer answer_to(const std::string& collective, const std::string& overrides, int ranks = 4,
                            const std::string& bytes = "1M") {
  tools::PlanQuestion question;
  question.collective = collective;
  question.ranks = ranks;
  if (collective != "barrier") question.bytes = bytes;
  question.overrides = overrides;
  return tools::answer(question);
}

tools::Report report_of(const tools::PlanAnswer& answer) {
  tools::Report report;
  tools::add_verdict(answer, report);
  return report;
}

/// The text behind a property's name.
std::string line_of(const tools::Report& report, const std::string& property) {
  std::istringstream lines(report.text);
  for (std::string line; std::getline(lines, line);) {
    const std::string text = line.size() > 10 ? line.substr(10) : "";
    if (text.starts_with(property)) return text.substr(16);
  }
  return "no line";
}

TEST(ProofReport, EveryPropertyHasALine) {
  const tools::Report report = report_of(answer_to("allreduce", "TORII_ALGORITHM=ring\nTORII_SLOTS=8\n"));
  EXPECT_EQ(report.code, 0);
  for (const char* property :
       {"data", "deadlock", "buffers", "in place", "bundles", "shared copies", "private reads", "buffer offers",
        "sent in place", "linear programs", "one signal", "rings", "fewest slots"}) {
    EXPECT_NE(line_of(report, property), "no line") << property << " in " << report.text;
  }
  EXPECT_EQ(line_of(report, "data"), "16 result blocks hold each operand once, in the declared order");
  EXPECT_EQ(line_of(report, "bundles"), "none");
  EXPECT_EQ(line_of(report, "one signal"), "none");
  EXPECT_EQ(line_of(report, "rings").substr(0, 10), "2 at most ");
  EXPECT_EQ(line_of(report, "fewest slots").substr(0, 13), "2 per stream,");
}

/// The figures are the verifier's own.
TEST(ProofReport, FiguresAreThoseOfTheProofs) {
  tools::PlanAnswer answer = answer_to("allreduce", "TORII_ALGORITHM=ring\n");
  Proofs& proofs = answer.verdict->proofs;
  int figure = 100;
  for (int* member : {&proofs.results, &proofs.steps, &proofs.writes, &proofs.bundled, &proofs.shared,
                      &proofs.read_in_place, &proofs.write_in_place, &proofs.read_privately, &proofs.offers,
                      &proofs.sent_in_place, &proofs.lists, &proofs.transfers, &proofs.rings}) {
    *member = figure++;
  }
  const tools::Report report = report_of(answer);
  EXPECT_EQ(line_of(report, "in place"),
            "211 streams work in place and by value: 105 read an operand, 106 write a "
            "result");
  std::set<int> seen;
  for (const auto& [name, value] : report.json.at("verdict").at("proofs").items()) seen.insert(value.get<int>());
  EXPECT_EQ(seen.size(), 13U);
  EXPECT_EQ(*seen.begin(), 100);
  EXPECT_EQ(*seen.rbegin(), 112);
  EXPECT_EQ(report.json.at("verdict").at("proofs").at("transfers"), 111);
  EXPECT_EQ(line_of(report, "one signal").substr(0, 11), "111 blocks ");
}

TEST(ProofReport, PlansWithEachPropertyShowIt) {
  const tools::Report exchange = report_of(answer_to("alltoall", "TORII_ALGORITHM=direct\n"));
  EXPECT_EQ(line_of(exchange, "one signal"),
            "12 blocks go in place in portions, with one signal or one release at the end");
  EXPECT_EQ(line_of(exchange, "data"), "16 result blocks hold the operand that they should");
  const tools::Report bundles = report_of(answer_to("all_gather", "TORII_ALGORITHM=recursive_doubling\n", 6, "384"));
  EXPECT_EQ(line_of(bundles, "bundles"), "12 streams signal a shared slot once, after its last message");
  EXPECT_EQ(line_of(bundles, "linear programs"),
            "6 ranks run the plan as a list of steps if the vector has one segment");
  const tools::Report barrier = report_of(answer_to("barrier", ""));
  EXPECT_EQ(line_of(barrier, "data"), "4 ranks: no rank leaves before all have entered");
  EXPECT_EQ(line_of(barrier, "buffers"), "none");
  const tools::Report broadcast = report_of(answer_to("broadcast", "TORII_ALGORITHM=node\n"));
  EXPECT_NE(line_of(broadcast, "private reads"), "none") << broadcast.text;
  EXPECT_NE(line_of(broadcast, "shared copies"), "none") << broadcast.text;
}

TEST(ProofReport, NothingIsProvedOfAFault) {
  tools::PlanAnswer answer = answer_to("allreduce", "");
  answer.verdict->faults = {"planted"};
  const tools::Report report = report_of(answer);
  EXPECT_EQ(report.code, 1);
  EXPECT_EQ(report.text, "proof     FAULTS\n          planted\n");
  EXPECT_FALSE(report.json.at("verdict").contains("proofs"));
  answer.verdict.reset();
  EXPECT_TRUE(report_of(answer).json.at("verdict").is_null());
}

}  // namespace
}  // namespace torii::tests
