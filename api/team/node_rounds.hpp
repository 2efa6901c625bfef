// SPDX-License-Identifier: Apache-2.0
// Rounds in which the members of a team on one node agree on the team of survivors, by words that all of them map.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "api/team/survivors_record.hpp"

namespace torii {

/// A round is one word in the first member's memory, which changes by compare-and-swap only:
///
///     open -> chosen -> made            all members of the chosen set have made their object
///          \       \--> failed          a member could not, or was too late
///           \---------> failed          a member was too late, or refuses
///
/// The word names the member that made the change. That member has stored what belongs to it, a set or a failure, in
/// its own memory before, so whoever sees the word sees that too, and no member that dies leaves a change half made.
/// The next round opens when the newest one has failed; a round that is made is the last one.
///
/// Places are used again after kPlaces rounds. A member reads data of a round only between join() and leave(). Whoever
/// opens a round first looks if a member still reads what lies in its place. join() succeeds only if the round was open
/// after the member had said so, and both are sequentially consistent: whoever opens the place again, which comes after
/// the round was closed, finds the member there.
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
  /// Opens the round after `last`, the newest one, which has failed; others may do so at once. False where a member
  /// that lives still reads what lies in its place.
  bool open_after(const State& last, const std::function<bool(int member)>& lives) noexcept;

  /// This member comes to a round; false if it is not open any more.
  bool join(std::uint64_t round) noexcept;
  /// Once for a round, which this member has joined; so for all below.
  void offer(std::uint64_t round, const RoundOffer& own) noexcept;
  bool has_offered(int member, std::uint64_t round) const noexcept;
  /// That of a member that has made one, or is in the chosen set.
  const RoundOffer& offer_of(int member, std::uint64_t round) const noexcept;
  /// Closes an open round. Nothing happens where another member has been quicker: the state tells.
  void choose(const State& open, const MemberSet& members) noexcept;
  const MemberSet& chosen(const State& chosen_or_made) const noexcept;
  /// This member has made its object.
  void tell_made(std::uint64_t round) noexcept;
  bool has_made(int member, std::uint64_t round) const noexcept;
  /// All members of the chosen set have made their object, or are dead.
  void finish(const State& chosen) noexcept;
  /// Ends an open or chosen round without a team.
  void fail(const State& from, const RoundFailure& failure) noexcept;
  const RoundFailure& failure(const State& failed) const noexcept;
  /// This member reads nothing of the round any more.
  void leave() noexcept;

 private:
  void change(const State& from, Kind to) noexcept;

  std::function<SurvivorsRecord&(int member)> record_;
  int rank_;
  int ranks_;
};

}  // namespace torii
