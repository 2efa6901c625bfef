// SPDX-License-Identifier: Apache-2.0
// Call classes: a call plan that was filled in for other calls of its class is that which the call alone would get.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/c/c_objects.hpp"
#include "api/calls/plan_maker.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii {
namespace {

std::string layout_text(const Layout& layout) {
  std::string text = std::to_string(layout.blocks()) + " blocks of " + std::to_string(layout.total_bytes()) +
                     " bytes, longest " + std::to_string(layout.longest_bytes()) + ", " +
                     std::to_string(layout.segments()) + " segments of " + std::to_string(layout.segment_bytes());
  for (int block = 0; block < layout.blocks(); ++block) {
    for (const std::int64_t segment : {std::int64_t{0}, layout.segments() - 1}) {
      layout.for_each_piece(block, segment, [&](const Piece& piece, std::size_t at) {
        text += " " + std::to_string(piece.offset_bytes) + "+" + std::to_string(piece.length_bytes) + "@" +
                std::to_string(at);
      });
    }
  }
  return text;
}

std::string text_of(const CallPlan& plan) {
  const auto& [segment_bytes, slots, window, one_shot, radix, common_root, lanes] = plan.selected->request.tuning;
  const CallShape& shape = plan.shape;
  const auto number = [](auto value) { return std::to_string(value) + " "; };
  return call_text(plan.spec) + ": " + std::string(plan.selected->algorithm->name) + " " + number(segment_bytes) +
         number(slots) + number(window) + number(one_shot) + number(radix) + number(common_root) +
         std::string(lanes.begin(), lanes.end()) + number(plan.selected->request.root) +
         number(static_cast<int>(plan.selected->request.determinism)) +
         number(static_cast<int>(plan.selected->widening)) + layout_text(shape.layout) + "; " +
         number(static_cast<int>(shape.type)) + number(shape.element_bytes) + number(shape.unit_bytes) +
         number(reinterpret_cast<std::uintptr_t>(shape.fold)) + number(shape.non_temporal) + number(shape.signature) +
         number(shape.operand_stride_bytes) + number(shape.block_bytes) + "; " + number(plan.input_bytes) +
         number(plan.result_bytes) + number(plan.input_shift_bytes) + number(plan.result_shift_bytes) +
         number(plan.record.count) + number(plan.record.kind) + number(plan.is_finished_at_end) +
         number(plan.sums_as_float) + number(plan.folds_leaves) + number(plan.operands) + number(plan.is_plain) +
         number(plan.selected->plan.blocks) + number(static_cast<int>(plan.selected->plan.dealing)) +
         number(plan.lengths != nullptr);
}

/// The classes of a team, each with one call plan that serves all of its calls.
class Classes {
 public:
  explicit Classes(const PlanMaker& maker) : maker_(maker) {}

  CallPlan& fill(const CallDescription& call) {
    CallClass& its_class = of(call);
    if (its_class.call_plans.empty()) its_class.call_plans.push_back(maker_.blank(call.spec, its_class));
    CallPlan& plan = *its_class.call_plans.front();
    maker_.fill(plan, call);
    return plan;
  }
  CallClass& of(const CallDescription& call) {
    const ClassKey key = maker_.key_of(call);
    for (const auto& known : all_) {
      if (known->serves(key, maker_.vector_bytes(call.spec, key))) return *known;
    }
    return *all_.emplace_back(maker_.make_class(call.spec, key));
  }

