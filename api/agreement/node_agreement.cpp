// SPDX-License-Identifier: Apache-2.0
// Words of TeamControl: the failure record, call records, departures.
#include "api/agreement/node_agreement.hpp"

#include <algorithm>

#include "api/agreement/call_records.hpp"
#include "runtime/base/deadline.hpp"

namespace torii {
namespace {

/// How long a claimed failure record may stay unpublished before its writer counts as dead.
constexpr std::int64_t kClaimNs = 1'000'000'000;

}  // namespace

void NodeFailureRecords::claim(Status status, int member, std::string_view text, const MemberSet& absent) noexcept {
  std::uint32_t none = FailureRecord::kNone;
  if (!record_.state.compare_exchange_strong(none, FailureRecord::kClaimed, std::memory_order_acq_rel)) return;
  record_.status = static_cast<std::int32_t>(status);
  record_.rank = member;
  record_.absent = absent;
  (void)text.copy(record_.text, kFailureTextBytes - 1);
  record_.state.store(FailureRecord::kPublished, std::memory_order_release);
}

Cause NodeFailureRecords::read_cause() noexcept {
  Deadline claim(kClaimNs);
  while (record_.state.load(std::memory_order_acquire) == FailureRecord::kClaimed && !claim.is_over()) {
  }
  if (record_.state.load(std::memory_order_acquire) != FailureRecord::kPublished) return {Status::internal, kNoCause};
  return {static_cast<Status>(record_.status), record_.text, record_.rank, record_.absent};
}

std::optional<CallSnapshot> NodeCallBoard::snapshot_of(int member, std::uint64_t sequence) noexcept {
  return read_record(members_.control(member), sequence);
}

bool NodeCallBoard::has_come_to(int member, std::uint64_t sequence) noexcept {
  return has_recorded(members_.control(member), sequence);
}

std::uint64_t NodeCallBoard::completed_by(int member) noexcept {
  return members_.control(member).completed.load(std::memory_order_acquire);
}

/// A call may yet be refused although its record is there (an operation that is prepared), but none before it. The
/// member writes a notice before it records its next call, and before it counts the refused one as ended.
std::uint64_t NodeCallBoard::settled_by(int member) noexcept {
  const std::uint64_t come_to = last_recorded(members_.control(member));
  return std::max(completed_by(member), come_to == 0 ? 0 : come_to - 1);
}

std::int64_t NodeCallBoard::last_attentive_ns(int member) noexcept {
  return members_.control(member).last_attentive_ns.load(std::memory_order_relaxed);
}

std::span<const RefusalNotice> NodeCallBoard::refusals_of(int member) noexcept {
  return members_.control(member).refusals;
}

bool NodeCallBoard::has_departed(int member) noexcept {
  return members_.control().departed[member].load(std::memory_order_acquire) != 0;
}

std::optional<std::uint64_t> NodeCallBoard::departed_after(int member) noexcept {
  if (!has_departed(member)) return std::nullopt;
  return completed_by(member);  // the acquire above shows what the member stored before its last word
}

void NodeCallBoard::put_refusal(const RefusalNotice& notice) noexcept {
  write_notice(members_.control().refusals[notice.number % kNotices], notice);
}

void NodeCallBoard::leave() noexcept {
  for (int member = 0; member < members_.ranks(); ++member) {
    members_.control(member).departed[members_.rank()].store(kHasLeft, std::memory_order_release);
  }
}

NodeAgreement::NodeAgreement(const Membership& members)
    : members_(members), failures_(members.control(0).failure), calls_(members), vote_(members) {}

void NodeAgreement::depart(const TouchedMemory& touched) noexcept {
  const auto raise = [](std::atomic<std::uint64_t>& most, std::uint64_t bytes) {
    std::uint64_t most_bytes = most.load(std::memory_order_relaxed);
    while (most_bytes < bytes && !most.compare_exchange_weak(most_bytes, bytes, std::memory_order_relaxed)) {
    }
  };
  for (int member = 0; member < members_.ranks(); ++member) {
    TeamControl& control = members_.control(member);
    raise(control.touched_pair_bytes, touched.pair_bytes);
    raise(control.touched_ring_bytes, touched.ring_bytes);
    // The release makes the bytes above known with the last word, and all that was stored before.
    control.departed[members_.rank()].store(kIsGone, std::memory_order_release);
  }
}

}  // namespace torii
