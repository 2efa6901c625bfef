// SPDX-License-Identifier: Apache-2.0
// The rules by which a rank takes a member for dead, gone, silent or in another call, and the texts about it.
#include "api/running/findings.hpp"

#include <algorithm>

#include "api/agreement/member_names.hpp"
#include "api/calls/call_spec.hpp"

namespace torii {
namespace {

/// How long a rank has waited for something before it takes a dead member of another node for the reason.
constexpr std::int64_t kDoubtNs = 20'000'000;
/// The members tell of their calls within this time.
constexpr std::int64_t kCallsAreToldNs = 500'000'000;

std::string text_of(const MemberView& view) { return member_text(view.member, view.host); }
std::string text_of(const OwnView& own) { return member_text(own.member, own.host); }

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

std::string verb_of(const CallSnapshot& snapshot) {
  return (snapshot.kind & kPreparesInRecord & 0xffffffff) != 0 ? " prepares " : " calls ";
}

Finding refused_by(int member, const std::string& text, const RefusedCall& refused) {
  return {Status::mismatch, member,
          "calls differ: " + text + " refused its call " + std::to_string(refused.sequence) +
              " on this team, which other ranks made: " + refused.notice.text.data()};
}

Finding departed(const MemberView& view, const OwnView& own) {
  return {Status::mismatch, view.member, text_of(view) + " destroyed the team before it came to " + own.call()};
}

/// The last refused calls of this rank and of that member: a cause of differences that no call shows.
std::string refusals_text(const MemberView& view, const OwnView& own) {
  std::string text;
  const auto add = [&](const std::string& rank, const std::optional<RefusalNotice>& notice) {
    if (notice) text += "; " + rank + " has refused a call: " + notice->text.data();
  };
  const auto ours = own.refused->last();
  const auto theirs = last_notice(view.refusals);
  if (own.member < view.member) add(text_of(own), ours);
  add(text_of(view), theirs);
  if (own.member > view.member) add(text_of(own), ours);
  return text;
}

/// The difference between two calls whose texts are equal.
std::string hidden_difference(const CallSnapshot& call, const std::string& refusals) {
  if (call.count == kUnequalInRecord || (call.kind & kPacksInRecord) != 0) return ", with other counts";
  if (!refusals.empty()) return ", after calls that differ" + refusals;
  if ((call.kind & kLeavesInRecord) != 0) return ", over other leaves or after calls that differ";
  if (combines_by_user(spec_of(call))) return ", with other user_bytes or after calls that differ";
  return ", after calls that differ";
}

std::optional<Finding> compare(const MemberView& view, const CallSnapshot& theirs, const OwnView& own) {
  if (!is_other_call(theirs, own.calls)) return {};
  const CallSnapshot& ours = own.calls[record_index(theirs.sequence)];
  const std::string own_call = verb_of(ours) + (ours.sequence == own.sequence ? own.call() : call_text(spec_of(ours)));
  const std::string their_call = verb_of(theirs) + call_text(spec_of(theirs));
  const std::string own_text = std::to_string(own.member) + own_call;
  const std::string their_text = std::to_string(view.member) + their_call;
  const std::string difference =
      own_call == their_call ? hidden_difference(ours, refusals_text(view, own)) : std::string();
  // Named from the lower rank's side, so that the text does not depend on which rank noticed first.
  const bool mine_first = own.member < view.member;
  return Finding{Status::mismatch, std::max(own.member, view.member),
                 "calls differ: rank " + (mine_first ? own_text : their_text) + ", rank " +
                     (mine_first ? their_text : own_text) + difference};
}

Finding no_progress(int member, std::int64_t timeout_ns, const OwnView& own, const MemberSet& absent) {
  return {Status::timeout, member,
          "no progress for " + std::to_string(timeout_ns / 1'000'000) + " ms in " + own.call() + " on " + text_of(own) +
              " " + own.phase(),
          absent};
}

}  // namespace

bool is_other_call(const CallSnapshot& theirs, std::span<const CallSnapshot> own_calls) noexcept {
  if (theirs.sequence == 0) return false;
  const CallSnapshot& ours = own_calls[record_index(theirs.sequence)];
  return ours.sequence == theirs.sequence && ours.kind >> 32 != theirs.kind >> 32;
}

std::int64_t OwnView::calls_are_told_ns() const noexcept { return std::min(kCallsAreToldNs, timeout_ns / 2); }

std::optional<Finding> find_refused_call(std::span<const MemberView> watched, const OwnView& own) {
  for (const MemberView& view : watched) {
    if (const auto ours = own.refused->refused_here_alone(view.refusals, view.last_settled)) {
      return refused_by(own.member, text_of(own), *ours);
    }
    if (const auto theirs = own.refused->refused_by_peer_alone(view.refusals, own.last_settled)) {
      return refused_by(view.member, text_of(view), *theirs);
    }
  }
  return {};
}

std::optional<Finding> find_dead_member(std::span<const MemberView> watched, const OwnView& own) {
  for (const MemberView& view : watched) {
    if (view.is_alive || view.has_ended || (view.is_distant && own.attentive_ns < kDoubtNs)) continue;
    return Finding{Status::peer_lost, view.member,
                   text_of(view) + (view.is_left_out ? " was left out before " : " died during ") + own.call() +
                       ", noticed by rank " + std::to_string(own.member) + " " + own.phase()};
  }
  return {};
}

std::optional<Finding> find_other_call(std::span<const MemberView> watched, const OwnView& own) {
  for (const MemberView& view : watched) {
    if (auto found = compare(view, view.call, own)) return found;
    if (auto found = compare(view, view.last_call, own)) return found;
  }
  return {};
}

std::optional<Finding> find_departed_member(std::span<const MemberView> watched, const OwnView& own) {
  for (const MemberView& view : watched) {
    if (view.departed_after && *view.departed_after < own.sequence) return departed(view, own);
  }
  return {};
}

int departed_and_awaited(std::span<const MemberView> watched) noexcept {
  const auto found =
      std::ranges::find_if(watched, [](const MemberView& view) { return view.has_departed && view.is_awaited; });
  return found == watched.end() ? -1 : found->member;
}

std::optional<Finding> find_awaited_departed(std::span<const MemberView> watched, const OwnView& own) {
  const int member = departed_and_awaited(watched);
  if (member < 0 || !own.waits_long()) return {};
  const MemberView& view = *std::ranges::find(watched, member, &MemberView::member);
  // Between nodes its last messages may come a little after its last word.
  if (view.is_distant && own.suspected_ns < own.calls_are_told_ns()) return {};
  return departed(view, own);
}

Finding find_silent_members(std::span<const MemberView> watched, const OwnView& own) {
  MemberNames not_come;
  MemberNames stuck;
  MemberSet absent = {};
  for (const MemberView& view : watched) {
    if (view.has_ended) continue;
    // While this process did not run, the members perhaps did not either.
    const std::int64_t quiet_ns = own.now_ns - std::max(view.attentive_ns, own.resumed_ns);
    const bool is_stuck = quiet_ns > (view.is_distant ? own.team_timeout_ns : own.timeout_ns) / 2;
    if (view.has_come && !is_stuck) continue;
    (view.has_come ? stuck : not_come).add(view.member, view.host);
    absent.add(view.member);
  }
  const int named = not_come.count() != 0 ? not_come.lowest() : stuck.count() != 0 ? stuck.lowest() : own.member;
  Finding found = no_progress(named, own.timeout_ns, own, absent);
  if (not_come.count() != 0) found.text += "; not come to the call: " + not_come.text();
  if (stuck.count() != 0) found.text += "; in the call but not moving it: " + stuck.text();
  return found;
}

Finding find_silent_peer(const OwnView& own) {
  MemberSet absent = {};
  if (own.peer >= 0 && own.peer != own.member) absent.add(own.peer);
  return no_progress(own.peer >= 0 ? own.peer : own.member, own.team_timeout_ns, own, absent);
}

}  // namespace torii