 private:
  const PlanMaker& maker_;
  std::vector<std::unique_ptr<CallClass>> all_;
};

/// Builds for sanitizers have no transport between nodes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasFabric = false;
#else
constexpr bool kHasFabric = true;
#endif

constexpr std::array kCollectives = {Collective::broadcast,      Collective::reduce,   Collective::allreduce,
                                     Collective::all_gather,     Collective::scan,     Collective::exscan,
                                     Collective::reduce_scatter, Collective::alltoall, Collective::scatter,
                                     Collective::gather,         Collective::barrier};

CallDescription draw(std::mt19937_64& random, int ranks, const std::vector<std::size_t>& block_counts) {
  constexpr std::array kTypes = {Type::f32, Type::f64, Type::u8, Type::f16, Type::i32};
  constexpr std::array kOps = {Op::sum, Op::max, Op::min};
  CallDescription call;
  CallSpec& spec = call.spec;
  spec.collective = kCollectives[random() % kCollectives.size()];
  if (spec.collective == Collective::barrier) return call;
  spec.type = kTypes[random() % kTypes.size()];
  spec.op = number_of(kOps[random() % kOps.size()]);
  const bool may_average =
      spec.op == OpNumber::sum && !is_prefix(spec.collective) && spec.type != Type::u8 && spec.type != Type::i32;
  if (may_average && random() % 8 == 0) spec.op = OpNumber::average;
  spec.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
  const std::size_t power = std::size_t{1} << random() % 24;
  spec.count = power + random() % power - (random() % 4 == 0 ? 1 : 0);
  if (random() % 16 == 0) spec.count = 0;
  spec = spec_of(spec.collective, spec.type, spec.op, spec.root, spec.count);
  if (spec.collective == Collective::reduce_scatter && random() % 2 == 0) take_block_counts(block_counts, call);
  return call;
}

void expect_alone(const PlanMaker& maker, const CallPlan& filled, const CallDescription& call) {
  ASSERT_EQ(text_of(filled), text_of(*maker.make(call)));
}

/// The lengths at both ends of the call's class, and one element outside of them.
void check_ends(const PlanMaker& maker, Classes& classes, CallDescription call, int ranks) {
  const CallClass& its_class = classes.of(call);
  if (call.block_counts() != nullptr || call.spec.collective == Collective::barrier) return;
  const std::size_t parts = has_block_per_rank(call.spec.collective) ? static_cast<std::size_t>(ranks) : 1;
  std::size_t unit = parts;  // all types are of a power of two
  while (maker.vector_bytes(call.spec, its_class.key) > call.spec.count * unit) unit *= 2;
  const ByteInterval holds = its_class.selected->holds;
  for (const std::size_t bytes : {holds.least, holds.most}) {
    if (bytes > std::size_t{1} << 40) continue;
    for (std::size_t count = bytes / unit; count <= bytes / unit + 1; ++count) {
      call.spec.count = count;
      expect_alone(maker, classes.fill(call), call);
    }
  }
}

void check_random_calls(torii_team* handle, const TeamOptions& options, unsigned seed) {
  Team& team = *handle->team;
  const PlanMaker maker(team.members(), options, ring_sizes(team.ranks(), 2));
  Classes classes(maker);
  std::mt19937_64 random(seed);
  int calls = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::size_t> block_counts;
    for (int rank = 0; rank < team.ranks(); ++rank) block_counts.push_back(random() % 1000);
    const CallDescription call = draw(random, team.ranks(), block_counts);
    try {
      CallPlan& plan = classes.fill(call);
      ++calls;
      expect_alone(maker, plan, call);
      check_ends(maker, classes, call, team.ranks());
      CallPlan& again = classes.fill(call);
      const CountRange counts = again.counts;
      if (counts.least > counts.most) continue;
      for (const std::size_t count : {counts.least, std::min(counts.most, std::size_t{1} << 30)}) {
        CallDescription other = call;
        other.spec.count = count;
        maker.set_count(again, count);
        expect_alone(maker, again, other);
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.status(), Status::unsupported) << error.what();
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(calls, 100);
}

TEST(CallClasses, AFilledCallPlanIsThatOfTheCallAlone) {
  struct Case {
    int ranks;
    const char* topology;
    const char* algorithm;
    const char* determinism;
    std::size_t segment_bytes;
    bool several_nodes;
  };
  unsigned seed = 1;
  for (const Case& one : {Case{2, "", "", "", 0, false}, Case{3, "", "", "", 0, false}, Case{4, "", "", "", 0, true},
                          Case{4, "", "", "canonical", 0, false}, Case{4, "torus:2x2", "", "", 0, false},
                          Case{5, "", "node", "", 0, false}, Case{4, "", "", "", 512, false}}) {
    if (one.several_nodes && !kHasFabric) continue;
    tests::ThreadTeam ranks;
    ranks.ranks = one.ranks;
    ranks.settings = "TIMEOUT=30\nARENA=1G";
    if (one.several_nodes) ranks.nodes = {0, 0, 1, 1};
    TeamOptions options;
    options.topology = one.topology;
    options.algorithm = one.algorithm;
    options.determinism = one.determinism;
    options.segment_bytes = one.segment_bytes;
    ++seed;
    tests::run_as_threads(ranks, [&](torii_context*, torii_team* team) {
      // One rank's threads at a time would be enough; all must come to the end of the team together.
      check_random_calls(team, options, seed);
    });
  }
}

std::shared_ptr<const ClassPlan> shared(const PlanMaker& maker, std::size_t count, int root = 0) {
  CallDescription call;
  call.spec = {Collective::broadcast, Type::f64, OpNumber::sum, 0, root, count};
  return maker.share_class(call.spec, maker.key_of(call))->selected;
}

TEST(CallClasses, TeamsThatChooseAlikeShareThem) {
  tests::ThreadTeam ranks;
  ranks.ranks = 3;
  tests::run_as_threads(ranks, [](torii_context*, torii_team* team) {
    const Membership& members = team->team->members();
    TeamOptions options;
    const RingSizes rings = ring_sizes(3, 2);
    const PlanMaker one(members, options, rings);
    const PlanMaker like(members, options, rings);
    const auto selected = shared(one, 100);
    EXPECT_EQ(shared(like, 101), selected) << "a length of the class";
    EXPECT_NE(shared(like, 100, 1), selected);
    EXPECT_NE(shared(like, 1'000'000), selected);
    EXPECT_NE(shared(PlanMaker(members, options, ring_sizes(3, 4)), 100), selected);
    options.segment_bytes = 1024;
    EXPECT_NE(shared(PlanMaker(members, options, rings), 100), selected);
    options = {};
    options.determinism = "canonical";
    EXPECT_NE(shared(PlanMaker(members, options, rings), 100), selected);
    options = {};
    options.topology = "mesh:3";
    EXPECT_NE(shared(PlanMaker(members, options, rings), 100), selected);
  });
}

/// The oldest goes when there is no room, and all go when the last team has gone and others have asked since.
TEST(CallClasses, SharedOnesAreForgotten) {
  tests::ThreadTeam ranks;
  ranks.ranks = 1;
  tests::run_as_threads(ranks, [](torii_context* context, torii_team*) {
    const auto rules = [](int side = 7) {
      ChoiceRules made;
      made.topology = Topology::node(side);
      return made;
    };
    auto known = context->context.known_classes(rules());
    ASSERT_EQ(context->context.known_classes(rules()), known);
    const auto plan = std::make_shared<const ClassPlan>();
    for (int root = 0; root < 257; ++root) known->add({ClassKey{Collective::broadcast, root}, plan});
    EXPECT_EQ(known->find(ClassKey{Collective::broadcast, 0}, 8), nullptr);
    EXPECT_EQ(known->find(ClassKey{Collective::broadcast, 1}, 8), plan);
    EXPECT_EQ(known->find(ClassKey{Collective::broadcast, 256}, 8), plan);
    known.reset();
    for (const int others : {2, 3, 4}) (void)context->context.known_classes(rules(others));
    EXPECT_EQ(context->context.known_classes(rules())->find(ClassKey{Collective::broadcast, 1}, 8), plan);
    for (const int others : {2, 3, 4, 5}) (void)context->context.known_classes(rules(others));
    EXPECT_EQ(plan.use_count(), 1);
    EXPECT_EQ(context->context.known_classes(rules())->find(ClassKey{Collective::broadcast, 1}, 8), nullptr);
  });
}

/// One thread's team ends while another one makes its own.
TEST(CallClasses, SharedOnesMayGoWhileOthersAreSought) {
  tests::ThreadTeam ranks;
  ranks.ranks = 1;
  tests::run_as_threads(ranks, [](torii_context* context, torii_team*) {
    const auto seek = [&] {
      for (int i = 0; i < 20000; ++i) {
        ChoiceRules rules;
        rules.rank = i % 2;
        EXPECT_EQ(context->context.known_classes(rules)->rules().rank, i % 2);
      }
    };
    std::thread other(seek);
    seek();
    other.join();
  });
}

/// Callers of two teams meet new classes at once.
TEST(CallClasses, ThreadsMayShareThem) {
  tests::ThreadTeam ranks;
  ranks.ranks = 1;
  tests::run_as_threads(ranks, [](torii_context*, torii_team* team) {
    const Membership& members = team->team->members();
    const auto meet_all = [&](std::size_t from) {
      const PlanMaker maker(members, TeamOptions{}, ring_sizes(members.ranks(), 2));
      for (std::size_t count = 1; count < (std::size_t{1} << 20); count += count / 2 + 1) {
        EXPECT_TRUE(shared(maker, count + from)->holds.contains(8 * (count + from)));
      }
    };
    std::thread other(meet_all, 0);
    meet_all(1);
    other.join();
  });
}

}  // namespace
}  // namespace torii
