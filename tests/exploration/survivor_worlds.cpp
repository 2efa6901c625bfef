// SPDX-License-Identifier: Apache-2.0
// Callers of survivors, and what they must have in the end. Instrumented as the code under test is.
#include "tests/exploration/survivor_worlds.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "api/agreement/node_survivors.hpp"
#include "runtime/base/platform.hpp"
#include "tests/exploration/station.hpp"

namespace torii::exploration {
namespace {

using Outcome = NodeSurvivors::Outcome;

/// The others all live. A rank that waits looks again when something has changed.
class Host final : public NodeSurvivors::Host {
 public:
  Host(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  bool lives(int) const override { return true; }
  std::string text(const std::vector<int>&) const override { return {}; }
  std::int64_t timeout_ns() const override { return 0; }
  void begin_wait() override { has_looked_ = false; }
  bool pause() override {
    if (!is_hasty) platform().yield();
    has_looked_ = true;
    return true;
  }
  bool is_over(bool) const override { return is_hasty && has_looked_; }

  bool is_hasty = false;

 private:
  int rank_;
  int ranks_;
  bool has_looked_ = false;
};

/// What a rank has at last, in its own memory.
struct Result {
  std::uint64_t kind;  ///< Outcome::Kind + 1; 0: it has not ended
  MemberSet members;
  std::uint64_t object;  ///< that of the new team, which others may touch once the team is made
};

constexpr std::size_t kResultOffset = std::size_t{64} << 10;
static_assert(sizeof(SurvivorsRecord) <= kResultOffset);

SurvivorsRecord& record_of(int rank) { return *reinterpret_cast<SurvivorsRecord*>(Station::instance().ground(rank)); }

class Survivors final : public World {
 public:
  explicit Survivors(std::vector<Caller> callers) : callers_(std::move(callers)) {}
  int ranks() const override { return static_cast<int>(callers_.size()); }
  void set_up(Explorer& explorer) override { Station::instance().set_up(explorer, ranks()); }

  void run(int rank) override {
    const Caller& caller = callers_[static_cast<std::size_t>(rank)];
    Host host(rank, ranks());
    NodeSurvivors survivors(host, NodeRounds(record_of, rank, ranks()));
    for (int call = 0;; ++call) {
      SurvivorProposal own = {};
      host.is_hasty = call < caller.hasty_calls;
      own.status = call == 0 && caller.refuses ? 1 : 0;
      for (const int member : caller.without) own.without.add(member);
      own.digest = own.without.words[0];
      for (const int member : caller.lost) own.without.add(member);
      own.memory_offset = 100 * static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(call);
      Outcome outcome = survivors.choose(own);
      if (outcome.kind == Outcome::Kind::chosen) {
        for (int member = 0; member < ranks(); ++member) {
          const bool is_in = outcome.members.has(member);
          if (is_in && survivors.proposal_of(member).memory_offset / 100 != static_cast<std::uint64_t>(member)) {
            explorer().fail("the proposal of a member is not its own");
          }
        }
        result(rank).object = 1;
        outcome = survivors.settle(outcome.members, nullptr);
      }
      if (outcome.kind == Outcome::Kind::failed || outcome.kind == Outcome::Kind::late) {
        if (outcome.kind == Outcome::Kind::failed && outcome.failure.status == 0) {
          explorer().fail("a failure has no reason");
        }
        continue;
      }
      for (int member = 0; member < ranks() && outcome.kind == Outcome::Kind::made; ++member) {
        if (outcome.members.has(member) && result(member).object != 1) explorer().fail("a member has no object");
      }
      result(rank).kind = static_cast<std::uint64_t>(outcome.kind) + 1;
      result(rank).members = outcome.members;
      return;
    }
  }

