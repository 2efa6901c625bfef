// SPDX-License-Identifier: Apache-2.0
// The digest of a plan set changes with every field of every struct in it, and with the declared order.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/golden/plan_digest.hpp"

namespace torii::golden {
namespace {

/// The order of a ring. Tests change one answer at a time.
struct TestOrder : TransferOrder {
  std::string named = "ring";
  int size = 2;
  int more_receiver = 0;
  int more_sender = 0;
  std::int8_t last_tie = 0;

  std::string_view name() const noexcept override { return named; }
  int transfers() const noexcept override { return size; }
  int receiver(int rank, int entry) const noexcept override { return (rank + entry + 1) % 3 + at(rank, more_receiver); }
  int sender(int rank, int entry) const noexcept override { return (rank + 2 - entry) % 3 + at(rank, more_sender); }
  Ties ties(int rank, int) const noexcept override { return {0, 0, static_cast<std::int8_t>(at(rank, last_tie))}; }
  /// Only the last rank's answers are changed: a digest that looks at the first rank alone sees nothing.
  static int at(int rank, int more) { return rank == 2 ? more : 0; }
};

struct Subject {
  std::shared_ptr<TestOrder> order = std::make_shared<TestOrder>();
  std::vector<Plan> plans = std::vector<Plan>(3);
};

Subject subject() {
  Subject made;
  for (int rank = 0; rank < 3; ++rank) {
    Plan& plan = made.plans[static_cast<std::size_t>(rank)];
    plan.rank = rank;
    plan.ranks = 3;
    Flow flow;
    flow.walk = {1, 2, 3, 4};
    flow.sources = {{0, 0}, {kOwn, 0}};
    flow.targets = {{0, 1}};
    flow.label = "up";
    plan.lanes = {{{flow, flow}, 2}, {{flow}, 3}};
    plan.in = {Stream{.peer = 1}, Stream{.peer = 2}};
    plan.out = {Stream{.peer = 1}, Stream{.peer = 2}};
    plan.exchange.order = made.order;
  }
  return made;
}

using Change = std::function<void(Subject&)>;

/// A change of the last plan.
template <typename Changed>
Change in_plan(Changed changed) {
  return [changed](Subject& s) { changed(s.plans.back()); };
}
template <typename Changed>
Change in_flow(Changed changed) {
  return [changed](Subject& s) { changed(s.plans.back().lanes.back().flows.back()); };
}
template <typename Changed>
Change in_streams(Changed changed, bool in) {
  return [changed, in](Subject& s) { changed(in ? s.plans.back().in.back() : s.plans.back().out.back()); };
}

std::map<std::string, Change> changes_of_plan() {
  return {
      {"a plan less", [](Subject& s) { s.plans.pop_back(); }},
      {"plans in another order", [](Subject& s) { std::swap(s.plans[0], s.plans[1]); }},
      {"rank", in_plan([](Plan& p) { ++p.rank; })},
      {"ranks", in_plan([](Plan& p) { ++p.ranks; })},
      {"dealing", in_plan([](Plan& p) { p.dealing = Dealing::block_cyclic; })},
      {"blocks", in_plan([](Plan& p) { ++p.blocks; })},
      {"slots", in_plan([](Plan& p) { ++p.slots; })},
      {"in_streams_max", in_plan([](Plan& p) { ++p.in_streams_max; })},
      {"out_streams_max", in_plan([](Plan& p) { ++p.out_streams_max; })},
      {"bundle_max", in_plan([](Plan& p) { ++p.bundle_max; })},
      {"lanes", in_plan([](Plan& p) { p.lanes.pop_back(); })},
      {"in", in_plan([](Plan& p) { p.in.pop_back(); })},
      {"out", in_plan([](Plan& p) { p.out.pop_back(); })},
      {"from in to out", in_plan([](Plan& p) { p.out.push_back(p.in.back()), p.in.pop_back(); })},
      {"lane.window", in_plan([](Plan& p) { ++p.lanes.front().window; })},
      {"lane.flows", in_plan([](Plan& p) { p.lanes.front().flows.pop_back(); })},
      {"a flow in another lane", in_plan([](Plan& p) {
         p.lanes.back().flows.push_back(p.lanes.front().flows.back());
         p.lanes.front().flows.pop_back();
       })},
  };
}

std::map<std::string, Change> changes_of_flow() {
  return {
      {"walk.first", in_flow([](Flow& f) { ++f.walk.first; })},
      {"walk.step", in_flow([](Flow& f) { f.walk.step = -f.walk.step; })},
      {"walk.count", in_flow([](Flow& f) { ++f.walk.count; })},
      {"walk.modulus", in_flow([](Flow& f) { ++f.walk.modulus; })},
      {"sources", in_flow([](Flow& f) { f.sources.pop_back(); })},
      {"order of sources", in_flow([](Flow& f) { std::swap(f.sources[0], f.sources[1]); })},
      {"source.stream", in_flow([](Flow& f) { ++f.sources[0].stream; })},
      {"source.position", in_flow([](Flow& f) { ++f.sources[1].position; })},
      {"keep", in_flow([](Flow& f) { f.keep = true; })},
      {"targets", in_flow([](Flow& f) { f.targets.clear(); })},
      {"target.stream", in_flow([](Flow& f) { ++f.targets[0].stream; })},
      {"target.position", in_flow([](Flow& f) { ++f.targets[0].position; })},
      {"from sources to targets", in_flow([](Flow& f) { f.targets.insert(f.targets.begin(), f.sources.back()); })},
      {"fold", in_flow([](Flow& f) { f.fold = Fold::canonical; })},
      {"label", in_flow([](Flow& f) { f.label = "down"; })},
  };
}

std::map<std::string, Change> changes_of_stream(bool in) {
  return {
      {"peer", in_streams([](Stream& s) { ++s.peer; }, in)},
      {"tag", in_streams([](Stream& s) { ++s.tag; }, in)},
      {"messages_per_segment", in_streams([](Stream& s) { ++s.messages_per_segment; }, in)},
      {"bundle", in_streams([](Stream& s) { ++s.bundle; }, in)},
      {"lend", in_streams([](Stream& s) { s.delivery = Delivery::read_in_place; }, in)},
      {"land", in_streams([](Stream& s) { s.delivery = Delivery::write_in_place; }, in)},
      {"handover", in_streams([](Stream& s) { s.delivery = Delivery::local; }, in)},
      {"wide", in_streams([](Stream& s) { s.wide = true; }, in)},
      {"is_awaited", in_streams([](Stream& s) { s.is_awaited = false; }, in)},
      {"ties x", in_streams([](Stream& s) { s.ties[0] = 1; }, in)},
      {"ties y", in_streams([](Stream& s) { s.ties[1] = 1; }, in)},
      {"ties z", in_streams([](Stream& s) { s.ties[2] = 1; }, in)},
      {"the other way of ties z", in_streams([](Stream& s) { s.ties[2] = -1; }, in)},
  };
}

std::map<std::string, Change> changes_of_exchange() {
  return {
      {"no exchange", in_plan([](Plan& p) { p.exchange.order = nullptr; })},
      {"in_flight", in_plan([](Plan& p) { ++p.exchange.in_flight; })},
      {"from", in_plan([](Plan& p) { p.exchange.from = 1; })},
      {"to", in_plan([](Plan& p) { p.exchange.to = 1; })},
      {"lends", in_plan([](Plan& p) { p.exchange.prefers_reads = true; })},
      {"order.name", [](Subject& s) { s.order->named = "list"; }},
      {"order.entries", [](Subject& s) { --s.order->size; }},
      {"order.receiver", [](Subject& s) { ++s.order->more_receiver; }},
      {"order.sender", [](Subject& s) { ++s.order->more_sender; }},
      {"order.ties", [](Subject& s) { s.order->last_tie = 1; }},
  };
}

/// Each change gives a digest of its own.
void expect_all_differ(const std::map<std::string, Change>& changes) {
  std::map<std::uint64_t, std::string> seen = {{digest_of(subject().plans), "no change"}};
  for (const auto& [what, change] : changes) {
    Subject changed = subject();
    change(changed);
    const auto [at, is_new] = seen.try_emplace(digest_of(changed.plans), what);
    EXPECT_TRUE(is_new) << "'" << what << "' gives the digest of '" << at->second << "'";
  }
  EXPECT_EQ(seen.size(), changes.size() + 1);
}

TEST(PlanDigest, ChangesWithEveryFieldOfAPlan) { expect_all_differ(changes_of_plan()); }
TEST(PlanDigest, ChangesWithEveryFieldOfAFlow) { expect_all_differ(changes_of_flow()); }
TEST(PlanDigest, ChangesWithEveryFieldOfAnInStream) { expect_all_differ(changes_of_stream(true)); }
TEST(PlanDigest, ChangesWithEveryFieldOfAnOutStream) { expect_all_differ(changes_of_stream(false)); }
TEST(PlanDigest, ChangesWithEveryFieldOfAnExchange) { expect_all_differ(changes_of_exchange()); }

/// Two objects with the same contents are the same order.
TEST(PlanDigest, LooksAtAnOrderAndNotAtItsAddress) {
  Subject changed = subject();
  changed.plans.back().exchange.order = std::make_shared<TestOrder>();
  EXPECT_EQ(digest_of(changed.plans), digest_of(subject().plans));
}

std::uint64_t digest_of_expression(const std::function<ExpressionId(ExpressionPool&)>& make) {
  ExpressionPool pool;
  Bytes bytes;
  append(pool, make(pool), bytes);
  return bytes.digest();
}

TEST(PlanDigest, ChangesWithTheExpression) {
  const auto fold = [](std::vector<int> ranks, bool rounded) {
    return [ranks, rounded](ExpressionPool& pool) {
      std::vector<ExpressionId> leaves;
      for (const int rank : ranks) leaves.push_back(pool.leaf(rank));
      return pool.fold(leaves, rounded);
    };
  };
  const auto nested = [](ExpressionPool& pool) {
    const ExpressionId pair[] = {pool.leaf(1), pool.leaf(2)};
    const ExpressionId both[] = {pool.leaf(0), pool.fold(pair, true)};
    return pool.fold(both, true);
  };
  std::map<std::uint64_t, int> seen;
  for (const auto& make : std::vector<std::function<ExpressionId(ExpressionPool&)>>{
           fold({0, 1, 2}, true), fold({0, 2, 1}, true), fold({0, 1, 2}, false), fold({0, 1}, true), nested,
           [](ExpressionPool& pool) { return pool.leaf(0); }, [](ExpressionPool&) { return kNoExpression; }}) {
    ++seen[digest_of_expression(make)];
  }
  EXPECT_EQ(seen.size(), 7U);
}

/// Equal plans with different declared orders have different digests.
TEST(PlanDigest, ChangesWithTheDeclaredOrder) {
  PlanRequest request;
  request.topology = Topology::node(4);
  const Algorithm& node = *find_algorithm("node");
  Algorithm other = node;
  other.order = [](const PlanRequest&, int block, ExpressionPool& pool) { return pool.leaf(block); };
  EXPECT_NE(digest_of(node, request), digest_of(other, request));
}

/// Fixed widths and byte order: this number is the same on every machine.
TEST(PlanDigest, HasAFixedForm) {
  Bytes bytes;
  bytes.number(-2);
  bytes.text("up");
  EXPECT_EQ(hexadecimal(bytes.digest()), "6155f6e76e6bd625");
  EXPECT_EQ(hexadecimal(0x0123456789abcdefULL), "0123456789abcdef");
}

}  // namespace
}  // namespace torii::golden
