// SPDX-License-Identifier: Apache-2.0
// Whether the parts of a split are made, on a team on several nodes that fails while members leave the split.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "api/agreement/agreement_messages.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {

/// A member that has all messages of a split takes it for made, tells all members, and may then abort the team. A
/// member that learns of the failure first cannot know whether another one has the messages. It waits until each
/// member has said so, or has said with its word about the failure that the messages will tell it no more.
class SplitDecision {
 public:
  /// The arguments must outlive the decision.
  SplitDecision(Transport& transport, AgreementMessages& messages, int rank, int ranks,
                std::int64_t timeout_ns) noexcept;

  /// SurvivorVote::decide_split(). `lives` tells whether a member is alive.
  std::optional<bool> decide(bool agreed, Waiting waiting, const std::function<bool(int member)>& lives) noexcept;

 private:
  bool is_made() const noexcept;
  bool is_given_up() const noexcept;
  bool has_answered(int member) const noexcept;
  bool pause(Waiting& waiting) const noexcept;
  bool await_answers(Waiting& waiting, const std::function<bool(int member)>& lives) const noexcept;
  void await_passed_on(Waiting& waiting) const noexcept;

  Transport& transport_;
  AgreementMessages& messages_;
  int rank_;
  int ranks_;
  std::int64_t patience_ns_;  ///< with a member that lives and does not answer
  std::int64_t pass_on_ns_;
  std::uint64_t made_ = 0;  ///< splits that were made
};

}  // namespace torii
