// SPDX-License-Identifier: Apache-2.0
// What the members of a team on several nodes put into each other's memory beside operations: how far each one is, who
// has left, why the team failed, who survives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/team/install_log.hpp"
#include "api/team/refused_calls.hpp"
#include "api/team/team_control.hpp"
#include "runtime/execution/transport.hpp"
#include "runtime/execution/words.hpp"

namespace torii {

/// What is put once, with payload. Each engine that carries letters has a copy of its own: two puts of one line could
/// meet half-way, and one engine may be lost.
struct alignas(kLineBytes) Letters {
  static constexpr std::uint64_t kIsThere = 1;  ///< the signal of a letter that has come
  struct alignas(kLineBytes) Offer {
    static constexpr std::size_t kTextBytes = 232;
    std::uint64_t signal;
    std::uint64_t unused[7];
    std::uint64_t digest;   ///< of the new team's options
    std::uint64_t staging;  ///< offset of the new team's memory
    std::int32_t status;    ///< why the sender can make no team; ok where it can
    char text[kTextBytes];
  };
  Offer offer;   ///< to the team of survivors
  Offer made;    ///< the sender has made its object of the new team, or why it could not
  Offer passed;  ///< the first `made` with a reason that the sender knows of; `staging` is the member that gave it
  struct alignas(kLineBytes) Decision {
    std::uint64_t signal;
    std::uint64_t unused[7];
    std::uint64_t members[kTeamRanksMax / 64];
    std::uint64_t engines;   ///< those that all members of the new team close; a set of bits as `members`
    std::uint64_t refusing;  ///< the lowest member that can make no team, + 1; 0: all can
    std::int32_t status;     ///< of that member's offer
    char text[Offer::kTextBytes];
  } decision;
  struct alignas(kLineBytes) Proposal {
    std::uint64_t signal;
    std::uint64_t unused[7];
    std::int32_t status;
    std::int32_t rank;  ///< in the team; -1: none
    char text[kFailureTextBytes];
  } proposal;
};

/// One sender's part of a member's memory. Every field has the sender as its only writer, and all of it is put.
struct alignas(kLineBytes) Inbox {
  /// Letters go by the first engines, as many as there are of these.
  static constexpr int kCopies = 4;
  /// Overwritten at any time, by puts that may overtake each other: believed where `check` fits, and only when `beat`
  /// has grown. The signal means nothing.
  struct Status {
    std::uint64_t signal;
    Standing standing;
    std::uint64_t beat;
    std::uint64_t check;
  } status;
  /// Twice the number of times that staging was emptied, or the last word; one per engine. Where an engine's puts keep
  /// their order, whoever has seen all of them knows that nothing of the sender is under way any more.
  std::uint64_t epochs[kEnginesMax];
  /// Set with the offer, one by each engine: what has not come shows which engine is lost.
  std::uint64_t probes[kEnginesMax];
  // Words that all engines put alike.
  /// As Heard: the sender knows of a failure and will propose nothing from now on. Above it the splits known as made.
  std::uint64_t heard;
  static constexpr int kSplitsShift = 8;  ///< of `heard`
  std::uint64_t splits;  ///< twice the splits that the sender knows as made, and one more once it has given up the next
  std::uint64_t missed;  ///< kIsThere, and above it the set of engines by which a probe has not come to the sender
  std::uint64_t installs[InstallLog::kWords];  ///< the sender's; by engine 0 alone, so that none overtakes a later one
  std::uint64_t closed;                        ///< the sender has closed the engines of the decision
  Letters letters[kCopies];
  /// What the sender has refused. The signals may be overwritten at any time; they mean nothing.
  struct alignas(kLineBytes) {
    std::uint64_t signal;
  } refusal_lines[kNotices];
  RefusalNotices refusals;
};
static_assert(sizeof(Inbox::Status) == kLineBytes);

/// Memory of a member: an inbox per member, what it puts from, and the alarm. Zeroed memory is valid.
struct MessagesMemory {
  static constexpr std::size_t kStatusSources = 8;
  alignas(kLineBytes) std::uint64_t alarm;  ///< 1 once anybody has proposed a failure; every writer stores the same
  Inbox::Status status_sources[kStatusSources];
  Letters outbox;
  RefusalNotices refusal_sources;
};

/// Where that memory begins in a team's memory.
std::size_t agreement_messages_offset() noexcept;
/// Bytes of that memory for a team of up to `ranks` ranks.
std::size_t agreement_messages_bytes(int ranks) noexcept;
/// Throws Error{transport} where memory that a member offers to the survivors' team does not lie in its arena.
void check_offer(int member, std::uint64_t staging, std::size_t bytes, std::uint64_t arena_bytes);
/// True when the member has written its last word into the memory at `memory`.
bool has_departed(const std::byte* memory, int member, int engines) noexcept;

/// How long a member may take to pass on what a dead one has told it.
inline constexpr std::int64_t kPassOnNs = 1'000'000'000;

/// One per team on several nodes. For the team's caller, but for propose() and push_out(), which any thread may call.
/// All waits in here end by themselves.
class AgreementMessages {
 public:
  struct Member {
    int context_rank;
    std::uint64_t offset;  ///< of its memory in its arena
  };
  static constexpr std::uint64_t kDeparted = UINT64_MAX;

