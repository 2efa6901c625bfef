// SPDX-License-Identifier: Apache-2.0
// The memory by which members of a team on several nodes tell each other things beside operations, and puts into it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/agreement/patience.hpp"
#include "api/agreement/refused_calls.hpp"
#include "api/agreement/team_control.hpp"
#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {

/// Blocks that are put once, with payload. Each engine that carries them has a copy of its own: two puts of one line
/// could meet half-way, and one engine may be lost.
struct alignas(kLineBytes) ControlBlocks {
  static constexpr std::uint64_t kIsThere = 1;  ///< the signal of a block that has come
  /// How often the survivors can be asked for: each round has blocks of its own, so none is taken for a later one's.
  static constexpr std::size_t kRounds = 4;
  struct alignas(kLineBytes) ProposalBlock {
    std::uint64_t signal;
    std::uint64_t unused[7];
    SurvivorProposal proposal;
  };
  struct alignas(kLineBytes) Ending {
    std::uint64_t signal;
    std::uint64_t unused[7];
    RoundFailure failure;  ///< its status is ok where the sender has made its object
    std::uint64_t origin;  ///< the member that gave the reason
  };
  struct alignas(kLineBytes) Decision {
    std::uint64_t signal;
    std::uint64_t unused[7];
    MemberSet members;
    std::uint64_t engines;  ///< those that all members of the new team close; a set of bits as `members`
    std::uint64_t origin;   ///< the member that has decided; others pass its decision on
  };
  struct Round {
    ProposalBlock proposal;  ///< to the team of survivors
    Decision decision;       ///< who is a member
    Ending made;             ///< the sender has made its object of the new team, or why it leaves the round before
    Ending left;             ///< why the sender leaves the round after that
  } rounds[kRounds];
  struct alignas(kLineBytes) CauseBlock {
    std::uint64_t signal;
    std::uint64_t unused[7];
    std::int32_t status;
    std::int32_t rank;  ///< in the team; -1: none
    MemberSet absent;   ///< as in Cause
    char text[kFailureTextBytes];
  } cause;
};

/// One sender's part of a member's memory. Every field has the sender as its only writer, and all of it is put.
struct alignas(kLineBytes) PeerInbox {
  /// Control blocks go by the first engines, as many as there are of these.
  static constexpr int kCopies = 4;
  /// Overwritten at any time, by puts that may overtake each other: believed where `check` fits, and only when `beat`
  /// has grown. The signal means nothing.
  struct Status {
    std::uint64_t signal;
    CallSnapshot snapshot;
    std::uint64_t beat;
    std::uint64_t check;
  } status;
  /// 0, or a last word; one per engine. If the puts of each engine keep their order, a member that has seen all these
  /// words knows that nothing of the sender is under way any more.
  std::uint64_t last_words[kEnginesMax];
  /// Set with the proposal, one by each engine: a word that has not come shows which engine is lost. By round, as all
  /// about survivors.
  std::uint64_t probes[ControlBlocks::kRounds][kEnginesMax];
  // Words that all engines put alike.
  /// As FailureKnown: the sender knows of a failure and will propose nothing from now on. Above it the splits known as
  /// made.
  std::uint64_t knows_failure;
  static constexpr int kSplitsShift = 8;  ///< of `knows_failure`
  std::uint64_t splits;  ///< twice the splits that the sender knows as made, and one more once it has given up the next
  /// kIsThere, and above it the set of engines by which a probe has not come to the sender.
  std::uint64_t missed[ControlBlocks::kRounds];
  std::uint64_t closed[ControlBlocks::kRounds];    ///< the sender has closed the engines of the decision
  std::uint64_t complete[ControlBlocks::kRounds];  ///< all members have made their object, as the sender knows
  ControlBlocks blocks[kCopies];
  /// The runs of calls that the sender has refused. The notices of a run are by turns in two places, since an older
  /// notice may come after the next. The signals may be overwritten at any time; they mean nothing.
  static constexpr std::size_t kNoticePlaces = kNoticePlacesMost;
  struct alignas(kLineBytes) {
    std::uint64_t signal;
  } refusal_lines[kNoticePlaces];
  std::array<RefusalNotice, kNoticePlaces> refusals;
};
static_assert(sizeof(PeerInbox::Status) == kLineBytes);

