// SPDX-License-Identifier: Apache-2.0
// The slow checks of a wait, and the texts of what they find.
#include "api/running/failure_monitor.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "api/calls/pair_call.hpp"

namespace torii {
namespace {

constexpr std::int64_t kAliveEveryNs = 10'000'000;
/// How long a rank has waited for something before it takes a dead member of another node for the reason.
constexpr std::int64_t kDoubtNs = 20'000'000;
/// The members tell of their calls within this time.
constexpr std::int64_t kCallsAreToldNs = 500'000'000;

constexpr const char* kUnreadable =
    "the kernel no longer lets it read that rank's memory (ptrace_scope, PR_SET_DUMPABLE); set TORII_CROSS_MEMORY=off";

std::string text_of(const Request& request) {
  return request.pair == nullptr ? call_text(request.call.spec) : pair_text(*request.pair);
}

std::string verb_of(const CallSnapshot& snapshot) {
  return (snapshot.kind & kPreparesInRecord & 0xffffffff) != 0 ? " prepares " : " calls ";
}

CallSpec spec_of(const CallSnapshot& snapshot) {
  CallSpec spec;
  spec.collective = Collective{static_cast<std::uint8_t>(snapshot.kind >> 16)};
  spec.type = Type{static_cast<std::uint8_t>(snapshot.kind >> 8)};
  spec.op = OpNumber{static_cast<std::uint8_t>(snapshot.kind)};
  spec.root = static_cast<int>(snapshot.root);
  if (snapshot.count == kUnequalInRecord) {
    spec.set(CallMark::unequal);
  } else {
    spec.count = snapshot.count;
  }
  if ((snapshot.kind & kPacksInRecord) != 0) spec.set(CallMark::packed);
  if ((snapshot.kind & kLeavesInRecord) != 0) spec.set(CallMark::leaves);
  if ((snapshot.kind & kOrderedInRecord) != 0) spec.set(CallMark::ordered);
  return spec;
}

MemberSet set_of(const std::vector<int>& members) {
  MemberSet set = {};
  for (const int member : members) set.add(member);
  return set;
}

}  // namespace

FailureMonitor::FailureMonitor(const Membership& members, TeamAgreement& agreement, OwnCalls& calls,
                               const Channels& channels, PlanCache& plans) noexcept
    : members_(members),
      agreement_(agreement),
      failed_(agreement.failure_sign()),
      calls_(calls),
      channels_(channels),
      plans_(plans) {}

/// Claims the team's failure record unless another member has; between nodes proposes a cause. Returns true.
bool FailureMonitor::claim(Status status, int member, const std::string& text, const MemberSet& absent) noexcept {
  agreement_.claim(status, member, text, absent);
  return true;
}

bool FailureMonitor::finds_failure(const Waiting& waiting, Request& request) noexcept {
  agreement_.progress();
  if (failed_.is_set()) return true;
  const std::int64_t now = now_ns();
  calls_.note_attentive(now);
  // A send or a receive has no place in the order of calls. A rank that waits in one tells of its last call, for which
  // another rank may wait whose calls differ.
  const std::optional<CallSnapshot> told =
      request.pair == nullptr ? calls_.next_snapshot(request) : calls_.last_snapshot();
  if (told) agreement_.publish(*told, now, now - waiting.quiet_ns());
  try {
    if (request.pair != nullptr) {
      if (finds_refused_call(calls_.sequence()) || finds_dead_member(waiting, request, now)) return true;
      if (finds_other_call(request) || finds_departed_member(waiting, request, now)) return true;
      return waiting.is_over() && claim_timeout_of_pair(request);
    }
    if (finds_refused_call(calls_.sequence()) || finds_dead_member(waiting, request, now)) return true;
    if (finds_other_call(request) || finds_other_length() || finds_other_plan(waiting, request)) return true;
    if (finds_departed_member(waiting, request, now)) return true;
    return waiting.quiet_ns() > request.timeout_ns(members_.timeout_ns()) && claim_timeout(waiting, request);
  } catch (const std::exception&) {
    return claim(Status::no_resource, members_.rank(), "out of memory");
  }
}

bool FailureMonitor::finds_failure_in_start(const Waiting& waiting, int member, const std::string& purpose) {
  if (failed_.is_set()) return true;
  if (finds_refused_call(calls_.sequence() - 1)) return true;  // this rank may yet refuse the call that it starts
  const std::string own = "rank " + std::to_string(members_.rank());
  if (!members_.is_alive(member)) {
    return claim(Status::peer_lost, member,
                 members_.text(member) + (members_.is_left_out(member) ? " was left out while " : " died while ") +
                     own + " waited for it " + purpose);
  }
  return waiting.is_over() && claim(Status::timeout, member,
                                    "no progress for " + std::to_string(members_.timeout_ns() / 1'000'000) +
                                        " ms while " + own + " waited for " + members_.text(member) + " " + purpose,
                                    set_of({member}));
}

/// The rank for which an open send or receive waits, as text.
std::string FailureMonitor::waiting_text(const PairCall& call) const {
  if (call.sends) return "waiting for " + members_.text(call.peer) + " to receive it";
  if (call.receive.got_bytes != 0) {
    return "with " + std::to_string(call.receive.got_bytes) + " of " + std::to_string(call.receive.envelope.bytes) +
           " bytes, waiting for " + members_.text(call.receive.envelope.from);
  }
  return call.peer < 0 ? "waiting for any rank to send it" : "waiting for " + members_.text(call.peer) + " to send it";
}

/// "in 'up tree 0', segment 7, waiting for rank 3 on host a".
std::string FailureMonitor::phase_text(const Request& request) const {
  if (request.state == Request::State::queued) return "queued behind another operation";
  if (request.pair != nullptr) return waiting_text(*request.pair);
  for (const auto& channel : channels_) {
    if (channel->current != &request) continue;
    if (channel->awaited != 0) {
      const bool all_agree = channel->agreed_members == members_.ranks();
      return "before its first message, waiting for " +
             (all_agree ? "its own words to leave" : members_.text(channel->agreed_members));
    }
    const Stall stall = channel->execution.stall();
    std::string text = "in '" + std::string(stall.label) + "', segment " + std::to_string(stall.segment);
    const int member = members_.member_of(stall.peer);
    return member < 0 ? text : text + ", waiting for " + members_.text(member);
  }
  return "at its end";
}

/// True when the member ended this call, or destroyed the team, before it died: no rank waits for it here.
bool FailureMonitor::has_left_after(int member, const Request& request) noexcept {
  return agreement_.has_departed(member) ||
         (request.sequence != 0 && agreement_.completed_by(member) >= request.sequence);
}

/// A dead member of another node may have ended this call before it died, and then this rank mostly goes on. So such a
/// member counts as lost only after this rank has waited for a moment.
bool FailureMonitor::finds_dead_member(const Waiting& waiting, const Request& request, std::int64_t now) {
  if (now - alive_checked_ns_ < kAliveEveryNs) return false;
  alive_checked_ns_ = now;
  members_.context().report_strangers();
  for (int member = 0; member < members_.ranks(); ++member) {
    if (has_left_after(member, request) || members_.is_alive(member)) continue;
    if (members_.is_distant(member) && waiting.attentive_ns() < kDoubtNs) continue;
    return claim(Status::peer_lost, member,
                 members_.text(member) + (members_.is_left_out(member) ? " was left out before " : " died during ") +
                     text_of(request) + ", noticed by rank " + std::to_string(members_.rank()) + " " +
                     phase_text(request));
  }
  return false;
}

/// Along a chain of partners the rank that this one waits for may itself wait. So the text names the ranks that have
/// not come to the call, and those that are in it but have stopped looking. May throw.
bool FailureMonitor::claim_timeout(const Waiting& waiting, const Request& request) {
  const std::int64_t timeout_ns = request.timeout_ns(members_.timeout_ns());
  std::vector<int> absent;
  std::vector<int> stuck;
  for (int member = 0; member < members_.ranks(); ++member) {
    if (member == members_.rank() || has_left_after(member, request)) continue;
    // While this process did not run, the members perhaps did not either.
    const std::int64_t quiet_ns = now_ns() - std::max(agreement_.last_attentive_ns(member), waiting.resumed_ns());
    if (!agreement_.has_come_to(member, request.sequence)) {
      absent.push_back(member);
    } else if (quiet_ns > (members_.is_distant(member) ? members_.timeout_ns() : timeout_ns) / 2) {
      stuck.push_back(member);
    }
  }
  std::string text = "no progress for " + std::to_string(timeout_ns / 1'000'000) + " ms in " +
                     call_text(request.call.spec) + " on " + members_.text(members_.rank()) + " " + phase_text(request);
  if (!absent.empty()) text += "; not come to the call: " + members_.text(absent);
  if (!stuck.empty()) text += "; in the call but not moving it: " + members_.text(stuck);
  const int named = !absent.empty() ? absent.front() : !stuck.empty() ? stuck.front() : members_.rank();
  MemberSet missing = set_of(absent);
  for (const int member : stuck) missing.add(member);
  return claim(Status::timeout, named, text, missing);
}

/// Only the other end can be the cause, and of a receive from any rank nobody in particular.
bool FailureMonitor::claim_timeout_of_pair(const Request& request) {
  const PairCall& call = *request.pair;
  return claim(Status::timeout, call.peer >= 0 ? call.peer : members_.rank(),
               "no progress for " + std::to_string(members_.timeout_ns() / 1'000'000) + " ms in " + pair_text(call) +
                   " on " + members_.text(members_.rank()) + " " + phase_text(request),
               call.peer >= 0 && call.peer != members_.rank() ? set_of({call.peer}) : MemberSet{});
}

void FailureMonitor::claim_transport(const Execution& execution, const Request& request) noexcept {
  // Only a peer's private memory is refused.
  const bool is_unreadable = execution.status() == Status::unsupported;
  const Status status = is_unreadable ? Status::transport : execution.status();
  const int member = members_.member_of(execution.failed_peer());
  try {
    std::string text = "the transport failed";
    if (member >= 0 && status == Status::peer_lost) {
      text = members_.text(member) + " died";
    } else if (member >= 0 && status == Status::mismatch) {
      text = fault_text(execution.length_fault());
    } else if (member >= 0) {
      text += " towards " + members_.text(member);
    }
    const bool is_earlier = status == Status::mismatch && execution.length_fault().is_earlier;
    text += is_earlier ? " during a call before this " : " during ";
    text += call_text(request.call.spec) + ", noticed by rank " + std::to_string(members_.rank()) + " " +
            phase_text(request);
    const std::string refusal = is_unreadable ? kUnreadable : execution.refusal();
    const std::string reason = refusal.empty() ? members_.transport().failure_text() : refusal;
    if (!reason.empty()) text += ": " + reason;
    (void)claim(status, member >= 0 ? member : members_.rank(), text);
  } catch (const std::exception&) {
    (void)claim(status, member >= 0 ? member : members_.rank(), "the transport failed");
  }
}

/// Compares this rank's calls with those of its peers at the same places: the call in which it waits. Persistent
/// operations, sends and receives are in no order with other calls, so for them the last call before is compared as
/// well.
bool FailureMonitor::finds_other_call(const Request& request) {
  const bool is_pair = request.pair != nullptr;
  for (int member = 0; member < members_.ranks(); ++member) {
    if (!is_pair && differs(member, request, request.sequence)) return true;
    if ((is_pair || is_persistent(request.sequence)) && differs(member, request, calls_.sequence())) return true;
  }
  return false;
}

bool FailureMonitor::differs(int member, const Request& request, std::uint64_t sequence) {
  const std::optional<CallSnapshot> theirs = agreement_.snapshot_of(member, sequence);
  if (!theirs || theirs->sequence == 0) return false;
  const std::optional<CallSnapshot> own = calls_.recorded(theirs->sequence);
  if (!own || own->kind >> 32 == theirs->kind >> 32) return false;
  const std::string own_call =
      verb_of(*own) + call_text(own->sequence == request.sequence ? request.call.spec : spec_of(*own));
  const std::string their_call = verb_of(*theirs) + call_text(spec_of(*theirs));
  const std::string own_text = std::to_string(members_.rank()) + own_call;
  const std::string their_text = std::to_string(member) + their_call;
  std::string difference;
  if (own_call == their_call) {
    const bool has_counts = own->count == kUnequalInRecord || (own->kind & kPacksInRecord) != 0;
    const std::string refusals = refusals_text(member);
    const bool has_leaves = (own->kind & kLeavesInRecord) != 0 && refusals.empty();
    const bool is_user = combines_by_user(spec_of(*own)) && refusals.empty();
    difference = has_counts   ? ", with other counts"
                 : has_leaves ? ", over other leaves or after calls that differ"
                 : is_user    ? ", with other user_bytes or after calls that differ"
                              : ", after calls that differ" + refusals;
  }
  // Named from the lower rank's side, so that the text does not depend on which rank noticed first.
  const bool mine_first = members_.rank() < member;
  return claim(Status::mismatch, std::max(members_.rank(), member),
               "calls differ: rank " + (mine_first ? own_text : their_text) + ", rank " +
                   (mine_first ? their_text : own_text) + difference);
}

/// The members' reports about their calls name a difference better, and may come a little later.
bool FailureMonitor::waits_long(const Waiting& waiting, const Request& request) const noexcept {
  return waiting.quiet_ns() >= calls_are_told_ns(request);
}

std::int64_t FailureMonitor::calls_are_told_ns(const Request& request) const noexcept {
  return std::min(kCallsAreToldNs, request.timeout_ns(members_.timeout_ns()) / 2);
}

bool FailureMonitor::claim_departed(int member, const std::string& call) {
  return claim(Status::mismatch, member, members_.text(member) + " destroyed the team before it came to " + call);
}

/// Finds a member that destroyed the team before it came to this rank's call.
bool FailureMonitor::finds_departed_member(const Waiting& waiting, Request& request, std::int64_t now) {
  if (request.pair != nullptr || is_persistent(request.sequence)) {
    return finds_awaited_member_gone(waiting, request, now);
  }
  if (!waits_long(waiting, request)) return false;
  for (int member = 0; member < members_.ranks(); ++member) {
    const std::optional<std::uint64_t> last = agreement_.departed_after(member);
    if (last && *last < request.sequence) return claim_departed(member, call_text(request.call.spec));
  }
  return false;
}

/// completed_by() counts no persistent operations, no sends and no receives. A member that has ended its part of such
/// an operation before it left is no longer awaited. Between nodes, though, its last messages may come a little after
/// its last word.
bool FailureMonitor::finds_awaited_member_gone(const Waiting& waiting, Request& request, std::int64_t now) {
  const int member = departed_member_awaited_by(request);
  auto& checks = request.checks;
  if (member < 0 || member != checks.suspect || request.sequence != checks.sequence) {
    checks = {checks.turn, member, request.sequence, now};
    return false;
  }
  if (!waits_long(waiting, request)) return false;
  if (members_.is_distant(member) && now - checks.since_ns < calls_are_told_ns(request)) return false;
  return claim_departed(member, text_of(request));
}

/// -1: none.
int FailureMonitor::departed_member_awaited_by(const Request& request) noexcept {
  if (request.pair != nullptr) {
    return request.pair->peer >= 0 && agreement_.has_departed(request.pair->peer) ? request.pair->peer : -1;
  }
  const Channel& channel = channels_[request.runs_on];
  if (channel.current != &request || channel.awaited != 0) return -1;
  for (int member = 0; member < members_.ranks(); ++member) {
    if (agreement_.has_departed(member) && channel.execution.awaits(members_.at(member).context_rank)) return member;
  }
  return -1;
}

/// Finds a member that has installed other plans, if the calls themselves do not show the difference.
bool FailureMonitor::finds_other_plan(const Waiting& waiting, const Request& request) {
  if (!waits_long(waiting, request)) return false;
  for (const auto& channel : channels_) {
    if (channel->current == nullptr || channel->awaited == 0) continue;
    for (int member = channel->agreed_members; member < members_.ranks(); ++member) {
      // Read before the word: a member publishes its words before it leaves.
      const bool has_left = agreement_.has_departed(member);
      const InstallLog::Verdict verdict = plans_.verdict(member, channel->awaited);
      if (verdict == InstallLog::Verdict::not_yet && has_left) {
        return claim_departed(member, call_text(request.call.spec));
      }
      if (verdict != InstallLog::Verdict::differs) continue;
      return claim(Status::mismatch, std::max(members_.rank(), member),
                   "calls differ: before " + call_text(request.call.spec) + ", rank " +
                       std::to_string(std::min(members_.rank(), member)) + " and rank " +
                       std::to_string(std::max(members_.rank(), member)) + " made calls with different plans");
    }
  }
  return false;
}

/// Compares what this rank, whose calls up to `own_sequence` are settled, refused with what each member did. May throw.
bool FailureMonitor::finds_refused_call(std::uint64_t own_sequence) {
  for (int member = 0; member < members_.ranks(); ++member) {
    if (member == members_.rank()) continue;
    const std::span<const RefusalNotice> theirs = agreement_.refusals_of(member);
    // A member writes a notice before it writes its next call in the call records. Between nodes messages may overtake
    // each other; there the member finds this rank's notice, or finds_other_call() finds that signatures differ.
    const auto has_passed = [&](std::uint64_t sequence) {
      return !members_.is_distant(member) && agreement_.has_come_to(member, sequence + 1);
    };
    const RefusedCalls& refused = calls_.refused();
    if (const auto own = refused.refused_here_alone(theirs, has_passed)) return claim_refused(members_.rank(), *own);
    if (const auto other = refused.refused_by_peer_alone(theirs, own_sequence)) return claim_refused(member, *other);
  }
  return false;
}

/// The last refused calls of this rank and of that member: a cause of differences that no call shows.
std::string FailureMonitor::refusals_text(int member) {
  std::string text;
  const auto add = [&](int rank, const std::optional<RefusalNotice>& notice) {
    if (notice) text += "; " + members_.text(rank) + " has refused a call: " + notice->text.data();
  };
  const auto own = calls_.refused().last();
  const auto theirs = last_notice(agreement_.refusals_of(member));
  if (members_.rank() < member) add(members_.rank(), own);
  add(member, theirs);
  if (members_.rank() > member) add(members_.rank(), own);
  return text;
}

bool FailureMonitor::claim_refused(int member, const RefusedCall& refused) {
  return claim(Status::mismatch, member,
               "calls differ: " + members_.text(member) + " refused its call " + std::to_string(refused.sequence) +
                   " on this team, which other ranks made: " + refused.notice.text.data());
}

void FailureMonitor::abort(const std::string& reason) noexcept {
  // Only the record: this may be any thread, and the caller of an operation finds it in its next check.
  const std::string text = "aborted by rank " + std::to_string(members_.rank()) + (reason.empty() ? "" : ": " + reason);
  agreement_.claim(Status::aborted, members_.rank(), text);
  // This rank may never be in a call again.
  agreement_.push_out();
}

}  // namespace torii