  AgreementMessages(Transport& transport, std::vector<Member> members, int rank, std::int64_t timeout_ns);

  /// Tells members of other nodes where this one is, when it has been quiet since `quiet_since_ns` (0: it has not):
  /// first after 100 ms, then at growing distances up to a second; more often where the deadline is short.
  void publish(const Standing& standing, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept;
  /// True when something was told in the wait that now ends: peers should learn of its end, by tell().
  bool owes_end() const noexcept { return interval_ns_ != 0; }
  void tell(const Standing& standing) noexcept;
  /// The last standing that has come from a member of another node, and since when it stands here (0: none has come).
  struct View {
    Standing standing;
    std::uint64_t beat = 0;
    std::int64_t changed_ns = 0;
  };
  /// Calls in order and persistent operations are told in turn, and remembered apart.
  const View& view(int member, bool is_persistent = false) noexcept;

  void put_epoch(std::uint64_t epoch) noexcept;
  bool has_reached(int member, std::uint64_t epoch) const noexcept;
  bool has_departed(int member) const noexcept { return has_reached(member, kDeparted); }
  /// Whether the words of installations and epochs have left: until then no call may end that has put them.
  bool words_have_left() const noexcept { return awaited_puts_.drained(); }
  /// Tells all members of a plan that this rank has put in place.
  void put_install(std::uint64_t number, std::uint64_t word) noexcept;
  std::uint64_t install_word(int member, std::uint64_t number) const noexcept;

  /// Tells all members what this rank has refused, and moves the transport until the notice has left, a tenth of a
  /// second at the longest.
  void put_refusal(const RefusalNotice& notice) noexcept;
  /// What a member has told so.
  const RefusalNotices& refusals(int member) const noexcept { return inbox(member).refusals; }

  /// The last word to all members. Nothing may be put through this object afterwards.
  void depart() noexcept;

  /// True once anybody, this rank included, has proposed a failure.
  bool is_alarmed() const noexcept;
  /// The word that is not 0 once is_alarmed().
  const std::uint64_t& alarm() const noexcept { return memory_->alarm; }
  /// Tells all members why the team failed, unless somebody has before.
  void propose(Status status, int member, const std::string& text) noexcept;
  /// The one cause: waits until no living member can propose another one, or for a moment, and takes that of the lowest
  /// member. nullptr when an alarm came, and no cause within a second.
  const Letters::Proposal* settle() noexcept;

  /// Tells all members how many splits this one knows as made, and moves the transport until the words have left.
  /// `gives_up`: this one takes the next split for not made.
  void put_splits(std::uint64_t made, bool gives_up) noexcept;
  /// What a member has told so, and with its word that it has heard of the team's failure.
  struct Splits {
    std::uint64_t made;
    bool gives_up;
    bool has_heard;  ///< of the team's failure: the messages of a split no longer tell the member that it is made
  };
  Splits splits(int member) const noexcept;

  /// `staging` is that of the new team. A status other than ok: this member can make no team, for the reason `text`.
  void put_offer(std::uint64_t digest, std::uint64_t staging, Status status = Status::ok,
                 const std::string& text = {}) noexcept;
  const Letters::Offer* offer(int member) const noexcept;
  /// Tells all members that this one has made its object of the new team, or why it could not.
  void put_made(Status status, const std::string& text) noexcept;
  /// What a member has told so, or another one in its place. A reason is passed on to all when first seen.
  const Letters::Offer* made(int member) noexcept;
  /// The engines by which nothing has come of a member's offer; a set of bits. None where it has made no offer.
  std::uint64_t missed_from(int member) const noexcept;
  /// Tells all members by which engines nothing has come of anybody's offer.
  void put_missed(std::uint64_t engines) noexcept;
  /// What a member has told so, once it has.
  std::optional<std::uint64_t> missed_by(int member) const noexcept;
  /// The new team as somebody has decided, or nullptr. Passed on to all when first seen.
  const Letters::Decision* decision() noexcept;
  /// Decides for all those whose offers are here, and for all engines that anybody has missed.
  void decide() noexcept;
  /// Tells all members that the engines of the decision are closed here.
  void put_closed() noexcept;
  bool has_closed(int member) const noexcept;

  /// Moves the transport until what was put has left, a tenth of a second at the longest.
  void push_out() noexcept;
  /// What still counts what was put. Nothing may be put through this object afterwards.
  std::vector<PutOwner> take_puts();

 private:
  int ranks() const noexcept { return static_cast<int>(members_.size()); }
  const Inbox& inbox(int sender) const noexcept { return inboxes_[sender]; }
  /// What is put to every member, this one included, into this rank's inbox there.
  struct Letter {
    int engine = 0;
    bool is_awaited = false;  ///< words_have_left() waits for it
    std::size_t offset = 0;   ///< of the signal in the inbox, or of the alarm
    bool is_alarm = false;
    std::uint64_t signal = 0;
    const void* payload = nullptr;  ///< up to kInlineBytes go into the signal's line, more into the next ones
    std::size_t bytes = 0;
    std::size_t target_offset = 0;  ///< of the payload in the inbox; 0: it follows the signal
    bool only_other_nodes = false;
  };
  void put_to_all(const Letter& letter) noexcept;
  /// By each engine that carries letters, to its copy; `offset` is that in Letters.
  void put_copies(Letter letter) noexcept;
  /// One word by every engine.
  void put_everywhere(std::size_t offset, std::uint64_t value) noexcept;
  void put_decision() noexcept;
  void put_status(std::size_t offset, Letters::Offer& source, Status status, const char* text) noexcept;
  /// The copy that has come of one part of a member's letters, or nullptr.
  template <class Part>
  const Part* arrived(int member, Part Letters::*part) const noexcept {
    for (const Letters& copy : inbox(member).letters) {
      if (load_word((copy.*part).signal) == Letters::kIsThere) return &(copy.*part);
    }
    return nullptr;
  }
  const Letters::Proposal* proposal_of(int member) const noexcept { return arrived(member, &Letters::proposal); }
  bool is_closed() noexcept;

  Transport& transport_;
  PutOwner puts_;
  PutOwner awaited_puts_;  ///< words that others wait for in a call that this rank may leave before them
  std::vector<Member> members_;
  int rank_;
  int engines_;
  MessagesMemory* memory_;
  Inbox* inboxes_;
  std::int64_t grace_ns_;
  std::int64_t first_ns_;
  std::int64_t most_ns_;
  std::int64_t interval_ns_ = 0;  ///< 0: nothing was told in this wait
  std::int64_t told_ns_ = 0;
  std::uint64_t beat_ = 0;
  struct Views {
    View in_order;
    View persistent;
  };
  std::vector<Views> views_;
  std::atomic<bool> proposed_ = false;
  const Letters::Proposal* settled_ = nullptr;
  std::uint64_t splits_ = 0;  ///< that this rank knows as made
  bool has_settled_ = false;
  bool has_decided_ = false;
};

}  // namespace torii
