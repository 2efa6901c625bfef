// SPDX-License-Identifier: Apache-2.0
// The rounds about the team of survivors between nodes, and the engines that they have lost.
#include "api/agreement/network_vote.hpp"

#include <algorithm>

#include "api/agreement/members_view.hpp"
#include "api/agreement/patience.hpp"
#include "runtime/base/log.hpp"

namespace torii {
namespace {

/// How much later a proposal may come by one engine than by another before that engine counts as lost. The
/// messages queued before the proposal have been given up, so it costs little to close a slow engine.
constexpr std::int64_t kProbeNs = 2'000'000'000;

}  // namespace

/// The round in which this rank is.
class NetworkVote::Round final : public MembersView {
 public:
  Round(const Membership& members, const SurvivorMessages& messages) : MembersView(members), messages_(messages) {}
  bool has_come(int member) const override { return messages_.proposal(member) != nullptr; }
  SurvivorProposal proposal(int member) const override { return *messages_.proposal(member); }
  bool may_be_divided() const override { return true; }
  bool may_decide(int member) const { return messages_.counts(member) && has_come(member) && lives(member); }

 private:
  const SurvivorMessages& messages_;
};

NetworkVote::NetworkVote(const Membership& members, ControlWriter& box, AgreementMessages& messages) noexcept
    : members_(members),
      box_(box),
      messages_(messages),
      survivors_(box),
      splits_(members.transport(), messages, members.rank(), members.ranks(), members.timeout_ns()) {}

std::optional<bool> NetworkVote::decide_split(bool agreed) noexcept {
  return splits_.decide(agreed, members_.waiting(), [this](int member) { return members_.lives(member); });
}

bool NetworkVote::pause(Waiting& waiting) const noexcept {
  (void)members_.transport().progress();
  return waiting.pause(stays_idle, nullptr);
}

/// An alarm may have come while nobody made progress here, or be under way.
bool NetworkVote::learns_failure() noexcept {
  Waiting waiting = members_.waiting();
  while (!messages_.is_alarmed()) {
    if (pause(waiting) && waiting.quiet_ns() > pass_on_ns(members_.timeout_ns())) return false;
  }
  return true;
}

/// Leaves the round, and tells all members why.
void NetworkVote::leave(const RoundFailure& failure) noexcept {
  survivors_.leave(failure, failure.member >= 0 ? failure.member : members_.rank());
}

/// Some member has left the round. This one leaves too, for that reason, and waits a moment until all have, so
/// that all throw the reason of the lowest member. False where the others have not waited for this rank.
bool NetworkVote::end_round() {
  survivors_.leave(survivors_.ending()->failure, static_cast<int>(survivors_.ending()->origin));
  Waiting waiting = members_.waiting();
  const auto stays = [this](int member) {
    return survivors_.counts(member) && survivors_.proposal(member) != nullptr && !survivors_.has_left(member) &&
           members_.lives(member);
  };
  int member = 0;
  while (member < members_.ranks() && waiting.quiet_ns() < messages_.grace_ns()) {
    if (stays(member)) {
      (void)pause(waiting);
    } else {
      ++member;
    }
  }
  const RoundFailure failure = survivors_.ending()->failure;
  box_.push_out();
  if (failure.absent.has(members_.rank()) && !survivors_.has_put_made()) return false;
  // One that could not make its object is awaited by all; one that came late may have come in time for others.
  throw RoundError(failure, survivors_.has_put_made() && failure.status == static_cast<int>(Status::timeout));
}

/// Leaves the round where the proposals, or the time, say so.
bool NetworkVote::fails(const Round& view, const MemberSet& come, const Judgement& found, bool is_over) noexcept {
  if (found.verdict == Judgement::Verdict::fails) {
    leave(found.failure);
  } else if (found.verdict == Judgement::Verdict::waits && is_over) {
    leave(judge_late(view, come, found, members_.timeout_ns()));
  } else {
    return false;
  }
  return true;
}

/// False: somebody has left the round.
bool NetworkVote::await_proposals(const Round& view, Waiting& waiting) {
  for (bool looks = false;; looks = pause(waiting)) {
    // First, so that one who leaves because it has decided otherwise ends no round of those that go on.
    if (survivors_.decision(lowest_decider(view, waiting)) != nullptr) return true;
    if (survivors_.ending() != nullptr) return false;
    const MemberSet come = come_to(view);
    int awaited = 0;
    while (awaited < members_.ranks() && (!survivors_.counts(awaited) || come.has(awaited))) ++awaited;
    if (!looks && awaited < members_.ranks()) continue;
    const Judgement found = judge(view, come);
    if (found.verdict == Judgement::Verdict::chooses) {
      survivors_.leave_out(found.without);
      return true;
    }
    if (fails(view, come, found, waiting.is_over())) return false;
    if (found.verdict == Judgement::Verdict::waits && survivors_.is_left_out()) throw_left_out(members_.rank());
  }
}

/// Engines that this member or one that has told so found lost.
std::uint64_t NetworkVote::known_lost_engines() const noexcept {
  std::uint64_t lost = members_.transport().lost_engines();
  for (int member = 0; member < members_.ranks(); ++member) {
    if (survivors_.counts(member)) lost |= survivors_.missed_by(member).value_or(0);
  }
  return lost;
}

/// The engines by which nothing came of some living member's proposal; a set of bits. Nobody waits for what should come
/// by an engine that is known to be lost.
std::uint64_t NetworkVote::find_missed_engines(Waiting& waiting) {
  const std::int64_t offered_ns = waiting.quiet_ns();
  const std::int64_t patience_ns = std::min(kProbeNs, members_.timeout_ns() / 4);
  const auto missed_from = [this](int member) {
    return survivors_.counts(member) ? survivors_.missed_from(member) : 0;
  };
  for (int member = 0; member < members_.ranks(); ++member) {
    while ((missed_from(member) & ~known_lost_engines()) != 0 && waiting.quiet_ns() - offered_ns < patience_ns &&
           survivors_.ending() == nullptr) {
      if (pause(waiting) && !members_.lives(member)) break;
    }
  }
  std::uint64_t missed = known_lost_engines();
  for (int member = 0; member < members_.ranks(); ++member) {
    if (members_.lives(member)) missed |= missed_from(member);
  }
  return missed;
}

/// The highest member whose decision this rank takes over. Two members that do not reach each other may both decide. A
/// member that reaches both waits a moment for the lower one, once the lower one has chosen and told what it missed.
int NetworkVote::lowest_decider(const Round& view, const Waiting& waiting) const noexcept {
  if (waiting.quiet_ns() > pass_on_ns(members_.timeout_ns())) return members_.ranks();
  int lowest = 0;
  while (lowest < members_.ranks() && (!view.may_decide(lowest) || !survivors_.missed_by(lowest))) ++lowest;
  return lowest;
}

/// The lowest living member decides. If it dies meanwhile, the next one decides, or passes on the decision that it
/// knows. False: somebody has left the round.
bool NetworkVote::await_decision(const Round& view, Waiting& waiting) {
  const int ranks = members_.ranks();
  const auto has_told = [&](int member) {
    return !survivors_.counts(member) || !view.has_come(member) || survivors_.missed_by(member) ||
           !members_.lives(member);
  };
  for (bool looks = false;; looks = pause(waiting)) {
    if (survivors_.decision(lowest_decider(view, waiting)) != nullptr) return true;
    if (survivors_.ending() != nullptr) return false;
    int lowest = 0;
    while (!view.may_decide(lowest)) ++lowest;
    int told = 0;
    while (lowest == members_.rank() && told < ranks && has_told(told)) ++told;
    if (told == ranks) {
      const MemberSet come = come_to(view);
      const Judgement found = judge(view, come);
      if (found.verdict == Judgement::Verdict::chooses) survivors_.decide(found.members);
      if (fails(view, come, found, waiting.is_over())) return false;
    } else if (looks && waiting.is_over()) {
      MemberSet absent = {};
      absent.add(lowest == members_.rank() ? told : lowest);
      leave(late_object(view, absent, members_.timeout_ns()));
    }
  }
}

/// Every member waits until each member has published or is dead, and tells by which engines nothing came of the
/// proposals. Then one member decides for all.
bool NetworkVote::is_chosen_in_round(const SurvivorProposal& own, std::vector<Survivor>& chosen) {
  if (survivors_.others_have_team()) throw_left_out(members_.rank());
  if (!survivors_.begin(own.without)) {
    throw Error(Status::no_resource, "the survivors of this team have been asked for " +
                                         std::to_string(ControlBlocks::kRounds) +
                                         " times, the most between nodes; destroy the team");
  }
  survivors_.put_proposal(own);
  Waiting waiting = members_.waiting();
  const Round view(members_, survivors_);
  if (!await_proposals(view, waiting)) return end_round();
  survivors_.put_missed(find_missed_engines(waiting));
  if (!await_decision(view, waiting)) return end_round();
  const ControlBlocks::Decision& decision = survivors_.own_decision();
  if (!decision.members.has(members_.rank())) throw_left_out(members_.rank());
  survivors_.count_only(decision.members);
  if ((decision.engines & ~std::uint64_t{members_.transport().closed_engines()}) != 0) {
    Trouble trouble;
    trouble.keep([&] { close_engines(decision); });
    if (trouble.is_there()) leave(refusal_of(members_.rank(), trouble.status, trouble.text));
    if (!await_closed(view, decision, waiting)) return end_round();
  }
  for (int member = 0; member < members_.ranks(); ++member) {
    if (!decision.members.has(member)) continue;
    const std::int64_t seen_ns = waiting.quiet_ns();
    const std::int64_t most_ns = pass_on_ns(members_.timeout_ns());
    while (!view.has_come(member) && waiting.quiet_ns() - seen_ns < most_ns) (void)pause(waiting);
    // A member of which nothing comes is dead: the new team's first call says so, and nothing is put to it.
    chosen.push_back({member, view.has_come(member) ? view.proposal(member).memory_offset : own.memory_offset});
  }
  return true;
}

void NetworkVote::choose_survivors(const SurvivorProposal& own, std::vector<Survivor>& chosen) {
  while (!is_chosen_in_round(own, chosen)) {
  }
}

/// All members of the new team close the engines of the decision. When all have closed them, nobody takes notice any
/// more of what a call of the old team left in one of these engines. It may still arrive in the memory of the old team.
void NetworkVote::close_engines(const ControlBlocks::Decision& decision) {
  Transport& transport = members_.transport();
  const auto engines = static_cast<std::uint32_t>(decision.engines);
  const int count = transport.capabilities().engines;
  const auto numbers = [&](std::uint32_t set) {
    std::string text;
    for (int engine = 0; engine < count; ++engine) {
      if ((set >> engine & 1) != 0) text += (text.empty() ? "" : ", ") + std::to_string(engine);
    }
    return text;
  };
  const std::uint32_t all = (std::uint32_t{1} << count) - 1;
  if (((engines | transport.closed_engines()) & all) == all) {
    throw Error(Status::transport, "no engine reaches every survivor: nothing came over engines " + numbers(engines));
  }
  log(LogLevel::warn, "closing engine " + numbers(engines & ~transport.closed_engines()) +
                          ", over which some survivors of a team did not hear others");
  transport.close_engines(engines);
  survivors_.put_closed();
}

/// False: somebody has left the round.
bool NetworkVote::await_closed(const Round& view, const ControlBlocks::Decision& decision, Waiting& waiting) {
  for (int member = 0; member < members_.ranks(); ++member) {
    while (survivors_.ending() == nullptr && decision.members.has(member) && !survivors_.has_closed(member)) {
      if (survivors_.decides_otherwise(member)) leave(divided(members_.rank(), member));
      if (!pause(waiting)) continue;
      if (!members_.lives(member)) break;
      if (!waiting.is_over()) continue;
      MemberSet absent = {};
      absent.add(member);
      leave(late_object(view, absent, members_.timeout_ns()));
    }
  }
  return survivors_.ending() == nullptr;
}

/// A dead member may have told others why it leaves, and these pass the reason on. If not, the first call of the new
/// team says that the member is dead. A member that is not reached may have made another team, so a team that is no
/// majority without it waits for the proof of its end. A member that is late for this rank may have come for the
/// others, which then say so before they return.
bool NetworkVote::settle_survivors(const Trouble& trouble, const std::vector<Survivor>& chosen) {
  if (trouble.is_there()) {
    leave(refusal_of(members_.rank(), trouble.status, trouble.text));
  } else {
    survivors_.put_made();
  }
  const Round view(members_, survivors_);
  const std::int64_t most_ns = pass_on_ns(members_.timeout_ns());
  Waiting waiting = members_.waiting();
  std::int64_t death_ns = -1;
  for (bool looks = true; !survivors_.is_complete(); looks = pause(waiting)) {
    if (survivors_.ending() != nullptr) return end_round();
    MemberSet ready = {};
    MemberSet absent = {};
    for (const Survivor& one : chosen) {
      if (survivors_.decides_otherwise(one.member)) {
        leave(divided(members_.rank(), one.member));
        return end_round();
      }
      if (survivors_.has_made(one.member)) {
        ready.add(one.member);
      } else if (!looks || members_.lives(one.member)) {
        absent.add(one.member);
      }
    }
    const bool is_any_dead = looks && ready.count() + absent.count() < static_cast<int>(chosen.size());
    if (is_any_dead && death_ns < 0) death_ns = waiting.quiet_ns();
    if (absent.empty() && !is_any_dead) break;
    if (absent.empty() && waiting.quiet_ns() - death_ns > most_ns) {
      const Judgement found = judge_ready(view, ready);
      if (found.verdict == Judgement::Verdict::chooses) break;
      if (waiting.is_over()) leave(found.failure);
    }
    if (looks && waiting.is_over() && waiting.quiet_ns() > members_.timeout_ns() + most_ns && !absent.empty()) {
      leave(late_object(view, absent, members_.timeout_ns()));
    }
  }
  survivors_.put_complete();
  return true;
}

}  // namespace torii
