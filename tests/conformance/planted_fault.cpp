// SPDX-License-Identifier: Apache-2.0
// The program that test_faults runs under the thread sanitizer: a reduce over threads with one fault planted, or none.
// Exit codes: 0 right result, 1 wrong or none, 2 bad command line; the sanitizer's own when it reports a race.
#include <cstdio>
#include <string>

#include "tests/conformance/plan_team.hpp"
#include "tools/operands.hpp"

namespace {

using namespace torii;
using namespace torii::tests;

int run_with(const std::string& fault) {
  PlanRequest request;
  request.collective = Collective::reduce;
  request.topology = Topology::node(2);
  request.tuning = {.segment_bytes = 256, .slots = 4, .window = 1};
  PlanRun run = make_run("binomial", request, 20 * 64);
  run.deadline_s = 5;
  // Within a node signals are stored by the executor itself, between nodes by the transport.
  if (fault == "none-between-nodes" || fault == "relaxed-signals") {
    run.nodes = {0, 1};
    run.relaxed_signals = fault == "relaxed-signals";
  } else if (fault == "ignored-counts") {
    run.ignores_counts = true;
  } else if (fault != "none") {
    return 2;
  }
  const FillOperand fill = [&run](int rank, int, std::byte* out) {
    fill_operand(run.type, 1, rank, 0, run.count, out);
  };
  const PlanOutcome outcome = run_plans(run, fill);
  if (!outcome.ok()) return 1;
  const PlanOutcome plain = run_plans(make_run("binomial", request, run.count), fill);
  return plain.ok() && plain.results[0] == outcome.results[0] ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int code = run_with(argc > 1 ? argv[1] : "");
  if (code == 2) std::fprintf(stderr, "usage: planted_fault none|none-between-nodes|relaxed-signals|ignored-counts\n");
  return code;
}
