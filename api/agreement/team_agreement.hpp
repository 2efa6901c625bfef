// SPDX-License-Identifier: Apache-2.0
// How the members of a team learn of each other's failures, calls, plans and departures, and choose the survivors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/agreement/membership.hpp"
#include "api/agreement/refused_calls.hpp"
#include "api/agreement/survivors_record.hpp"
#include "api/agreement/team_control.hpp"
#include "api/agreement/trouble.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/put_owner.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {

/// The word in this rank's reach that shows that the team has failed. A copy of the sign saves calls of 8 bytes a
/// virtual call: on one node they load the word directly.
class FailureSign {
 public:
  explicit FailureSign(const std::atomic<std::uint32_t>& state) noexcept : state_(&state) {}
  explicit FailureSign(const std::uint64_t& alarm) noexcept : alarm_(reinterpret_cast<const std::byte*>(&alarm)) {}
  /// True for a team on one node, whose failure record every member maps.
  bool is_record() const noexcept { return state_ != nullptr; }
  bool is_set() const noexcept {
    if (state_ != nullptr) return state_->load(std::memory_order_acquire) != FailureRecord::kNone;
    return load_word(alarm_) != 0;
  }

 private:
  const std::atomic<std::uint32_t>* state_ = nullptr;
  const std::byte* alarm_ = nullptr;
};

/// Why the team failed.
struct Cause {
  Status status;
  std::string text;
  int member = -1;        ///< that it names, such as the one that is lost; -1: none
  MemberSet absent = {};  ///< of a timeout: those that had not come to the call, or did not move it
};

/// A member of the survivors' team.
struct Survivor {
  int member;
  std::uint64_t staging;
};

/// One per team and rank, for the team's caller. Any thread may call claim(), push_out() and FailureSign::is_set().
/// All waits in here end by themselves.
class TeamAgreement {
 public:
  TeamAgreement() = default;
  virtual ~TeamAgreement() = default;
  TeamAgreement(const TeamAgreement&) = delete;
  TeamAgreement& operator=(const TeamAgreement&) = delete;

  /// Lets what members have told arrive.
  virtual void progress() noexcept = 0;
  /// Waits until what this rank told has left, a tenth of a second at the longest.
  virtual void push_out() noexcept = 0;

  // The failure of the team.
  virtual FailureSign failure_sign() const noexcept = 0;
  /// Records why the team failed, unless a member has recorded a cause before.
  virtual void claim(Status status, int member, const std::string& text, const MemberSet& absent = {}) noexcept = 0;
  /// The one cause that all members report. Only after the sign was set.
  virtual Cause read_cause() noexcept = 0;

  // The calls of the members.
  /// A call that the member has told of; if the member's call records can be read, the one with number `sequence`.
  virtual std::optional<CallSnapshot> snapshot_of(int member, std::uint64_t sequence) noexcept = 0;
  /// True when the member is known to have come to that call, or to a later one of the same order.
  virtual bool has_come_to(int member, std::uint64_t sequence) noexcept = 0;
  /// The last call up to which the member has ended all.
  virtual std::uint64_t completed_by(int member) noexcept = 0;
  /// When the member last looked after a call that it waits in, as far as this rank knows.
  virtual std::int64_t last_attentive_ns(int member) noexcept = 0;
  /// Tells of this rank's call, which has been quiet since `quiet_since_ns` (0: it has not).
  virtual void publish(const CallSnapshot& own, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept = 0;
  /// True when publish() told of a call in the wait that now ends: tell_end() must follow.
  bool must_report_end() const noexcept { return must_report_end_; }
  virtual void tell_end(const CallSnapshot& own) noexcept = 0;
  /// Tells the members which call this rank has refused.
  virtual void put_refusal(const RefusalNotice& notice) noexcept = 0;
  virtual std::span<const RefusalNotice> refusals_of(int member) noexcept = 0;

  // Plans and staging.
  /// Tells the members of a plan that this rank has installed; `word` is InstallLog's word for it.
  virtual void put_install(std::uint64_t number, std::uint64_t word) noexcept = 0;
  virtual std::uint64_t install_word(int member, std::uint64_t number) noexcept = 0;
  /// Until the words of installations and epochs have left, no call may end.
  virtual bool control_puts_done() const noexcept = 0;
  /// Tells the members how far this rank is with recycling its staging.
  virtual void put_epoch(std::uint64_t epoch) noexcept = 0;
  virtual bool has_reached(int member, std::uint64_t epoch) noexcept = 0;

  // The end of the team.
  /// This rank makes no more calls, and departs when its requests are gone.
  virtual void leave() noexcept = 0;
  /// True when the member has destroyed its team.
  virtual bool has_departed(int member) noexcept = 0;
  /// The last call of a member that has destroyed its team, as completed_by(); nothing until it is known.
  virtual std::optional<std::uint64_t> departed_after(int member) noexcept = 0;
  /// This rank's last word to all members. It has written into at most the first `touched_bytes` of a team's memory.
  virtual void depart(std::uint64_t touched_bytes) noexcept = 0;
  /// The owners that still count this object's puts, after depart().
  virtual std::vector<PutOwner> take_puts() = 0;

  // Splits.
  /// Whether the parts of a split are made, the same on all members. `agreed`: the split's messages told this rank so.
  /// False if the team failed before. Nothing if this rank cannot know: others may have their part.
  virtual std::optional<bool> decide_split(bool agreed) noexcept = 0;
  // Survivors. All that come to a round get the team, or none of them, for one reason.
  /// Waits, for as long as a wait may last, until this rank knows of the team's failure.
  virtual bool learns_failure() noexcept = 0;
  /// Comes to a round with this rank's proposal, in which the staging must be free for the new team, and appends the
  /// members of the team. A rank that comes late to a round that has failed goes on in the next one. Throws Error.
  virtual void choose_survivors(const SurvivorProposal& own, std::vector<Survivor>& chosen) = 0;
  /// A member that was chosen says that it has made its object, or why it could not. Waits until all have made theirs.
  /// False if the others have not waited for this rank: it has to choose again. Throws Error.
  virtual bool settle_survivors(const Trouble& trouble, const std::vector<Survivor>& chosen) = 0;

 protected:
  void set_must_report_end(bool owes) noexcept { must_report_end_ = owes; }

 private:
  bool must_report_end_ = false;
};

/// By shared memory where all members are on one node, otherwise by puts. `members` must outlive the agreement.
std::unique_ptr<TeamAgreement> make_team_agreement(const Membership& members);

/// The text of a cause that nobody could read.
inline constexpr const char* kNoCause = "a rank died while it reported a failure";
/// For waits in which nothing of this rank has to be done meanwhile.
inline bool stays_idle(void*) { return true; }
/// The error of a rank that the survivors have left out.
[[noreturn]] void throw_left_out(int rank);

}  // namespace torii
