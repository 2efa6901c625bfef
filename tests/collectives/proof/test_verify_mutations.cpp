// SPDX-License-Identifier: Apache-2.0
// Every row of the catalogue, broken on purpose: each mutation of its plans is rejected. Where a mutation can be
// harmless (two flows that do not depend on each other swapped, a reader that messages wait for anyway) random runs
// have to confirm it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>

#include "collectives/building/plan_builder.hpp"
#include "collectives/proof/verify.hpp"
#include "tests/collectives/algorithms/cluster_trees.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"
#include "tests/support/test_run.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::tests {
namespace {

using Random = std::mt19937_64;

std::size_t pick(std::size_t count, Random& random) { return static_cast<std::size_t>(random() % count); }

struct Case {
  const Algorithm* algorithm;
  PlanRequest request;
  std::vector<Plan> plans;
  std::vector<ExpressionId> expected;
  int slots_least;
  std::string text() const { return std::string(algorithm->name) + " " + describe(request); }
};

ExpressionPool& pool() {
  static ExpressionPool shared;
  return shared;
}

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  for (const Topology& topology :
       {Topology::node(2), Topology::node(5), Topology::node(8, 2), Topology::torus({3, 2, 2}),
        Topology::torus({3, 3, 3}), Topology::torus({4, 3, 1}, {false, false, false}),
        Topology::torus({2, 2, 1}, {true, true, true}, 2, 2), Topology::of_tree(sites_tree({2, 1}), "sites")}) {
    for (const Tuning& tuning : {Tuning{4096, 4, 2, false}, Tuning{4096, 4, 4, true}}) {
      for (const PlanRequest& request : requests_on(topology, tuning)) {
        if (request.wide_wire) continue;
        for (const Algorithm& algorithm : catalogue()) {
          if (!algorithm.why_not(request).empty()) continue;
          const Verdict verdict = verify(algorithm, request, pool());
          EXPECT_TRUE(verdict.ok()) << algorithm.name << " " << describe(request) << ": " << verdict.faults.front();
          if (!verdict.ok()) continue;
          std::vector<Plan> plans = plan_all(algorithm, request);
          if (plans.front().exchange.exists())
            continue;  // nothing of theirs can be broken here: test_verify_exchanges.cpp
          cases.push_back({&algorithm, request, std::move(plans), verdict.result_expression, verdict.slots_least});
        }
      }
    }
  }
  return cases;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = make_cases();
  return all;
}

Verdict verdict_of(const Case& base, const std::vector<Plan>& plans) {
  DeclaredOrder order;
  if (combines(base.request.collective)) {
    order = [&](int block, ExpressionPool& into) { return base.algorithm->order(base.request, block, into); };
  }
  return verify(base.request, plans, pool(), order);
}

Lane* random_lane(std::vector<Plan>& plans, Random& random, std::size_t flows_least) {
  constexpr int kTries = 50;
  for (int i = 0; i < kTries; ++i) {
    Plan& plan = plans[pick(plans.size(), random)];
    if (plan.lanes.empty()) continue;
    Lane& lane = plan.lanes[pick(plan.lanes.size(), random)];
    if (lane.flows.size() >= flows_least) return &lane;
  }
  return nullptr;
}

/// Changes `plans` at a random place, or returns false when there is nothing to change.
using Mutation = std::function<bool(std::vector<Plan>& plans, Random& random)>;

bool drop_flow(std::vector<Plan>& plans, Random& random) {
  Lane* lane = random_lane(plans, random, 1);
  if (lane == nullptr) return false;
  lane->flows.erase(lane->flows.begin() + static_cast<std::ptrdiff_t>(pick(lane->flows.size(), random)));
  return true;
}

bool duplicate_flow(std::vector<Plan>& plans, Random& random) {
  Lane* lane = random_lane(plans, random, 1);
  if (lane == nullptr) return false;
  const Flow copy = lane->flows[pick(lane->flows.size(), random)];
  lane->flows.push_back(copy);
  return !copy.sources.empty() || !copy.targets.empty();
}

