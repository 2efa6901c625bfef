// SPDX-License-Identifier: Apache-2.0
// Rounds in which the members of a team on one node agree on the team of survivors, by words that all of them map.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "api/agreement/survivors_record.hpp"

namespace torii {

/// A round is one word in the first member's memory, which changes by compare-and-swap only:
///
///     open -> chosen -> made            all members of the chosen set have made their object
///          \       \--> failed          a member could not, or was too late
///           \---------> failed          a member was too late, or refuses
///
/// The word names the member that made the change. Before the change, that member has stored the set or failure that
/// belongs to it in its own memory. So a member that sees the word sees the set or failure too, and no member that dies
/// leaves a change half made. The next round opens when the newest one has failed; a round that is made is the last
/// one.
///
/// Places are used again after kPlaces rounds, even if a member still reads there: a member that was stopped in a round
/// holds nobody up. A member overwrites a word of a round only when it has seen a later round in the same place. So a
/// member that has read an overwritten word finds the round gone at its next look. Changes to a round start from the
/// exact word, so a decision from the data of two rounds changes nothing.
class NodeRounds {
 public:
  enum class Kind : std::uint8_t { none, open, chosen, made, failed };
  struct State {
    std::uint64_t round = 0;
    Kind kind = Kind::none;
    int member = 0;  ///< that chose or failed it
  };
  /// `record` gives the part of each of `ranks` members, and must outlive this; `rank` is this one's number.
  NodeRounds(std::function<SurvivorsRecord&(int member)> record, int rank, int ranks)
      : record_(std::move(record)), rank_(rank), ranks_(ranks) {}

  State newest() const noexcept;
  /// The state of a round; kind none where it has gone.
  State state_of(std::uint64_t round) const noexcept;
  /// Opens the round after `last`, the newest one, which has failed; others may do so at once.
  void open_after(const State& last) noexcept;

  /// Once for a round.
  void proposal(std::uint64_t round, const SurvivorProposal& own) noexcept;
  bool has_proposed(int member, std::uint64_t round) const noexcept;
  /// That of a member that has made one. Its text only where it refuses.
  SurvivorProposal proposal_of(int member, std::uint64_t round) const noexcept;
  /// Closes an open round. Nothing happens where another member has been quicker: the state tells.
  void choose(const State& open, const MemberSet& members) noexcept;
  /// Nothing where the state has changed meanwhile.
  std::optional<MemberSet> chosen(const State& chosen_or_made) const noexcept;
  /// This member has made its object.
  void tell_made(std::uint64_t round) noexcept;
  bool has_made(int member, std::uint64_t round) const noexcept;
  /// All members of the chosen set have made their object, or are dead.
  void finish(const State& chosen) noexcept;
  /// Ends an open or chosen round without a team.
  void fail(const State& from, const RoundFailure& failure) noexcept;
  /// Nothing where the round has gone meanwhile.
  std::optional<RoundFailure> failure(const State& failed) const noexcept;

 private:
  void change(const State& from, Kind to) noexcept;
  bool is_still(const State& state) const noexcept;
  std::size_t set_bytes() const noexcept;

  std::function<SurvivorsRecord&(int member)> record_;
  int rank_;
  int ranks_;
};

}  // namespace torii
