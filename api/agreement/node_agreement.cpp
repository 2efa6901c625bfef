// SPDX-License-Identifier: Apache-2.0
// Words of TeamControl: the failure record, call records, departures, splits, rounds of survivors.
#include "api/agreement/node_agreement.hpp"

#include <cstring>

#include "api/agreement/call_records.hpp"

namespace torii {
namespace {

/// How long a claimed failure record may stay unpublished before its writer counts as dead.
constexpr std::int64_t kClaimNs = 1'000'000'000;

}  // namespace

NodeAgreement::NodeAgreement(const Membership& members)
    : members_(members),
      own_(members.control()),
      first_(members.control(0)),
      host_(members),
      survivors_(host_,
                 NodeRounds([&members](int member) -> SurvivorsRecord& { return members.control(member).survivors; },
                            members.rank(), members.ranks())) {}

FailureSign NodeAgreement::failure_sign() const noexcept { return FailureSign(first_.failure.state); }

void NodeAgreement::claim(Status status, int member, const std::string& text, const MemberSet& absent) noexcept {
  FailureRecord& record = first_.failure;
  std::uint32_t none = FailureRecord::kNone;
  if (!record.state.compare_exchange_strong(none, FailureRecord::kClaimed, std::memory_order_acq_rel)) return;
  record.status = static_cast<std::int32_t>(status);
  record.rank = member;
  record.absent = absent;
  std::strncpy(record.text, text.c_str(), kFailureTextBytes - 1);
  record.state.store(FailureRecord::kPublished, std::memory_order_release);
}

Cause NodeAgreement::read_cause() noexcept {
  const FailureRecord& record = first_.failure;
  Deadline claim(kClaimNs);
  while (record.state.load(std::memory_order_acquire) == FailureRecord::kClaimed && !claim.is_over()) {
  }
  if (record.state.load(std::memory_order_acquire) != FailureRecord::kPublished) return {Status::internal, kNoCause};
  return {static_cast<Status>(record.status), record.text, record.rank, record.absent};
}

std::optional<CallSnapshot> NodeAgreement::snapshot_of(int member, std::uint64_t sequence) noexcept {
  return read_record(members_.control(member), sequence);
}

bool NodeAgreement::has_come_to(int member, std::uint64_t sequence) noexcept {
  return has_recorded(members_.control(member), sequence);
}

std::uint64_t NodeAgreement::completed_by(int member) noexcept {
  return members_.control(member).completed.load(std::memory_order_acquire);
}

std::int64_t NodeAgreement::last_attentive_ns(int member) noexcept {
  return members_.control(member).last_attentive_ns.load(std::memory_order_relaxed);
}

void NodeAgreement::put_refusal(const RefusalNotice& notice) noexcept {
  write_notice(own_.refusals[notice.number % kNotices], notice);
}

std::span<const RefusalNotice> NodeAgreement::refusals_of(int member) noexcept {
  return members_.control(member).refusals;
}

void NodeAgreement::put_install(std::uint64_t number, std::uint64_t word) noexcept {
  own_.installs[number % InstallLog::kWords].store(word, std::memory_order_release);
}

std::uint64_t NodeAgreement::install_word(int member, std::uint64_t number) noexcept {
  return members_.control(member).installs[number % InstallLog::kWords].load(std::memory_order_acquire);
}

void NodeAgreement::put_epoch(std::uint64_t epoch) noexcept { own_.recycled.store(epoch, std::memory_order_release); }

bool NodeAgreement::has_reached(int member, std::uint64_t epoch) noexcept {
  return members_.control(member).recycled.load(std::memory_order_acquire) >= epoch;
}

void NodeAgreement::leave() noexcept {
  for (int member = 0; member < members_.ranks(); ++member) {
    members_.control(member).departed[members_.rank()].store(kHasLeft, std::memory_order_release);
  }
}

bool NodeAgreement::has_departed(int member) noexcept {
  return own_.departed[member].load(std::memory_order_acquire) != 0;
}

std::optional<std::uint64_t> NodeAgreement::departed_after(int member) noexcept {
  if (!has_departed(member)) return std::nullopt;
  return completed_by(member);  // the acquire above shows what the member stored before its last word
}

void NodeAgreement::depart(std::uint64_t touched_bytes) noexcept {
  for (int member = 0; member < members_.ranks(); ++member) {
    TeamControl& control = members_.control(member);
    std::uint64_t most_bytes = control.touched_bytes.load(std::memory_order_relaxed);
    while (most_bytes < touched_bytes &&
           !control.touched_bytes.compare_exchange_weak(most_bytes, touched_bytes, std::memory_order_relaxed)) {
    }
    // The release makes the bytes above known with the last word, and all that was stored before.
    control.departed[members_.rank()].store(kIsGone, std::memory_order_release);
  }
}

/// A member may leave a split and abort the team while another member waits for the last messages of the split. The
/// first of the two decides by one word whether the parts are made.
std::optional<bool> NodeAgreement::decide_split(bool agreed) noexcept {
  // Release and acquire: a rank that finds the split failed finds the failure, too.
  std::uint32_t found = 2 * splits_;
  const std::uint32_t decided = agreed ? found + 2 : found + 1;
  if (first_.splits.compare_exchange_strong(found, decided, std::memory_order_acq_rel, std::memory_order_acquire)) {
    found = decided;
  }
  // Others may have made later splits, or failed in them, but only after this one was made.
  if (found / 2 <= splits_) return false;
  ++splits_;
  return true;
}

void NodeAgreement::throw_failed(const NodeSurvivors::Outcome& outcome) const {
  if (outcome.kind == NodeSurvivors::Outcome::Kind::failed) throw RoundError(outcome.failure);
  throw_left_out(members_.rank());
}

void NodeAgreement::choose_survivors(const SurvivorProposal& own, std::vector<Survivor>& chosen) {
  const NodeSurvivors::Outcome outcome = survivors_.choose(own);
  if (outcome.kind != NodeSurvivors::Outcome::Kind::chosen) throw_failed(outcome);
  for (int member = 0; member < members_.ranks(); ++member) {
    if (outcome.members.has(member)) chosen.push_back({member, survivors_.proposal_of(member).staging});
  }
}

bool NodeAgreement::settle_survivors(const Trouble& trouble, const std::vector<Survivor>& chosen) {
  MemberSet members = {};
  for (const Survivor& one : chosen) members.add(one.member);
  const RoundFailure refusal = refusal_of(members_.rank(), trouble.status, trouble.text);
  const NodeSurvivors::Outcome outcome = survivors_.settle(members, trouble.is_there() ? &refusal : nullptr);
  if (outcome.kind == NodeSurvivors::Outcome::Kind::late) return false;
  if (outcome.kind != NodeSurvivors::Outcome::Kind::made) throw_failed(outcome);
  return true;
}

}  // namespace torii
