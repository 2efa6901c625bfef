// SPDX-License-Identifier: Apache-2.0
// The decisions about new teams while a team fails: whether a split's parts are made, and who the survivors are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/agreement/survivors_record.hpp"
#include "api/agreement/trouble.hpp"

namespace torii {

/// A member of the survivors' team.
struct Survivor {
  int member;
  std::uint64_t memory_offset;
};

/// For the team's caller. All waits in here end by themselves.
class SurvivorVote {
 public:
  /// Whether the parts of a split are made, the same on all members. `agreed`: the split's messages told this rank so.
  /// False if the team failed before. Nothing if this rank cannot know: others may have their part.
  virtual std::optional<bool> decide_split(bool agreed) noexcept = 0;

  // Survivors. All that come to a round get the team, or none of them, for one reason.
  /// Waits, for as long as a wait may last, until this rank knows of the team's failure.
  virtual bool learns_failure() noexcept = 0;
  /// Comes to a round with this rank's proposal, whose memory must be free for the new team, and appends the
  /// members of the team. A rank that comes late to a round that has failed goes on in the next one. Throws Error.
  virtual void choose_survivors(const SurvivorProposal& own, std::vector<Survivor>& chosen) = 0;
  /// A member that was chosen says that it has made its object, or why it could not. Waits until all have made theirs.
  /// False if the others have not waited for this rank: it has to choose again. Throws Error.
  virtual bool settle_survivors(const Trouble& trouble, const std::vector<Survivor>& chosen) = 0;

 protected:
  ~SurvivorVote() = default;
};

/// The error of a rank that the survivors have left out.
[[noreturn]] void throw_left_out(int rank);

}  // namespace torii
