// SPDX-License-Identifier: Apache-2.0
// Status lines, proposals and decisions: when they are put, and when a reader believes them.
#include "api/agreement/agreement_messages.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/deadline.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kFirstTellNs = 100 * kMs;
constexpr std::int64_t kMostTellNs = 1000 * kMs;
/// Every member tells every other one: with more members than this a rank tells them less often.
constexpr int kMembersPerSecond = 8;
/// How long the choice of a cause waits for members that say nothing: they compute, and will find the others' proposals
/// before they make one. Longer where ranks wait for CPUs.
constexpr std::int64_t kGraceNs = 40 * kMs;
constexpr std::int64_t kGraceSharedNs = 250 * kMs;
/// How long an alarm may be without a cause before the member that raised it counts as dead.
constexpr std::int64_t kCauseNs = 1000 * kMs;
/// A member's report about its own proposals.
enum FailureKnown : std::uint64_t { kNothing = 0, kMakesNone = 1, kHasMade = 2 };

std::uint64_t load(const std::uint64_t& word) noexcept {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed);
}

std::uint64_t check_of(const CallSnapshot& snapshot, std::uint64_t beat) noexcept {
  std::uint64_t sum = beat * 0x9e3779b97f4a7c15ULL + 1;
  for (const std::uint64_t value : {snapshot.sequence, snapshot.count, snapshot.kind,
                                    static_cast<std::uint64_t>(snapshot.root), snapshot.completed}) {
    sum = (sum ^ value ^ (sum >> 29)) * 0xbf58476d1ce4e5b9ULL;
  }
  return sum;
}

FailureKnown failure_known_by(const PeerInbox& inbox) noexcept {
  return static_cast<FailureKnown>(load_word(inbox.knows_failure) &
                                   ((std::uint64_t{1} << PeerInbox::kSplitsShift) - 1));
}

}  // namespace

AgreementMessages::AgreementMessages(ControlWriter& box, std::int64_t timeout_ns)
    : box_(box),
      grace_ns_(box.transport().oversubscribed() ? kGraceSharedNs : kGraceNs),
      first_ns_(std::min(kFirstTellNs, timeout_ns / 8)),
      most_ns_(std::min(kMostTellNs * std::max(1, box.ranks() / kMembersPerSecond), timeout_ns / 4)),
      views_(static_cast<std::size_t>(box.ranks())) {}

void AgreementMessages::tell(const CallSnapshot& snapshot) noexcept {
  interval_ns_ = 0;
  // The line is put to all members of other nodes, even if puts to one of them are in flight. If an engine still reads
  // a source that is written anew, the line is torn, and its checksum does not match.
  PeerInbox::Status& source = box_.own().status_sources[++beat_ % MessagesMemory::kStatusSources];
  source.snapshot = snapshot;
  source.beat = beat_;
  source.check = check_of(snapshot, beat_);
  // By the engines in turn: one of them may be lost.
  box_.put({.engine = static_cast<int>(beat_ % static_cast<std::uint64_t>(box_.engines())),
            .offset = offsetof(PeerInbox, status),
            .signal = beat_,
            .payload = &source.snapshot,
            .bytes = sizeof(source) - sizeof(source.signal),
            .only_other_nodes = true});
}

void AgreementMessages::publish(const CallSnapshot& snapshot, std::int64_t now_ns,
                                std::int64_t quiet_since_ns) noexcept {
  if (quiet_since_ns == 0) {
    interval_ns_ = 0;
    return;
  }
  const std::int64_t interval_ns = interval_ns_ == 0 ? first_ns_ : interval_ns_;
  const std::int64_t since_ns = interval_ns_ == 0 ? quiet_since_ns : told_ns_;
  if (now_ns - since_ns < interval_ns) return;
  tell(snapshot);
  told_ns_ = now_ns;
  interval_ns_ = std::min(2 * interval_ns, most_ns_);
}

const AgreementMessages::View& AgreementMessages::view(int member, bool of_persistent) noexcept {
  const PeerInbox::Status& line = box_.inbox(member).status;
  CallSnapshot snapshot;
  snapshot.sequence = load(line.snapshot.sequence);
  snapshot.count = load(line.snapshot.count);
  snapshot.kind = load(line.snapshot.kind);
  snapshot.root = std::atomic_ref(const_cast<std::int64_t&>(line.snapshot.root)).load(std::memory_order_relaxed);
  snapshot.completed = load(line.snapshot.completed);
  const std::uint64_t beat = load(line.beat);
  Views& views = views_[static_cast<std::size_t>(member)];
  View& told = is_persistent(snapshot.sequence) ? views.persistent : views.in_order;
  const bool is_news = beat > std::max(views.in_order.beat, views.persistent.beat);
  if (is_news && load(line.check) == check_of(snapshot, beat)) told = {snapshot, beat, now_ns()};
  return of_persistent ? views.persistent : views.in_order;
}

bool AgreementMessages::has_departed(int member) noexcept {
  const std::uint64_t* const words = box_.inbox(member).last_words;
  return std::all_of(words, words + box_.engines(), [](const std::uint64_t& word) { return load_word(word) != 0; });
}