bool swap_flows(std::vector<Plan>& plans, Random& random) {
  Lane* lane = random_lane(plans, random, 2);
  if (lane == nullptr) return false;
  const std::size_t first = pick(lane->flows.size() - 1, random);
  std::swap(lane->flows[first], lane->flows[first + 1]);
  return true;
}

bool swap_sources(std::vector<Plan>& plans, Random& random) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    Lane* lane = random_lane(plans, random, 1);
    if (lane == nullptr) return false;
    std::vector<StreamEnd>& sources = lane->flows[pick(lane->flows.size(), random)].sources;
    if (sources.size() < 2) continue;
    const std::size_t first = pick(sources.size() - 1, random);
    std::swap(sources[first], sources[first + 1]);
    return true;
  }
  return false;
}

bool remove_keep(std::vector<Plan>& plans, Random& random) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    Lane* lane = random_lane(plans, random, 1);
    if (lane == nullptr) return false;
    Flow& flow = lane->flows[pick(lane->flows.size(), random)];
    if (!flow.keep) continue;
    flow.keep = false;
    return true;
  }
  return false;
}

bool shift_position(std::vector<Plan>& plans, Random& random) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    Lane* lane = random_lane(plans, random, 1);
    if (lane == nullptr) return false;
    Flow& flow = lane->flows[pick(lane->flows.size(), random)];
    std::vector<StreamEnd>& ends = random() % 2 == 0 ? flow.sources : flow.targets;
    if (ends.empty() || ends.front().stream == kOwn) continue;
    ++ends.front().position;
    return true;
  }
  return false;
}

/// Both ends agree that a stream exists, yet one flow no longer feeds it with what the other one expects.
bool drop_source(std::vector<Plan>& plans, Random& random) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    Lane* lane = random_lane(plans, random, 1);
    if (lane == nullptr) return false;
    std::vector<StreamEnd>& sources = lane->flows[pick(lane->flows.size(), random)].sources;
    if (sources.size() < 2) continue;
    sources.erase(sources.begin() + static_cast<std::ptrdiff_t>(pick(sources.size(), random)));
    return true;
  }
  return false;
}

/// A call whose operand is read in place does not wait for its readers.
bool await_no_reader(std::vector<Plan>& plans, Random& random) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    Plan& sender = plans[pick(plans.size(), random)];
    if (sender.out.empty()) continue;
    Stream& out = sender.out[pick(sender.out.size(), random)];
    if (!out.is_awaited || out.delivery != Delivery::read_in_place) continue;
    out.is_awaited = false;
    for (Stream& in : plans[static_cast<std::size_t>(out.peer)].in) {
      if (in.peer == sender.rank && in.tag == out.tag) in.is_awaited = false;
    }
    return true;
  }
  return false;
}

/// The receiver counts other messages than the sender.
bool count_otherwise(std::vector<Plan>& plans, Random& random) {
  Plan& receiver = plans[pick(plans.size(), random)];
  if (receiver.in.empty()) return false;
  Stream& in = receiver.in[pick(receiver.in.size(), random)];
  in.messages_per_segment += in.messages_per_segment > 1 && random() % 2 == 0 ? -1 : 1;
  return true;
}

/// The receiver has two streams from a rank in another order of tags than the sender.
bool reorder_tags(std::vector<Plan>& plans, Random& random) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    Plan& receiver = plans[pick(plans.size(), random)];
    if (receiver.in.size() < 2) continue;
    Stream& one = receiver.in[pick(receiver.in.size(), random)];
    Stream& other = receiver.in[pick(receiver.in.size(), random)];
    if (one.peer != other.peer || one.tag == other.tag || one.peer == receiver.rank) continue;
    std::swap(one.tag, other.tag);
    return true;
  }
  return false;
}

