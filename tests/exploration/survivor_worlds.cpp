// SPDX-License-Identifier: Apache-2.0
// Callers of survivors, and what they must have in the end. Instrumented as the code under test is.
#include "tests/exploration/survivor_worlds.hpp"

#include <string>
#include <utility>

#include "api/team/node_survivors.hpp"
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
  bool is_over() const override { return is_hasty && has_looked_; }

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
};

class Survivors final : public World {
  static constexpr std::size_t kResultOffset = std::size_t{64} << 10;
  static_assert(sizeof(SurvivorsRecord) <= kResultOffset);

 public:
  explicit Survivors(std::vector<Caller> callers) : callers_(std::move(callers)) {}
  int ranks() const override { return static_cast<int>(callers_.size()); }
  void set_up(Explorer& explorer) override { Station::instance().set_up(explorer, ranks()); }

  void run(int rank) override {
    const Caller& caller = callers_[static_cast<std::size_t>(rank)];
    Host host(rank, ranks());
    NodeSurvivors survivors(host, NodeRounds(record_of, rank, ranks()));
    for (int call = 0;; ++call) {
      RoundOffer own = {};
      host.is_hasty = call < caller.hasty_calls;
      own.status = call == 0 && caller.refuses ? 1 : 0;
      for (const int member : caller.without) own.without.add(member);
      own.digest = own.without.words[0];
      own.staging = 100 * static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(call);
      Outcome outcome = survivors.choose(own);
      if (outcome.kind == Outcome::Kind::chosen) {
        for (int member = 0; member < ranks(); ++member) {
          const bool is_in = outcome.members.has(member);
          if (is_in && survivors.offer_of(member).staging / 100 != static_cast<std::uint64_t>(member)) {
            explorer().fail("the offer of a member is not its own");
          }
        }
        outcome = survivors.settle(outcome.members, nullptr);
      }
      if (outcome.kind == Outcome::Kind::failed || outcome.kind == Outcome::Kind::late) {
        if (outcome.kind == Outcome::Kind::failed && outcome.failure.status == 0) {
          explorer().fail("a failure has no reason");
        }
        continue;
      }
      result(rank) = {static_cast<std::uint64_t>(outcome.kind) + 1, outcome.members};
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
  static SurvivorsRecord& record_of(int rank) {
    return *reinterpret_cast<SurvivorsRecord*>(Station::instance().ground(rank));
  }
  static Result& result(int rank) {
    return *reinterpret_cast<Result*>(Station::instance().ground(rank) + kResultOffset);
  }
  bool is_left_out_by_others(int rank) const {
    for (const Caller& caller : callers_) {
      for (const int member : caller.without) {
        if (member == rank) return true;
      }
    }
    return false;
  }

  std::vector<Caller> callers_;
};

}  // namespace

std::unique_ptr<World> survivors(std::vector<Caller> callers) {
  return std::make_unique<Survivors>(std::move(callers));
}

}  // namespace torii::exploration
