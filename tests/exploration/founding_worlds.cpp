// SPDX-License-Identifier: Apache-2.0
// Founders of teams, and what they must have in the end. Instrumented as the code under test is.
#include "tests/exploration/founding_worlds.hpp"

#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "api/agreement/node_founding.hpp"
#include "runtime/base/platform.hpp"
#include "tests/exploration/station.hpp"

namespace torii::exploration {
namespace {

constexpr int kPlaces[] = {0, 1, 2};
constexpr int kAttemptsMost = 8;

/// In the memory of each rank: its objects, one for each attempt, which others may touch once the team is made.
constexpr std::size_t kObjectsOffset = std::size_t{128} << 10;
using Objects = std::array<std::uint64_t, kAttemptsMost>;
Objects& objects_of(int rank) { return *reinterpret_cast<Objects*>(Station::instance().ground(rank) + kObjectsOffset); }
/// And its teams.
constexpr std::size_t kTeamsOffset = kObjectsOffset + 4096;
std::uint64_t& teams_of(int rank) {
  return *reinterpret_cast<std::uint64_t*>(Station::instance().ground(rank) + kTeamsOffset);
}
/// And whether it has died. It then has nothing but its slot behind it.
std::atomic<std::uint64_t>& death_of(int rank) {
  constexpr std::size_t kOffset = kTeamsOffset + 4096;
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(Station::instance().ground(rank) + kOffset);
}
constexpr std::uint64_t kOffsetsPerRank = 64;

/// A rank that waits looks again when something has changed.
class Founder final : public NodeFounding::Host {
 public:
  bool lives(int other) const override { return !has_ended(other); }
  bool has_ended(int other) const override { return death_of(other).load(std::memory_order_relaxed) != 0; }
  void ring(int) override {}
  void begin_wait() override { has_looked_ = false; }
  bool pause(bool (*)(void*), void*) override {
    if (!is_hasty) platform().yield();
    has_looked_ = true;
    return true;
  }
  bool is_over() const override { return is_hasty && has_looked_; }
  std::int64_t now_ns() const override { return 0; }
  std::int64_t late_ns() const override { return 1; }
  FoundingFailure lost(int member) const override { return because(1, member); }
  FoundingFailure late(const MemberSet& absent, bool) const override { return because(2, absent.lowest()); }
  FoundingFailure no_room() const override { return because(3, 0); }
  FoundingFailure refusal(const Trouble&) const override { return because(4, rank); }
  FoundingFailure other_members(std::span<const int>) const override { return because(5, rank); }
  FoundingFailure other_text(std::string_view text) const override {
    if (text != "text") explorer().fail("the text is not that of the opener");
    return because(6, rank);
  }

  int rank = 0;
  bool is_hasty = false;

 private:
  static FoundingFailure because(int status, int member) {
    FoundingFailure failure = {status, member, {}};
    failure.text[0] = static_cast<char>('0' + status);
    return failure;
  }
  bool has_looked_ = false;
};

class Foundings final : public World {
 public:
  Foundings(std::vector<std::vector<FoundingCall>> calls, int entries) : calls_(std::move(calls)), entries_(entries) {}
  int ranks() const override { return static_cast<int>(calls_.size()); }
  void set_up(Explorer& explorer) override { Station::instance().set_up(explorer, ranks()); }

  void run(int rank) override {
    FoundingBoard board(Station::instance().ground(0), ranks(), 0, entries_);
    FoundingOpener opener(board, 0);
    int attempt = 0;
    for (const FoundingCall& call : calls_[static_cast<std::size_t>(rank)]) {
      if (call.dies_inside) {
        while (!board.enter(1, rank)) platform().yield();
      }
      if (call.dies || call.dies_inside) {
        death_of(rank).store(1, std::memory_order_relaxed);
        return;
      }
      for (bool is_first = true; !found(rank, call, is_first, attempt, board, opener); is_first = false) {
        if (call.has_no_team) break;
        if (attempt == kAttemptsMost) explorer().fail("a rank needs too many calls");
      }
      ++teams_of(rank);
    }
  }

  std::string at_end() override {
    for (int rank = 0; rank < ranks(); ++rank) {
      const auto& calls = calls_[static_cast<std::size_t>(rank)];
      const bool dies = calls.back().dies || calls.back().dies_inside;
      if (teams_of(rank) + (dies ? 1 : 0) != calls.size()) return "a rank has not all its teams";
    }
    return {};
  }

 private:
  bool found(int rank, const FoundingCall& call, bool is_first, int& attempt, const FoundingBoard& board,
             FoundingOpener& opener) const {
    Founder founder;
    int member = 0;
    while (call.members[static_cast<std::size_t>(member)] != rank) ++member;
    founder.rank = member;
    founder.is_hasty = is_first && call.is_hasty;
    Trouble refusal;
    if (is_first && call.refuses) refusal.status = Status::invalid_argument;
    Trouble no_object = refusal;
    if (is_first && call.fails_object) no_object.status = Status::no_resource;
    const FoundingTerms terms = {1, is_first && call.differs ? 2U : 1U, "text", call.members, {kPlaces, 3}};
    NodeFounding founding(founder, terms, member, 0, board, rank == 0 ? &opener : nullptr);
    const int own = attempt++;
    if (!founding.come(kOffsetsPerRank * static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(own), refusal)) {
      return fails(founding);
    }
    std::array<std::uint64_t, 3> offsets{};
    for (std::size_t other = 0; other < call.members.size(); ++other) {
      offsets[other] = founding.offset_of(static_cast<int>(other));
      if (offsets[other] / kOffsetsPerRank != static_cast<std::uint64_t>(call.members[other])) {
        explorer().fail("the memory of a member is not its own");
      }
    }
    if (!no_object.is_there()) objects_of(rank)[static_cast<std::size_t>(own)] = 1;
    if (!founding.settle(no_object)) return fails(founding);
    if (call.has_no_team) explorer().fail("a team has a dead member");
    for (std::size_t other = 0; other < call.members.size(); ++other) {
      if (objects_of(call.members[other])[offsets[other] % kOffsetsPerRank] != 1) {
        explorer().fail("a member has no object");
      }
    }
    return true;
  }

  static bool fails(const NodeFounding& founding) {
    const FoundingFailure& why = founding.failure();
    if (why.text[0] != '0' + why.status) explorer().fail("a failure has the text of another one");
    return false;
  }

  std::vector<std::vector<FoundingCall>> calls_;
  int entries_;
};

}  // namespace

std::unique_ptr<World> foundings(std::vector<std::vector<FoundingCall>> calls, int entries) {
  return std::make_unique<Foundings>(std::move(calls), entries);
}

}  // namespace torii::exploration