/// Each flow as flows of one step, so that its messages need not follow one another.
void split_flows(Plan& plan) {
  for (Lane& lane : plan.lanes) {
    std::vector<Flow> steps;
    for (const Flow& flow : lane.flows) {
      for (int place = 0; place < flow.walk.count; ++place) {
        Flow step = flow;
        step.walk = {flow.walk.block(place), 1, 1, flow.walk.modulus};
        for (std::vector<StreamEnd>* ends : {&step.sources, &step.targets}) {
          for (StreamEnd& end : *ends) end = end.stream == kOwn ? end : at(end, place);
        }
        steps.push_back(std::move(step));
      }
    }
    lane.flows = std::move(steps);
  }
}

/// Four messages of a stream that follow one another, and the numbers that they have in another order.
struct Renumbering {
  int first;
  std::array<int, 4> numbers = {0, 1, 2, 3};

  void apply(std::vector<StreamEnd>& ends, std::size_t stream) const {
    for (StreamEnd& end : ends) {
      const int place = end.position - first;
      if (end.stream != stream || place < 0 || place >= static_cast<int>(numbers.size())) continue;
      end.position = static_cast<std::uint16_t>(first + numbers[static_cast<std::size_t>(place)]);
    }
  }
};

/// Both ends agree on other numbers for some messages of a stream, so that these are sent and taken in another order.
/// There are as few slots as most plans need.
bool renumber_messages(std::vector<Plan>& plans, Random& random) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    Plan& sender = plans[pick(plans.size(), random)];
    if (sender.out.empty()) continue;
    const std::size_t number = pick(sender.out.size(), random);
    const Stream& out = sender.out[number];
    if (out.messages_per_segment < 4 || out.bundle > 1 || out.peer == sender.rank) continue;
    Plan& receiver = plans[static_cast<std::size_t>(out.peer)];
    const auto in = std::ranges::find_if(
        receiver.in, [&](const Stream& one) { return one.peer == sender.rank && one.tag == out.tag; });
    Renumbering other = {static_cast<int>(pick(static_cast<std::size_t>(out.messages_per_segment - 3), random))};
    std::ranges::shuffle(other.numbers, random);
    for (Plan& plan : plans) plan.slots = 2;
    split_flows(sender);
    split_flows(receiver);
    for (Lane& lane : sender.lanes) {
      for (Flow& flow : lane.flows) other.apply(flow.targets, number);
    }
    for (Lane& lane : receiver.lanes) {
      for (Flow& flow : lane.flows) other.apply(flow.sources, static_cast<std::size_t>(in - receiver.in.begin()));
    }
    return true;
  }
  return false;
}

bool always(const PlanRequest&) { return true; }
bool not_barrier(const PlanRequest& request) { return request.collective != Collective::barrier; }
bool only_combining(const PlanRequest& request) { return combines(request.collective); }

struct Tally {
  int tried = 0;
  int rejected = 0;
  int by_deadlock = 0;
};

/// Tries a mutation on every case that it concerns; every one has to be rejected.
Tally reject_all(const std::string& part, const Mutation& mutation, bool (*concerns)(const PlanRequest&)) {
  Tally tally;
  for (const Seed& seed : seeds_of("verify_mutations_test/" + part, is_full() ? 20 : 3)) {
    Random random(seed.value);
    for (const Case& base : cases()) {
      if (!concerns(base.request)) continue;
      std::vector<Plan> plans = base.plans;
      if (!mutation(plans, random)) continue;
      ++tally.tried;
      if (!verdict_of(base, plans).ok()) {
        ++tally.rejected;
      } else {
        ADD_FAILURE() << base.text() << ": a mutated plan set passes; " << seed;
      }
    }
  }
  EXPECT_GT(tally.tried, 0);
  return tally;
}

