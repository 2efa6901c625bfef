// SPDX-License-Identifier: Apache-2.0
// Waits, differences, refusals and majorities of a round about the team of survivors.
#include "api/agreement/survivors_judge.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>

namespace torii {
namespace {

/// A failure with the text that `make` gives.
template <class Make>
RoundFailure make_failure(Status status, int member, const MemberSet& absent, const Make& make) noexcept {
  RoundFailure failure = {static_cast<std::int32_t>(status), member, absent, {}};
  try {
    const std::string text = make();
    std::strncpy(failure.text, text.c_str(), kRoundTextBytes - 1);
  } catch (const std::exception&) {
    std::strncpy(failure.text, "out of memory for the reason", kRoundTextBytes - 1);
  }
  return failure;
}

MemberSet living_members(const RoundView& view) {
  MemberSet members = {};
  for (int member = 0; member < view.ranks(); ++member) {
    if (member == view.rank() || view.lives(member)) members.add(member);
  }
  return members;
}

MemberSet not_proved_dead(const RoundView& view) {
  MemberSet members = {};
  for (int member = 0; member < view.ranks(); ++member) {
    if (member == view.rank() || view.may_live(member)) members.add(member);
  }
  return members;
}

MemberSet difference_of(const MemberSet& members, const MemberSet& without) {
  MemberSet rest = members;
  rest.remove(without);
  return rest;
}

/// More than half of those that may live, or half of them with the lowest: any two such sets share a member.
bool is_majority(const MemberSet& members, const MemberSet& may_live) {
  const int twice = 2 * members.count();
  return twice > may_live.count() || (twice == may_live.count() && members.has(may_live.lowest()));
}

MemberSet common(const MemberSet& a, const MemberSet& b) {
  MemberSet both = a;
  for (std::size_t i = 0; i < std::size(both.words); ++i) both.words[i] &= b.words[i];
  return both;
}

/// The lowest of the living members that leaves `member` out and for which that one has to wait; -1: none.
int yields_to(const RoundView& view, int member, const MemberSet& come, const MemberSet& living) {
  const SurvivorProposal own = view.proposal(member);
  for (int other = 0; other < view.ranks(); ++other) {
    if (other == member || !come.has(other) || !living.has(other) || !view.proposal(other).without.has(member))
      continue;
    const bool goes_on =
        own.without.has(other) &&
        (own.allows_minority != 0 || is_majority(difference_of(living, own.without), not_proved_dead(view)));
    if (!goes_on) return other;
  }
  return -1;
}

/// Those that this member leaves out, or another one whose call is equal.
MemberSet without_of(const RoundView& view, const SurvivorProposal& own, const MemberSet& come,
                     const MemberSet& living) {
  MemberSet without = own.without;
  for (int member = 0; member < view.ranks(); ++member) {
    if (member == view.rank() || !come.has(member) || !living.has(member) || own.without.has(member)) continue;
    const SurvivorProposal theirs = view.proposal(member);
    if (theirs.digest != own.digest) continue;
    without.add(theirs.without);
  }
  return without;
}

/// Whether each of the living members has come and is left out by another one: nobody decides then.
bool all_yield(const RoundView& view, const MemberSet& come, const MemberSet& living) {
  for (int member = 0; member < view.ranks(); ++member) {
    if (living.has(member) && (!come.has(member) || yields_to(view, member, come, living) < 0)) return false;
  }
  return true;
}

/// The lowest of these members that refuses; -1: none.
int find_refusal(const RoundView& view, const MemberSet& members) {
  for (int member = 0; member < view.ranks(); ++member) {
    if (members.has(member) && view.proposal(member).status != 0) return member;
  }
  return -1;
}

RoundFailure refusal(const RoundView& view, int member, const MemberSet& absent) noexcept {
  const SurvivorProposal theirs = view.proposal(member);
  RoundFailure failure = refusal_of(member, static_cast<Status>(theirs.status), theirs.text);
  failure.absent = absent;
  return failure;
}

/// The first two of these members whose options differ; -1: none.
struct Differing {
  int first = -1;
  int second = -1;
};
Differing find_difference(const RoundView& view, const MemberSet& members) {
  Differing pair;
  std::uint64_t digest = 0;
  for (int member = 0; member < view.ranks(); ++member) {
    if (!members.has(member)) continue;
    const std::uint64_t theirs = view.proposal(member).digest;
    if (pair.first < 0) {
      pair.first = member;
      digest = theirs;
    }
    if (theirs == digest) continue;
    pair.second = member;
    return pair;
  }
  return {};
}

RoundFailure difference(const Differing& pair, const MemberSet& absent) noexcept {
  return make_failure(Status::mismatch, pair.second, absent, [&] {
    return "the options of the survivors' team differ between rank " + std::to_string(pair.first) + " and rank " +
           std::to_string(pair.second) + "; they and the ranks to leave out must be equal on all survivors";
  });
}

RoundFailure late(const RoundView& view, const MemberSet& absent, std::int64_t timeout_ns, const char* what) noexcept {
  return make_failure(Status::timeout, absent.lowest(), absent, [&] {
    return "no team of the survivors for " + std::to_string(timeout_ns / 1'000'000) + " ms" + what +
           view.text(absent.list());
  });
}

RoundFailure too_few(const MemberSet& members, const MemberSet& may_live) noexcept {
  return make_failure(Status::invalid_argument, -1, {}, [&] {
    return "the survivors would be " + std::to_string(members.count()) + " of " + std::to_string(may_live.count()) +
           " ranks that may live, so the others could make a team too; leave out fewer ranks, or set allow_minority";
  });
}

Judgement failing(const RoundFailure& failure) { return {Judgement::Verdict::fails, {}, failure}; }

}  // namespace

MemberSet come_to(const RoundView& view) noexcept {
  MemberSet come = {};
  for (int member = 0; member < view.ranks(); ++member) {
    if (member == view.rank() || view.has_come(member)) come.add(member);
  }
  return come;
}

Judgement judge(const RoundView& view, const MemberSet& come) noexcept {
  const MemberSet living = living_members(view);
  const SurvivorProposal own = view.proposal(view.rank());
  const int other = yields_to(view, view.rank(), come, living);
  const MemberSet without = other < 0 ? without_of(view, own, come, living) : view.proposal(other).without;
  MemberSet absent = difference_of(difference_of(living, without), come);
  if (other >= 0 && absent.empty()) {
    if (all_yield(view, come, living)) return failing(difference(find_difference(view, common(come, living)), {}));
    absent.add(other);
  }
  if (!absent.empty()) return {Judgement::Verdict::waits, absent, {}, other};
  const MemberSet members = difference_of(living, without);
  if (const int member = find_refusal(view, members); member >= 0) return failing(refusal(view, member, {}));
  if (const Differing pair = find_difference(view, members); pair.second >= 0) return failing(difference(pair, {}));
  if (view.may_be_divided() && own.allows_minority == 0) {
    const MemberSet may_live = not_proved_dead(view);
    const MemberSet unheard = difference_of(difference_of(may_live, living), own.without);
    if (!is_majority(members, difference_of(may_live, unheard))) return failing(too_few(members, may_live));
    if (!is_majority(members, may_live)) {
      return {Judgement::Verdict::waits, unheard, too_few(members, may_live)};
    }
  }
  return {.verdict = Judgement::Verdict::chooses, .members = members, .without = without};
}

RoundFailure judge_late(const RoundView& view, const MemberSet& come, const Judgement& waits,
                        std::int64_t timeout_ns) noexcept {
  if (waits.failure.status != 0) return waits.failure;
  const MemberSet& absent = waits.members;
  const MemberSet here = common(come, living_members(view));
  if (const int member = find_refusal(view, here); member >= 0) return refusal(view, member, absent);
  if (const Differing pair = find_difference(view, here); pair.second >= 0) return difference(pair, absent);
  if (come.has(absent.lowest())) return late_object(view, absent, timeout_ns);
  return late(view, absent, timeout_ns, "; not come to the call: ");
}

RoundFailure late_object(const RoundView& view, const MemberSet& absent, std::int64_t timeout_ns) noexcept {
  return late(view, absent, timeout_ns, "; in the call but not moving it: ");
}

Judgement judge_ready(const RoundView& view, const MemberSet& ready) noexcept {
  const MemberSet may_live = not_proved_dead(view);
  const bool goes_on = view.proposal(view.rank()).allows_minority != 0 || is_majority(ready, may_live);
  if (!goes_on) return failing(too_few(ready, may_live));
  return {.verdict = Judgement::Verdict::chooses, .members = ready};
}

RoundFailure divided(int rank, int other) noexcept {
  const int first = std::min(rank, other);
  const int second = std::max(rank, other);
  return make_failure(Status::timeout, first, {}, [&] {
    return "no team of the survivors: rank " + std::to_string(first) + " and rank " + std::to_string(second) +
           " went with different members; ask again";
  });
}

RoundFailure refusal_of(int member, Status status, const char* text) noexcept {
  return make_failure(status, member, {}, [&] { return "rank " + std::to_string(member) + ": " + text; });
}

}  // namespace torii