  std::string at_end() override {
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::string who = "rank " + std::to_string(rank);
      if (result(rank).kind == kLeftOut) {
        if (!is_left_out_by_others(rank)) return who + " was left out by nobody";
        continue;
      }
      if (result(rank).kind != kMade) return who + " has no team";
      for (int member = 0; member < ranks(); ++member) {
        if (!result(rank).members.has(member)) continue;
        const bool is_alike =
            result(member).kind == kMade && result(member).members.words[0] == result(rank).members.words[0];
        if (!is_alike) return who + " has a team with rank " + std::to_string(member) + ", which has not that team";
      }
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kMade = static_cast<std::uint64_t>(Outcome::Kind::made) + 1;
  static constexpr std::uint64_t kLeftOut = static_cast<std::uint64_t>(Outcome::Kind::left_out) + 1;
  static Result& result(int rank) {
    return *reinterpret_cast<Result*>(Station::instance().ground(rank) + kResultOffset);
  }
  bool is_left_out_by_others(int rank) const {
    for (const Caller& caller : callers_) {
      for (const std::vector<int>& list : {caller.without, caller.lost}) {
        if (std::ranges::find(list, rank) != list.end()) return true;
      }
    }
    return false;
  }

  std::vector<Caller> callers_;
};

class Rounds final : public World {
 public:
  int ranks() const override { return 2; }
  void set_up(Explorer& explorer) override { Station::instance().set_up(explorer, ranks()); }
  void run(int rank) override {
    NodeRounds rounds(record_of, rank, ranks());
    if (rank == 0) {
      for (std::uint64_t round = 1; round <= SurvivorsRecord::kPlaces + 1; ++round) fail(rounds, round);
    } else {
      come(rounds);
    }
  }

 private:
  static void fail(NodeRounds& rounds, std::uint64_t round) {
    rounds.open_after({.round = round - 1, .kind = NodeRounds::Kind::failed});
    SurvivorProposal proposal = {};
    proposal.digest = proposal.memory_offset = round;
    rounds.proposal(round, proposal);
    MemberSet members = {};
    members.words[0] = round;
    rounds.choose(rounds.state_of(round), members);
    RoundFailure failure = {};
    failure.status = static_cast<std::int32_t>(round);
    failure.absent.words[0] = round;
    failure.text[0] = static_cast<char>(round);
    rounds.fail(rounds.state_of(round), failure);
  }
  /// What belongs to a round is that of one round, or the round is gone.
  static void come(NodeRounds& rounds) {
    const NodeRounds::State newest = rounds.newest();
    if (newest.kind == NodeRounds::Kind::none) return;
    if (rounds.has_proposed(0, newest.round)) {
      const SurvivorProposal proposal = rounds.proposal_of(0, newest.round);
      const bool is_of_round = proposal.digest == newest.round && proposal.memory_offset == newest.round;
      if (!is_of_round && rounds.state_of(newest.round).kind != NodeRounds::Kind::none) {
        explorer().fail("a proposal is that of another round");
      }
    }
    NodeRounds::State state = rounds.state_of(newest.round);
    while (state.kind == NodeRounds::Kind::open) {
      platform().yield();
      state = rounds.state_of(newest.round);
    }
    if (state.kind == NodeRounds::Kind::chosen) {
      const std::optional<MemberSet> members = rounds.chosen(state);
      if (members && members->words[0] != state.round) explorer().fail("a choice is that of another round");
    }
    if (state.kind != NodeRounds::Kind::failed) return;
    const std::optional<RoundFailure> failure = rounds.failure(state);
    if (!failure) return;
    const bool is_of_round = static_cast<std::uint64_t>(failure->status) == state.round &&
                             failure->absent.words[0] == state.round &&
                             failure->text[0] == static_cast<char>(state.round);
    if (!is_of_round) {
      explorer().fail("a failure is that of another round");
    }
  }
};

}  // namespace

std::unique_ptr<World> rounds_of_survivors() { return std::make_unique<Rounds>(); }

std::unique_ptr<World> survivors(std::vector<Caller> callers) {
  return std::make_unique<Survivors>(std::move(callers));
}

}  // namespace torii::exploration