/// A place is used again two calls later, and after kNotices runs. Should an engine still read the source then, the sum
/// shows it.
void AgreementMessages::put_refusal(const RefusalNotice& notice) noexcept {
  const std::size_t place = 2 * (notice.number % kNotices) + (notice.last - notice.first) % 2;
  write_notice(box_.own().refusal_sources[place], notice);
  box_.put({.offset = offsetof(PeerInbox, refusal_lines) + place * kLineBytes,
            .signal = ControlBlocks::kIsThere,
            .payload = &box_.own().refusal_sources[place],
            .bytes = sizeof(notice),
            .target_offset = offsetof(PeerInbox, refusals) + place * sizeof(notice)});
  box_.push_out();
}

void AgreementMessages::leave(std::uint64_t completed, std::uint64_t word) noexcept {
  // By every engine, since one of them may be lost.
  for (int engine = 0; engine < box_.engines(); ++engine) tell({.completed = completed});
  for (int engine = 0; engine < box_.engines(); ++engine) {
    const std::size_t place = static_cast<std::size_t>(engine) * sizeof(std::uint64_t);
    box_.put({.engine = engine, .offset = offsetof(PeerInbox, last_words) + place, .signal = word});
  }
  box_.push_out();
}

void AgreementMessages::claim(Status status, int member, std::string_view text, const MemberSet& absent) noexcept {
  // A member's proposal may have come while this rank was not in a call.
  constexpr int kLooks = 16;
  for (int look = 0; look < kLooks; ++look) (void)box_.transport().progress();
  if (is_alarmed() || proposed_.exchange(true, std::memory_order_acq_rel)) return;
  ControlBlocks::CauseBlock& source = box_.own().outbox.cause;
  source.status = static_cast<std::int32_t>(status);
  source.rank = member;
  source.absent = absent;
  (void)text.copy(source.text, kFailureTextBytes - 1);
  const std::size_t bytes = offsetof(ControlBlocks::CauseBlock, text) - offsetof(ControlBlocks::CauseBlock, status) +
                            std::min(text.size() + 1, kFailureTextBytes);
  box_.put_copies({.offset = offsetof(ControlBlocks, cause),
                   .signal = ControlBlocks::kIsThere,
                   .payload = &source.status,
                   .bytes = bytes});
  for (int engine = 0; engine < box_.engines(); ++engine) {
    box_.put({.engine = engine, .is_alarm = true, .signal = ControlBlocks::kIsThere});
  }
}

/// True when no living member can make a proposal that is not here.
bool AgreementMessages::is_closed() noexcept {
  for (int member = 0; member < box_.ranks(); ++member) {
    const std::uint64_t knows_failure = failure_known_by(box_.inbox(member));
    if (knows_failure == kMakesNone || (knows_failure == kHasMade && cause_of(member) != nullptr) ||
        has_departed(member))
      continue;
    bool is_said_dead = false;
    for (int from = 0; from < box_.ranks(); ++from) {
      const ControlBlocks::CauseBlock* const said = cause_of(from);
      is_said_dead = is_said_dead || (said != nullptr && said->rank == member &&
                                      said->status == static_cast<std::int32_t>(Status::peer_lost));
    }
    if (is_said_dead) continue;
    if (box_.transport().alive(box_.context_rank(member))) return false;
  }
  return true;
}

const ControlBlocks::CauseBlock* AgreementMessages::settle() noexcept {
  if (has_settled_) return settled_;
  // Another thread may be about to propose, and have looked before the alarm came: it proposes nothing any more.
  const std::uint64_t knows_failure = proposed_.exchange(true, std::memory_order_acq_rel) ? kHasMade : kMakesNone;
  box_.put_everywhere(offsetof(PeerInbox, knows_failure), splits_ << PeerInbox::kSplitsShift | knows_failure);
  Deadline grace(grace_ns_);
  Deadline cause(kCauseNs);
  while (!has_settled_) {
    (void)box_.transport().progress();
    const bool is_late = cause.is_over();
    if (grace.is_over() || is_closed()) {
      for (int lowest = 0; lowest < box_.ranks() && settled_ == nullptr; ++lowest) settled_ = cause_of(lowest);
    }
    has_settled_ = settled_ != nullptr || is_late;
    if (!has_settled_) nap();
  }
  box_.push_out();
  return settled_;
}

Cause AgreementMessages::read_cause() noexcept {
  const ControlBlocks::CauseBlock* const cause = settle();
  if (cause == nullptr) return {Status::internal, kNoCause};
  return {static_cast<Status>(cause->status), cause->text, cause->rank, cause->absent};
}

void AgreementMessages::put_splits(std::uint64_t made, bool gives_up) noexcept {
  splits_ = made;
  box_.put_everywhere(offsetof(PeerInbox, splits), 2 * made + (gives_up ? 1 : 0));
  box_.push_out();
}

AgreementMessages::Splits AgreementMessages::splits(int member) const noexcept {
  // The word of a failure may overtake that of a split, so it repeats the number.
  const std::uint64_t knows_failure = load_word(box_.inbox(member).knows_failure);
  const std::uint64_t word = load_word(box_.inbox(member).splits);
  return {std::max(word / 2, knows_failure >> PeerInbox::kSplitsShift), word % 2 != 0, knows_failure != 0};
}

}  // namespace torii