/// Tries a mutation that may be harmless: what passes has to survive random runs.
Tally reject_what_fails(const std::string& part, const Mutation& mutation, int counts_every = 0) {
  Tally tally;
  const std::uint64_t runs = is_full() ? 3 : 1;
  for (const Seed& seed : seeds_of("verify_mutations_test/" + part, is_full() ? 5 : 1)) {
    Random random(seed.value);
    for (const Case& base : cases()) {
      std::vector<Plan> plans = base.plans;
      if (!mutation(plans, random)) continue;
      ++tally.tried;
      if (const Verdict verdict = verdict_of(base, plans); !verdict.ok()) {
        ++tally.rejected;
        if (verdict.faults.front().starts_with("deadlock")) ++tally.by_deadlock;
        continue;
      }
      for (std::uint64_t run = 0; run < runs; ++run) {
        EXPECT_EQ(run_randomly(base.request, plans, base.expected, pool(), {seed.value + run, 5, 2, counts_every}), "")
            << base.text() << "; " << seed;
      }
    }
  }
  EXPECT_GT(tally.rejected, 0);
  return tally;
}

TEST(VerifyMutations, EveryRowIsTried) {
  std::map<std::string_view, int> counts;
  for (const Case& base : cases()) ++counts[base.algorithm->name];
  const auto rows = catalogue();
  // Those of one order are pairwise exchanges for every block.
  const auto only_exchanges =
      std::ranges::count_if(rows, [](const Algorithm& row) { return row.name.starts_with("a2a"); });
  EXPECT_EQ(counts.size(), rows.size() - static_cast<std::size_t>(only_exchanges));
}

TEST(VerifyMutations, DroppedFlow) { reject_all("dropped_flow", drop_flow, always); }
TEST(VerifyMutations, DuplicatedFlow) { reject_all("duplicated_flow", duplicate_flow, always); }
TEST(VerifyMutations, SwappedSources) { reject_all("swapped_sources", swap_sources, only_combining); }
TEST(VerifyMutations, DroppedSource) { reject_all("dropped_source", drop_source, not_barrier); }
TEST(VerifyMutations, RemovedKeep) { reject_all("removed_keep", remove_keep, not_barrier); }
TEST(VerifyMutations, ShiftedPosition) { reject_all("shifted_position", shift_position, always); }
TEST(VerifyMutations, SwappedFlows) { reject_what_fails("swapped_flows", swap_flows); }
TEST(VerifyMutations, ReadersNotAwaited) { reject_what_fails("readers", await_no_reader); }

TEST(VerifyMutations, CountsThatDiffer) { reject_all("other_counts", count_otherwise, always); }
TEST(VerifyMutations, TagsInAnotherOrder) { reject_what_fails("other_tags", reorder_tags); }

TEST(VerifyMutations, MessagesInAnotherOrder) {
  const Tally tally = reject_what_fails("other_messages", renumber_messages, 1);
  EXPECT_GT(tally.by_deadlock, 0);
}

/// With a slot fewer than declared, senders that wait for counts deadlock.
TEST(VerifyMutations, OneSlotFewerThanDeclared) {
  int above_one = 0;
  for (const Case& base : cases()) {
    const int least = slots_least(*base.algorithm, base.request);
    for (const int slots : {least, least - 1}) {
      if (slots == 0) continue;
      std::vector<Plan> plans = base.plans;
      for (Plan& plan : plans) plan.slots = slots;
      const std::string fault = run_randomly(base.request, plans, base.expected, pool(), {1, 2, 1, 1});
      EXPECT_EQ(fault.find("deadlock") != std::string::npos, slots < least) << base.text() << ": " << fault;
    }
    above_one += least > 1 ? 1 : 0;
  }
  EXPECT_GT(above_one, 0);
}

TEST(VerifyMutations, OneSlotFewer) {
  int above_one = 0;
  for (const Case& base : cases()) {
    std::vector<Plan> plans = base.plans;
    const auto with_slots = [&](int slots) {
      for (Plan& plan : plans) plan.slots = slots;
      return verdict_of(base, plans).ok();
    };
    EXPECT_TRUE(with_slots(base.slots_least)) << base.text();
    EXPECT_FALSE(with_slots(base.slots_least - 1)) << base.text();
    above_one += base.slots_least > 1 ? 1 : 0;
  }
  EXPECT_GT(above_one, 0) << "no case in which a slot could be missing";
}

}  // namespace
}  // namespace torii::tests
