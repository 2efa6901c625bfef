// SPDX-License-Identifier: Apache-2.0
// TeamAgreement by AgreementMessages, and the decision about survivors and lost engines between nodes.
#include "api/team/network_agreement.hpp"

#include <algorithm>

#include "api/team/call_records.hpp"
#include "runtime/base/log.hpp"

namespace torii {
namespace {

/// How much later an offer may come by one engine than by another before that engine counts as lost. The
/// messages queued before the offer have been given up, so it costs little to close a slow engine.
constexpr std::int64_t kProbeNs = 2'000'000'000;

std::vector<Letterbox::Member> places_of(const Membership& members) {
  std::vector<Letterbox::Member> places;
  for (const Member& member : members.all()) {
    places.push_back({member.context_rank, member.memory_offset + agreement_messages_offset()});
  }
  return places;
}

bool contains(const Letters::Decision& decision, int member) noexcept {
  return (decision.members[member / 64] >> (member % 64) & 1) != 0;
}

}  // namespace

NetworkAgreement::NetworkAgreement(const Membership& members)
    : members_(members),
      box_(members.transport(), places_of(members), members.rank()),
      messages_(box_, members.timeout_ns()),
      survivors_(box_),
      splits_(members.transport(), messages_, members.rank(), members.ranks(), members.timeout_ns()) {}

void NetworkAgreement::progress() noexcept { (void)members_.transport().progress(); }

void NetworkAgreement::push_out() noexcept { box_.push_out(); }

FailureSign NetworkAgreement::failure_sign() const noexcept { return FailureSign(messages_.alarm()); }

void NetworkAgreement::claim(Status status, int member, const std::string& text) noexcept {
  messages_.propose(status, member, text);
}

Cause NetworkAgreement::read_cause() noexcept {
  const Letters::Proposal* const proposal = messages_.settle();
  if (proposal == nullptr) return {Status::internal, kNoCause};
  return {static_cast<Status>(proposal->status), proposal->text, proposal->rank};
}

/// A member of another node has told of one call only, which may not be the one that this rank asks for.
std::optional<Standing> NetworkAgreement::told_by(int member, std::uint64_t sequence) noexcept {
  if (!members_.is_distant(member)) return read_record(members_.control(member), sequence);
  return messages_.view(member, is_persistent(sequence)).standing;
}

bool NetworkAgreement::has_come_to(int member, std::uint64_t sequence) noexcept {
  if (!members_.is_distant(member)) return has_recorded(members_.control(member), sequence);
  return is_at_or_after(messages_.view(member, is_persistent(sequence)).standing.sequence, sequence);
}

std::uint64_t NetworkAgreement::completed_by(int member) noexcept {
  if (!members_.is_distant(member)) return members_.control(member).completed.load(std::memory_order_acquire);
  return std::max(messages_.view(member).standing.completed, messages_.view(member, true).standing.completed);
}

std::int64_t NetworkAgreement::looked_ns(int member) noexcept {
  if (!members_.is_distant(member)) return members_.control(member).looked_ns.load(std::memory_order_relaxed);
  return std::max(messages_.view(member).changed_ns, messages_.view(member, true).changed_ns);
}

void NetworkAgreement::publish(const Standing& own, std::int64_t now_ns, std::int64_t quiet_since_ns) noexcept {
  messages_.publish(own, now_ns, quiet_since_ns);
  set_owes_end(messages_.owes_end());
}

void NetworkAgreement::tell_end(const Standing& own) noexcept {
  messages_.tell(own);
  set_owes_end(false);
}

void NetworkAgreement::put_refusal(const RefusalNotice& notice) noexcept { messages_.put_refusal(notice); }

std::span<const RefusalNotice> NetworkAgreement::refusals_of(int member) noexcept { return messages_.refusals(member); }

void NetworkAgreement::put_install(std::uint64_t number, std::uint64_t word) noexcept {
  messages_.put_install(number, word);
}

std::uint64_t NetworkAgreement::install_word(int member, std::uint64_t number) noexcept {
  return messages_.install_word(member, number);
}

bool NetworkAgreement::words_have_left() const noexcept { return box_.awaited_have_left(); }

void NetworkAgreement::put_epoch(std::uint64_t epoch) noexcept { messages_.put_epoch(epoch); }

bool NetworkAgreement::has_reached(int member, std::uint64_t epoch) noexcept {
  return messages_.has_reached(member, epoch);
}

void NetworkAgreement::leave() noexcept {
  // Relaxed: this rank itself has stored it.
  messages_.leave(members_.control(members_.rank()).completed.load(std::memory_order_relaxed), Letterbox::kLeft);
}

bool NetworkAgreement::has_departed(int member) noexcept { return messages_.has_departed(member); }

std::optional<std::uint64_t> NetworkAgreement::departed_after(int member) noexcept {
  if (!has_departed(member) || (members_.is_distant(member) && !messages_.has_told_last_call(member))) {
    return std::nullopt;
  }
  return completed_by(member);
}

void NetworkAgreement::depart(std::uint64_t) noexcept {
  messages_.leave(members_.control(members_.rank()).completed.load(std::memory_order_relaxed), Letterbox::kDeparted);
}

std::vector<PutOwner> NetworkAgreement::take_puts() { return box_.take_puts(); }

std::optional<bool> NetworkAgreement::decide_split(bool agreed) noexcept {
  return splits_.decide(agreed, members_.waiting(), [this](int member) { return members_.lives(member); });
}

bool NetworkAgreement::pause(Waiting& waiting) const noexcept {
  (void)members_.transport().progress();
  return waiting.pause(stays_idle, nullptr);
}

void NetworkAgreement::await_offers(Waiting& waiting) {
  for (int member = 0; member < members_.ranks(); ++member) {
    while (!survivors_.offer(member)) {
      if (!pause(waiting)) continue;
      if (!members_.lives(member) || survivors_.decision() != nullptr) break;
      if (waiting.is_over()) throw_missing(member);
    }
  }
}

/// Engines that this member or one that has told so found lost.
std::uint64_t NetworkAgreement::known_lost_engines() const noexcept {
  std::uint64_t lost = members_.transport().lost_engines();
  for (int member = 0; member < members_.ranks(); ++member) lost |= survivors_.missed_by(member).value_or(0);
  return lost;
}

/// The engines by which nothing came of some living member's offer; a set of bits. Nobody waits for what should come by
/// an engine that is known to be lost.
std::uint64_t NetworkAgreement::find_missed_engines(Waiting& waiting) {
  const std::int64_t offered_ns = waiting.quiet_ns();
  const std::int64_t patience_ns = std::min(kProbeNs, members_.timeout_ns() / 4);
  for (int member = 0; member < members_.ranks(); ++member) {
    while ((survivors_.missed_from(member) & ~known_lost_engines()) != 0 &&
           waiting.quiet_ns() - offered_ns < patience_ns) {
      if (pause(waiting) && !members_.lives(member)) break;
    }
  }
  std::uint64_t missed = known_lost_engines();
  for (int member = 0; member < members_.ranks(); ++member) {
    if (members_.lives(member)) missed |= survivors_.missed_from(member);
  }
  return missed;
}

/// The lowest living member decides. If it dies meanwhile, the next one decides, or passes on the decision that it
/// knows.
const Letters::Decision& NetworkAgreement::await_decision(Waiting& waiting) {
  const int ranks = members_.ranks();
  const auto has_told = [&](int member) {
    return !survivors_.offer(member) || survivors_.missed_by(member) || !members_.lives(member);
  };
  const Letters::Decision* decision = nullptr;
  while ((decision = survivors_.decision()) == nullptr) {
    int lowest = 0;
    while (!survivors_.offer(lowest) || !members_.lives(lowest)) ++lowest;
    int told = 0;
    while (lowest == members_.rank() && told < ranks && has_told(told)) ++told;
    if (told == ranks) survivors_.decide();
    if (pause(waiting) && waiting.is_over()) throw_undecided();
  }
  return *decision;
}

/// Every member waits until each member has published or is dead, and tells by which engines nothing came of the
/// offers. Then one member decides for all.
void NetworkAgreement::choose_survivors(const SurvivorsOffer& own, std::vector<Survivor>& chosen) {
  survivors_.put_offer(own.digest, own.staging, own.status, own.text);
  Waiting waiting = members_.waiting();
  await_offers(waiting);
  survivors_.put_missed(find_missed_engines(waiting));
  const Letters::Decision& decision = await_decision(waiting);
  if (decision.refusing != 0) {
    box_.push_out();
    throw_refusal(static_cast<int>(decision.refusing) - 1, decision.status, decision.text);
  }
  if ((decision.engines & ~std::uint64_t{members_.transport().closed_engines()}) != 0) close_engines(decision);
  for (int member = 0; member < members_.ranks(); ++member) {
    if (!contains(decision, member)) continue;
    const std::int64_t seen_ns = waiting.quiet_ns();
    while (!survivors_.offer(member) && waiting.quiet_ns() - seen_ns < pass_on_ns()) (void)pause(waiting);
    // A member of which nothing comes is dead: the new team's first call says so, and nothing is put to it.
    const Letters::Offer* const offer = survivors_.offer(member);
    const bool is_here = offer != nullptr;
    chosen.push_back({member, is_here ? offer->staging : own.staging, is_here ? offer->digest : own.digest});
  }
}

/// The engines of the decision, by all members of the new team: when this returns, nothing that a call of the old team
/// has left in one of them can come any more.
void NetworkAgreement::close_engines(const Letters::Decision& decision) {
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
  Waiting waiting = members_.waiting();
  for (int member = 0; member < members_.ranks(); ++member) {
    if (!contains(decision, member)) continue;
    while (!survivors_.has_closed(member)) {
      if (!pause(waiting)) continue;
      if (!members_.is_alive(member)) break;
      if (waiting.is_over()) throw_missing(member);
    }
  }
}

void NetworkAgreement::tell_made(Status status, const std::string& text) noexcept { survivors_.put_made(status, text); }

std::optional<MadeReport> NetworkAgreement::made_by(int member) noexcept {
  const Letters::Offer* const made = survivors_.made(member);
  if (made == nullptr) return {};
  return MadeReport{made->status, made->text};
}

}  // namespace torii
