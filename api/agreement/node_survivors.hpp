// SPDX-License-Identifier: Apache-2.0
// A member's way through the rounds about the team of survivors on one node.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/agreement/node_rounds.hpp"
#include "api/agreement/survivors_judge.hpp"

namespace torii {

/// Throws nothing: a member that went without a word would leave the others waiting.
class NodeSurvivors {
 public:
  /// The member's knowledge of the others, and its waits.
  class Host {
   public:
    Host() = default;
    virtual ~Host() = default;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    virtual int rank() const = 0;
    virtual int ranks() const = 0;
    virtual bool lives(int member) const = 0;
    virtual std::string text(const std::vector<int>& members) const = 0;
    virtual std::int64_t timeout_ns() const = 0;
    /// A new wait begins.
    virtual void begin_wait() = 0;
    /// Waits a little; true when it is time to look which members live.
    virtual bool pause() = 0;
    /// The wait has lasted for timeout_ns(), or a little longer where others should find out first.
    virtual bool is_over(bool others_first) const = 0;
  };
  struct Outcome {
    enum class Kind : std::uint8_t {
      chosen,    ///< `members` are the team; this one has to settle()
      made,      ///< they have it
      failed,    ///< nobody has it, for `failure`
      late,      ///< the others have not waited for this member, which may choose again
      left_out,  ///< others have or make a team without this member
    };
    Kind kind;
    MemberSet members = {};
    RoundFailure failure = {};
  };

  NodeSurvivors(Host& host, NodeRounds rounds) : host_(host), rounds_(std::move(rounds)) {}

  /// Comes to the open round, and to the next ones where it was late.
  Outcome choose(const SurvivorProposal& own) noexcept;
  /// That of a member that was chosen. It may be wrong where the round has failed since: settle() tells.
  SurvivorProposal proposal_of(int member) const noexcept { return rounds_.proposal_of(member, round_); }
  /// A member that was chosen says that it has made its object (nullptr), or why it could not.
  Outcome settle(const MemberSet& members, const RoundFailure* refusal) noexcept;

 private:
  class View;
  bool enter() noexcept;
  Outcome come(const SurvivorProposal& own) noexcept;
  Outcome take() const noexcept;

  Host& host_;
  NodeRounds rounds_;
  std::uint64_t round_ = 0;  ///< in which this member is or was last
};

}  // namespace torii
