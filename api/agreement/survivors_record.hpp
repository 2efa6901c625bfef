// SPDX-License-Identifier: Apache-2.0
// The messages of the members of a poisoned team about the team of survivors, and their place in shared memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "api/agreement/member_set.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {

inline constexpr std::size_t kRoundTextBytes = 296;

/// A member's proposal in a round: its part of the survivors' team, or why it can make none.
struct SurvivorProposal {
  std::uint64_t digest;           ///< of the new team's options, and of `without`
  std::uint64_t memory_offset;    ///< offset of the new team's memory in the member's arena
  std::int32_t status;            ///< a Status; ok if the member can make a team
  std::uint32_t allows_minority;  ///< as of TeamOptions
  MemberSet without;              ///< that the member leaves out
  char text[kRoundTextBytes];     ///< the reason of a status that is not ok
};

/// Why a round has ended without a team.
struct RoundFailure {
  std::int32_t status;  ///< a Status, never ok
  std::int32_t member;  ///< that the text names; -1: none
  /// The members that others waited for. They know nothing of this round: their calls go on in the next one.
  MemberSet absent;
  char text[kRoundTextBytes];
};

/// A member's part of the rounds of a team on one node (api/agreement/node_rounds.hpp). Rounds count from 1; the data
/// of round r are in place r % kPlaces, and are overwritten while others may still read them.
struct alignas(kLineBytes) SurvivorsRecord {
  static constexpr std::size_t kPlaces = 2;
  using Word = std::atomic<std::uint64_t>;
  Word rounds[kPlaces];    ///< used in the first member's arena only: NodeRounds::State as a word
  Word proposed[kPlaces];  ///< the round of the proposal in this place; stored after it
  Word made;               ///< the last round in which this member has made its object
  Word proposals[kPlaces][sizeof(SurvivorProposal) / sizeof(Word)];
  Word choices[kPlaces][sizeof(MemberSet) / sizeof(Word)];  ///< of rounds whose word names this member
  Word failures[kPlaces][sizeof(RoundFailure) / sizeof(Word)];
};

}  // namespace torii
