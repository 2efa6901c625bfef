// SPDX-License-Identifier: Apache-2.0
// A member's way through the founding of a team on one node, over a board instead of an exchange.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "api/agreement/member_set.hpp"
#include "api/agreement/trouble.hpp"
#include "api/context/founding_board.hpp"

namespace torii {

/// The member of the lowest rank in the context is the opener: only its process opens entries of its board and uses
/// them again, so that nobody races for one. All others enter the oldest entry of their number that waits for them.
///
///     opener: opens, with its terms and memory  |  all have come:   |  all have made theirs:
///     others: enter, compare terms, tell memory |  make objects     |  one makes the verdict
///
/// The verdict is one word that is changed once, by compare-and-swap: to `made` by a member that has seen that all have
/// made their objects, or before that to `failed` by a member that has first stored why. All members go by it, so all
/// have the team or none has, for one reason. No member that dies or stops leaves it half changed.
///
/// An entry is held by those who may read it, not by its number. It is used again when all have left it, so a member
/// may make, destroy and found teams of one number while another one still reads of the first: that entry does not wait
/// for it any more, and the next opening takes another one. Teams hold no entries.
///
/// Members that a failed founding was waiting for in vain are excused: if they come later, they wait for another
/// opening. Those who come late to a founding that has failed otherwise take its reason, unless it has other members:
/// then they have skipped a call, and pass over its founding.
///
/// Throws nothing: a member that went without a word would leave the others waiting.
class NodeFounding {
 public:
  /// The member's knowledge of the others, its waits, and the texts of failures.
  class Host {
   public:
    Host() = default;
    virtual ~Host() = default;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    /// False for a rank of the context that has ended, or that a team of survivors has left out.
    virtual bool lives(int context_rank) const = 0;
    virtual bool has_ended(int context_rank) const = 0;
    /// Wakes the rank if it sleeps.
    virtual void ring(int context_rank) = 0;
    /// A new wait begins.
    virtual void begin_wait() = 0;
    /// Waits a little, unless `still_idle(data)` is false; true when it is time to look which members live.
    virtual bool pause(bool (*still_idle)(void* data), void* data) = 0;
    /// The wait has lasted for its time.
    virtual bool is_over() const = 0;
    /// The time, and when a wait that begins now has lasted for its time.
    virtual std::int64_t now_ns() const = 0;
    virtual std::int64_t late_ns() const = 0;
    /// Reasons, which name members by their numbers in the team.
    virtual FoundingFailure lost(int member) const = 0;
    virtual FoundingFailure late(const MemberSet& absent, bool have_come) const = 0;
    virtual FoundingFailure no_room() const = 0;
    virtual FoundingFailure refusal(const Trouble& trouble) const = 0;
    virtual FoundingFailure other_members(std::span<const int> of_opener) const = 0;
    virtual FoundingFailure other_text(std::string_view of_opener) const = 0;
  };

  /// `board` is that of `opener`, a member; `own` this rank's, if it is that member. `rank` is this one's number.
  NodeFounding(Host& host, const FoundingTerms& terms, int rank, int opener, FoundingBoard board, FoundingOpener* own)
      : host_(host), terms_(terms), rank_(rank), opener_(opener), board_(board), own_(own) {}
  ~NodeFounding() { leave(); }
  NodeFounding(const NodeFounding&) = delete;
  NodeFounding& operator=(const NodeFounding&) = delete;

  /// Comes with this rank's memory, or with the trouble why it can make no team. True when all have come. Otherwise
  /// there is no team.
  bool come(std::uint64_t offset, const Trouble& trouble) noexcept;
  /// Where that member's memory for the team is. Bytes of a peer.
  std::uint64_t offset_of(int member) const noexcept { return seat_->offset_of(place_of(member)); }
  /// This rank has made its object, or could not. True if all have made theirs: the members may use the team.
  bool settle(const Trouble& trouble) noexcept;
  /// Why there is no team.
  const FoundingFailure& failure() const noexcept { return failure_; }

 private:
  enum class Step : std::uint8_t { come, make };
  int ranks() const noexcept { return static_cast<int>(terms_.members.size()); }
  int rank_of(int member) const noexcept { return terms_.members[static_cast<std::size_t>(member)]; }
  int place_of(int member) const noexcept { return terms_.rank_places[static_cast<std::size_t>(rank_of(member))]; }
  bool has_done(Step step, int member) const noexcept;
  bool open(std::uint64_t offset, const Trouble& trouble) noexcept;
  bool enter(const Trouble& trouble) noexcept;
  bool is_of_skipped_call() const noexcept;
  bool is_done(Step step) noexcept;
  bool wait_for_all(Step step) noexcept;
  bool misses_any(Step step) noexcept;
  bool fail(const FoundingFailure& failure) noexcept;
  bool end_with(const FoundingFailure& failure) noexcept;
  void ring_others() noexcept;
  void leave() noexcept;

  Host& host_;
  const FoundingTerms& terms_;
  int rank_;
  int opener_;
  FoundingBoard board_;
  FoundingOpener* own_;
  std::optional<FoundingSeat> seat_;
  int awaited_ = 0;  ///< all members below it have done the step
  FoundingFailure failure_ = {};
};

}  // namespace torii
