// SPDX-License-Identifier: Apache-2.0
// Messages between members on several nodes beside operations: how far each member is, who has left, why the team
// failed, which splits are made.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "api/agreement/control_writer.hpp"
#include "api/agreement/failure_records.hpp"

namespace torii {

/// One per team on several nodes. For the team's caller, but for claim() and push_out(), which any thread may call.
/// All waits in here end by themselves.
class AgreementMessages final : public FailureRecords {
 public:
  AgreementMessages(ControlWriter& box, std::int64_t timeout_ns);

  /// Tells members of other nodes the call that this member waits in, if the call has been quiet since `quiet_since_ns`
  /// (0: it has not). The first message leaves after 100 ms, later ones at growing intervals of up to a second. A short
  /// deadline makes them more frequent.
  void publish(const CallSnapshot& snapshot, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept;
  /// True when something was told in the wait that now ends: peers should learn of its end, by tell().
  bool must_report_end() const noexcept { return interval_ns_ != 0; }
  void tell(const CallSnapshot& snapshot) noexcept;
  /// The last snapshot that has come from a member of another node, and when it came (0: none has come).
  struct View {
    CallSnapshot snapshot;
    std::uint64_t beat = 0;
    std::int64_t changed_ns = 0;
  };
  /// Calls in order and persistent operations are told in turn, and remembered apart.
  const View& view(int member, bool is_persistent = false) noexcept;

  bool has_departed(int member) noexcept;

  /// Tells all members what this rank has refused, and moves the transport until the notice has left, a tenth of a
  /// second at the longest.
  void put_refusal(const RefusalNotice& notice) noexcept;
  /// The notices that a member has put by put_refusal().
  std::span<const RefusalNotice> refusals(int member) const noexcept { return box_.inbox(member).refusals; }

  /// This rank makes no more calls, and `completed` is the last call that it has ended. Sends kLeft, or kDeparted as
  /// the last words to all members. Then nothing may be put through this object afterwards.
  void leave(std::uint64_t completed, std::uint64_t word) noexcept;
  /// True when view() shows what the member of another node said in leave(): only then it tells of call 0.
  bool has_told_last_call(int member) noexcept {
    const View& told = view(member);
    return told.beat != 0 && told.snapshot.sequence == 0;
  }

  // FailureRecords
  FailureSign failure_sign() const noexcept override { return FailureSign(box_.own().alarm); }
  void claim(Status status, int member, std::string_view text, const MemberSet& absent) noexcept override;
  void push_out() noexcept override { box_.push_out(); }
  Cause read_cause() noexcept override;
  /// True once anybody, this rank included, has proposed a failure.
  bool is_alarmed() const noexcept { return failure_sign().is_set(); }
  /// How long members that say nothing are waited for, when others tell why they leave.
  std::int64_t grace_ns() const noexcept { return grace_ns_; }
  /// The one cause: waits until no living member can propose another one, or for a moment, and takes that of the lowest
  /// member. nullptr when an alarm came, and no cause within a second.
  const ControlBlocks::CauseBlock* settle() noexcept;

  /// Tells all members how many splits this one knows as made, and moves the transport until the words have left.
  /// `gives_up`: this one takes the next split for not made.
  void put_splits(std::uint64_t made, bool gives_up) noexcept;
  /// The last such message of a member, and whether the member has said that it knows of the team's failure.
  struct Splits {
    std::uint64_t made;
    bool gives_up;
    bool has_heard;  ///< of the team's failure: the messages of a split no longer tell the member that it is made
  };
  Splits splits(int member) const noexcept;

 private:
  const ControlBlocks::CauseBlock* cause_of(int member) const noexcept {
    return box_.arrived(member, &ControlBlocks::cause);
  }
  bool is_closed() noexcept;

  ControlWriter& box_;
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
  std::atomic<bool> proposed_ = false;  ///< or has said that it proposes nothing
  const ControlBlocks::CauseBlock* settled_ = nullptr;
  std::uint64_t splits_ = 0;  ///< that this rank knows as made
  bool has_settled_ = false;
};

}  // namespace torii
