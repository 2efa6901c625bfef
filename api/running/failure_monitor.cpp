// SPDX-License-Identifier: Apache-2.0
// The slow checks of a wait: what they look at, and when.
#include "api/running/failure_monitor.hpp"

#include <utility>

#include "api/calls/pair_call.hpp"

namespace torii {
namespace {

constexpr std::int64_t kAliveEveryNs = 10'000'000;

constexpr const char* kUnreadable =
    "the kernel no longer lets it read that rank's memory (ptrace_scope, PR_SET_DUMPABLE); set TORII_CROSS_MEMORY=off";

std::string text_of(const Request& request) {
  return request.pair == nullptr ? call_text(request.call.spec) : pair_text(*request.pair);
}

/// Only a peer's private memory is refused.
bool is_unreadable(const Execution& execution) noexcept { return execution.status() == Status::unsupported; }
Status status_of(const Execution& execution) noexcept {
  return is_unreadable(execution) ? Status::transport : execution.status();
}

}  // namespace

FailureMonitor::FailureMonitor(const Membership& members, FailureRecords& failures, CallBoard& board, OwnCalls& calls,
                               const Channels& channels, PlanCache& plans)
    : members_(members),
      failures_(failures),
      board_(board),
      failed_(failures.failure_sign()),
      calls_(calls),
      channels_(channels),
      plans_(plans) {
  watched_.reserve(static_cast<std::size_t>(members.ranks()));
  for (int member = 0; member < members.ranks(); ++member) {
    if (member == members.rank()) continue;
    MemberView& view = watched_.emplace_back();
    view.member = member;
    view.host = members.host(member);
    view.is_distant = members.is_distant(member);
    view.refusals = board.refusals_of(member);
  }
}

void FailureMonitor::claim(Status status, int member, std::string_view text, const MemberSet& absent) noexcept {
  failures_.claim(status, member, text, absent);
}

bool FailureMonitor::claims(const std::optional<Finding>& found) noexcept {
  if (found) claim(found->status, found->member, found->text, found->absent);
  return found.has_value();
}

bool FailureMonitor::finds_failure(const Waiting& waiting, Request& request) noexcept {
  members_.take_messages();
  if (failed_.is_set()) return true;
  const std::int64_t now = now_ns();
  calls_.note_attentive(now);
  // A send or a receive has no place in the order of calls. A rank that waits in one tells of its last call, for which
  // another rank may wait whose calls differ.
  const std::optional<CallSnapshot> told =
      request.pair == nullptr ? calls_.next_snapshot(request) : calls_.last_snapshot();
  if (told) board_.publish(*told, now, now - waiting.quiet_ns());
  try {
    return claims(find(waiting, request, now));
  } catch (const std::exception&) {
    claim(Status::no_resource, members_.rank(), "out of memory");
    return true;
  }
}

std::optional<Finding> FailureMonitor::find(const Waiting& waiting, Request& request, std::int64_t now) {
  OwnView own = own_view(waiting, request, now);
  look_at_calls(request);
  if (auto found = find_refused_call(watched_, own)) return found;
  if (looks_who_lives(request, now)) {
    if (auto found = find_dead_member(watched_, own)) return found;
  }
  if (auto found = find_other_call(watched_, own)) return found;
  if (request.pair == nullptr) {
    if (auto found = find_other_length(own)) return found;
  }
  if (auto found = find_departed(own, request)) return found;
  if (request.pair != nullptr) return waiting.is_over() ? std::optional(find_silent_peer(own)) : std::nullopt;
  if (own.quiet_ns <= own.timeout_ns) return {};
  look_who_is_silent(request);
  return find_silent_members(watched_, own);
}

OwnView FailureMonitor::own_view(const Waiting& waiting, const Request& request, std::int64_t now) const {
  OwnView own;
  own.calls = own_records_;
  own.member = members_.rank();
  own.host = members_.host(members_.rank());
  own.refused = &calls_.refused();
  own.last_settled = calls_.sequence();
  own.team_timeout_ns = members_.timeout_ns();
  own.now_ns = now;
  own.quiet_ns = waiting.quiet_ns();
  own.attentive_ns = waiting.attentive_ns();
  own.resumed_ns = waiting.resumed_ns();
  set_request(own, request);
  return own;
}

void FailureMonitor::set_request(OwnView& own, const Request& request) const {
  own.sequence = request.sequence;
  if (request.pair != nullptr) own.peer = request.pair->peer;
  own.timeout_ns = request.timeout_ns(members_.timeout_ns());
  own.call = [&request] { return text_of(request); };
  own.phase = [this, &request] { return phase_text(request); };
}

/// Nothing is known here of members of other nodes: there the member finds this rank's notice, or find_other_call()
/// finds that signatures differ.
void FailureMonitor::look_for_refusals() noexcept {
  if (calls_.refused().is_empty()) return;
  for (MemberView& view : watched_) view.last_settled = board_.settled_by(view.member);
}

/// Signatures are salted with the calls before, so all calls after the first one that differs do differ. That one is
/// named, if both ranks still have its record.
void FailureMonitor::look_at_calls(const Request& request) noexcept {
  calls_.copy_records(own_records_);
  const bool is_pair = request.pair != nullptr;
  const bool needs_last = is_pair || is_persistent(request.sequence);
  const auto call_of = [this](int member, std::uint64_t sequence) {
    return board_.snapshot_of(member, sequence).value_or(CallSnapshot{});
  };
  const auto first_other = [&](int member, CallSnapshot theirs) {
    while (is_other_call(theirs, own_records_)) {
      const CallSnapshot before = call_of(member, theirs.sequence - 1);
      if (before.sequence != theirs.sequence - 1 || !is_other_call(before, own_records_)) break;
      theirs = before;
    }
    return theirs;
  };
  for (MemberView& view : watched_) {
    view.call = is_pair ? CallSnapshot{} : first_other(view.member, call_of(view.member, request.sequence));
    if (needs_last) {
      view.last_call = first_other(view.member, call_of(view.member, calls_.sequence()));
    } else {
      view.last_call.sequence = 0;
    }
  }
  // After the calls: a member whose call differs because of this rank's refusal has passed it by then.
  look_for_refusals();
}

/// True when the member ended this call, or makes no more calls: no rank waits for it here.
bool FailureMonitor::has_ended(int member, const Request& request) noexcept {
  return board_.has_departed(member) || (request.sequence != 0 && board_.completed_by(member) >= request.sequence);
}

/// Reads /proc, so it looks rarely. False: it has not looked.
bool FailureMonitor::looks_who_lives(const Request& request, std::int64_t now) {
  if (now - alive_checked_ns_ < kAliveEveryNs) return false;
  alive_checked_ns_ = now;
  members_.context().report_strangers();
  for (MemberView& view : watched_) {
    view.has_ended = has_ended(view.member, request);
    view.is_alive = view.has_ended || members_.is_alive(view.member);
    if (view.is_alive) continue;
    view.is_left_out = members_.is_left_out(view.member);
    view.has_ended = has_ended(view.member, request);  // just before it died
  }
  return true;
}

void FailureMonitor::look_who_is_silent(const Request& request) noexcept {
  for (MemberView& view : watched_) {
    view.has_ended = has_ended(view.member, request);
    view.has_come = board_.has_come_to(view.member, request.sequence);
    view.attentive_ns = board_.last_attentive_ns(view.member);
  }
}

std::optional<Finding> FailureMonitor::find_departed(OwnView& own, Request& request) {
  if (request.pair == nullptr && !is_persistent(request.sequence)) {
    if (!own.waits_long()) return {};
    for (MemberView& view : watched_) view.departed_after = board_.departed_after(view.member);
    return find_departed_member(watched_, own);
  }
  look_who_is_awaited(request);
  const int suspect = departed_and_awaited(watched_);
  auto& checks = request.checks;
  if (suspect < 0 || suspect != checks.suspect || request.sequence != checks.sequence) {
    checks = {checks.turn, suspect, request.sequence, own.now_ns};
    return {};
  }
  own.suspected_ns = own.now_ns - checks.since_ns;
  return find_awaited_departed(watched_, own);
}

/// A send or receive awaits its other end. A persistent operation awaits members that have not prepared it; when it has
/// begun, those of its streams.
void FailureMonitor::look_who_is_awaited(const Request& request) noexcept {
  const Channel* const channel = request.pair == nullptr ? &channels_[request.runs_on] : nullptr;
  const bool awaits_rings = channel != nullptr && channel->current == &request && channel->awaits_rings;
  const bool has_begun = channel != nullptr && channel->current == &request && !awaits_rings;
  for (MemberView& view : watched_) {
    view.has_departed = board_.has_departed(view.member);
    if (request.pair != nullptr) {
      view.is_awaited = view.member == request.pair->peer;
    } else if (awaits_rings) {
      view.is_awaited = !plans_.has_told_rings(view.member, *request.call_plan, request.runs_on);
    } else {
      view.is_awaited =
          has_begun && view.has_departed && channel->execution.awaits(members_.at(view.member).context_rank);
    }
  }
}

/// The rank for which an open send or receive waits, as text.
std::string FailureMonitor::waiting_text(const PairCall& call) const {
  if (call.sends) return "waiting for " + members_.text(call.peer) + " to receive it";
  if (call.receive().got_bytes != 0) {
    return "with " + std::to_string(call.receive().got_bytes) + " of " + std::to_string(call.receive().envelope.bytes) +
           " bytes, waiting for " + members_.text(call.receive().envelope.from);
  }
  return call.peer < 0 ? "waiting for any rank to send it" : "waiting for " + members_.text(call.peer) + " to send it";
}

/// "in 'up tree 0', segment 7, waiting for rank 3 on host a".
std::string FailureMonitor::phase_text(const Request& request) const {
  if (request.state == Request::State::queued) return "queued behind another operation";
  if (request.pair != nullptr) return waiting_text(*request.pair);
  for (const auto& channel : channels_) {
    if (channel->current != &request) continue;
    if (channel->awaits_rings) {
      int member = 0;
      while (member < members_.ranks() && plans_.has_told_rings(member, *request.call_plan, request.runs_on)) ++member;
      return member == members_.ranks()
                 ? "before its first message, waiting for its own words to leave"
                 : "before its first message, waiting for " + members_.text(member) + " to tell where its rings are";
    }
    const Stall stall = channel->execution.stall();
    if (stall.label.empty() && stall.peer < 0) return "at its end, waiting for its own messages to leave";
    std::string text = "in '" + std::string(stall.label) + "', segment " + std::to_string(stall.segment);
    const int member = members_.member_of(stall.peer);
    return member < 0 ? text : text + ", waiting for " + members_.text(member);
  }
  return "at its end";
}

Finding FailureMonitor::transport_finding(const Execution& execution, const Request& request) const {
  const Status status = status_of(execution);
  const int member = members_.member_of(execution.failed_peer());
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
  text += text_of(request) + ", noticed by rank " + std::to_string(members_.rank()) + " " + phase_text(request);
  const std::string refusal = is_unreadable(execution) ? kUnreadable : execution.refusal();
  const std::string reason = refusal.empty() ? members_.transport().failure_text() : refusal;
  if (!reason.empty()) text += ": " + reason;
  return {status, member >= 0 ? member : members_.rank(), std::move(text)};
}

void FailureMonitor::claim_transport(const Execution& execution, const Request& request) noexcept {
  try {
    (void)claims(transport_finding(execution, request));
  } catch (const std::exception&) {
    const int member = members_.member_of(execution.failed_peer());
    claim(status_of(execution), member >= 0 ? member : members_.rank(), "the transport failed");
  }
}

void FailureMonitor::abort(const std::string& reason) noexcept {
  // Only the record: this may be any thread, and the caller of an operation finds it in its next check.
  const std::string text = "aborted by rank " + std::to_string(members_.rank()) + (reason.empty() ? "" : ": " + reason);
  claim(Status::aborted, members_.rank(), text);
  // This rank may never be in a call again.
  failures_.push_out();
}

}  // namespace torii