/// Memory of a member: an inbox per member, what it puts from, and the alarm. Zeroed memory is valid.
struct MessagesMemory {
  static constexpr std::size_t kStatusSources = 8;
  alignas(kLineBytes) std::uint64_t alarm;  ///< 1 once anybody has proposed a failure; every writer stores the same
  PeerInbox::Status status_sources[kStatusSources];
  ControlBlocks outbox;
  std::array<RefusalNotice, PeerInbox::kNoticePlaces> refusal_sources;
};

/// The offset of that memory in a team's memory.
std::size_t agreement_messages_offset() noexcept;
/// Bytes of that memory for a team of up to `ranks` ranks.
std::size_t agreement_messages_bytes(int ranks) noexcept;
/// True when the member has written its last word into the memory at `memory`.
bool has_departed(const std::byte* memory, int member, int engines) noexcept;
/// True when that word says that more may come behind it.
bool departed_early(const std::byte* memory, int member, int engines) noexcept;

/// A member's memory, and puts from there into the memory of all members. All waits in here end by themselves.
class ControlWriter {
 public:
  struct Member {
    int context_rank;
    std::uint64_t offset;  ///< of its memory in its arena
  };
  // Last words, in PeerInbox::last_words.
  static constexpr std::uint64_t kLeft = 1;      ///< the sender makes no more calls
  static constexpr std::uint64_t kDeparted = 2;  ///< and puts nothing any more
  /// The same, but the sender has closed an engine since the team was made. Words for that one went through another,
  /// and may have overtaken what a device still writes for it.
  static constexpr std::uint64_t kDepartedEarly = 3;

  ControlWriter(Transport& transport, std::vector<Member> members, int rank);

  Transport& transport() noexcept { return transport_; }
  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return static_cast<int>(members_.size()); }
  int engines() const noexcept { return engines_; }
  int context_rank(int member) const noexcept { return members_[static_cast<std::size_t>(member)].context_rank; }
  /// The sources of this rank's puts, and the alarm.
  MessagesMemory& own() noexcept { return *memory_; }
  const MessagesMemory& own() const noexcept { return *memory_; }
  /// The part of this rank's memory into which a member puts.
  const PeerInbox& inbox(int sender) const noexcept { return inboxes_[sender]; }
  /// The copy that has come of one part of a member's control blocks, or nullptr. `part_of` gives the part of a copy.
  template <class PartOf>
  auto find(int member, const PartOf& part_of) const noexcept -> decltype(&part_of(inbox(member).blocks[0])) {
    for (const ControlBlocks& copy : inbox(member).blocks) {
      if (load_word(part_of(copy).signal) == ControlBlocks::kIsThere) return &part_of(copy);
    }
    return nullptr;
  }
  template <class Part>
  const Part* arrived(int member, Part ControlBlocks::*part) const noexcept {
    return find(member, [=](const ControlBlocks& copy) -> const Part& { return copy.*part; });
  }
  /// The same for a round about survivors.
  template <class Part>
  const Part* arrived(int member, std::size_t round, Part ControlBlocks::Round::*part) const noexcept {
    return find(member, [=](const ControlBlocks& copy) -> const Part& { return copy.rounds[round].*part; });
  }

  /// A put to every member, this one included, into this rank's inbox there.
  struct ControlPut {
    int engine = 0;
    std::size_t offset = 0;  ///< of the signal in the inbox, or of the alarm
    bool is_alarm = false;
    std::uint64_t signal = 0;
    const void* payload = nullptr;  ///< up to kInlineBytes go into the signal's line, more into the next ones
    std::size_t bytes = 0;
    std::size_t target_offset = 0;  ///< of the payload in the inbox; 0: it follows the signal
    bool only_other_nodes = false;
  };
  /// A put that fails is one to a lost peer, or the transport is broken: the waits for either find out.
  void put(const ControlPut& one) noexcept;
  /// By each engine that carries control blocks, to its copy; `offset` is that in ControlBlocks.
  void put_copies(ControlPut one) noexcept;
  /// One word by every engine.
  void put_everywhere(std::size_t offset, std::uint64_t value) noexcept;

  /// Moves the transport until what was put has left, a tenth of a second at the longest. Any thread may call it.
  void push_out() noexcept;
  /// The owners that still count puts. Nothing may be put through this object afterwards.
  std::vector<PutOwner> take_puts();

 private:
  Transport& transport_;
  PutOwner puts_;
  std::vector<Member> members_;
  int rank_;
  int engines_;
  MessagesMemory* memory_;
  PeerInbox* inboxes_;
};

/// Lets other threads run while a wait outside a call looks again and again.
void nap() noexcept;

}  // namespace torii
