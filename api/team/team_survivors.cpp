// SPDX-License-Identifier: Apache-2.0
// The team of those who live: everybody publishes its new memory, one decides for all.
#include <algorithm>
#include <cstring>
#include <new>

#include "api/team/staging.hpp"
#include "api/team/team.hpp"
#include "runtime/base/log.hpp"

namespace torii {
namespace {

/// How long the offer of a member that was chosen may be under way; it is dead when it takes longer.
constexpr std::int64_t kOfferNs = 1'000'000'000;
/// How much later an offer may come by one engine than by another before that engine counts as lost. What stands before
/// it in a queue has been given up, so a slow one that is closed for this is no great loss.
constexpr std::int64_t kHailNs = 2'000'000'000;

bool stays_idle(void*) { return true; }

[[noreturn]] void throw_missing(int member) {
  throw Error(Status::timeout, "rank " + std::to_string(member) + " lives but does not make the survivors' team",
              member);
}

[[noreturn]] void throw_undecided() { throw Error(Status::timeout, "a rank died while it chose the survivors"); }

[[noreturn]] void throw_refusal(int member, std::int32_t status, const char* text) {
  throw Error(static_cast<Status>(status), "rank " + std::to_string(member) + ": " + text, member);
}

/// Calls `step`; what it throws is no reason to leave before the others have been told.
template <class Step>
void keep_trouble(Status& status, std::string& text, const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    status = error.status();
    text = error.what();
  } catch (const std::bad_alloc&) {
    status = Status::no_resource;
    text = "out of memory";
  }
}

}  // namespace

std::unique_ptr<Team> Team::survivors(const TeamOptions& given) {
  if (!has_failed()) throw Error(Status::invalid_argument, "the team is not poisoned: split it instead");
  if (survivors_made_) throw Error(Status::invalid_argument, "a team of the survivors has been asked for already");
  survivors_made_ = true;
  if (!poisoned_) (void)adopt_failure();
  Staging staging(context_);
  TeamOptions options;
  SurvivorsOffer own;
  std::vector<Survivor> chosen;
  keep_trouble(own.status, own.text, [&] {
    chosen.reserve(members_.size());  // nothing may fail on one rank alone once it has made its offer
    options = with_own_tree(given);
    own.digest = options_digest(context_, options);
    staging.take(ranks());
    own.staging = staging.offset();
  });
  if (lines_ == nullptr) {
    agree_on_survivors(own, chosen);
  } else {
    agree_between_nodes(own, chosen);
  }
  const std::size_t bytes = team_control_bytes(ranks(), context_) + team_staging_bytes(ranks(), context_);
  for (const Survivor& one : chosen) {
    check_offer(one.member, one.staging, bytes, context_.transport().arena_bytes());
    if (one.digest == chosen.front().digest) continue;
    // Everybody compares the same words, so everybody ends here and nobody puts into the memory.
    throw Error(Status::mismatch,
                "the options of the survivors' team differ between rank " + std::to_string(chosen.front().member) +
                    " and rank " + std::to_string(one.member) + "; they must be equal on all survivors",
                one.member);
  }
  std::unique_ptr<Team> team;
  Status status = Status::ok;
  std::string text;
  keep_trouble(status, text, [&] {
    std::vector<Member> members;
    for (const Survivor& one : chosen) {
      members.push_back({members_[static_cast<std::size_t>(one.member)].context_rank, one.staging});
    }
    const TeamOptions part = part_options(options, members);
    team.reset(new Team(context_, part, std::move(members), ranks()));
  });
  tell_made(status, text);
  try {
    wait_until_made(chosen);
  } catch (const Error& error) {
    if (error.status() == Status::timeout) staging.release();  // the others may have the team, and write there
    throw;
  }
  staging.release();
  team->owns_memory_ = true;
  return team;
}

/// On one node: the first to find that everybody has published or is dead decides.
void Team::agree_on_survivors(const SurvivorsOffer& own, std::vector<Survivor>& chosen) {
  SurvivorsRecord& mine = control().survivors;
  mine.digest.store(own.digest, std::memory_order_relaxed);
  if (own.status != Status::ok) std::strncpy(mine.text, own.text.c_str(), kFailureTextBytes - 1);
  mine.status.store(static_cast<std::int32_t>(own.status), std::memory_order_relaxed);
  mine.staging.store(own.staging + 1, std::memory_order_release);
  Waiting waiting(context_.transport(), wait_mode_, timeout_ns_);
  for (int member = 0; member < ranks(); ++member) {
    while (control(member).survivors.staging.load(std::memory_order_acquire) == 0) {
      if (!waiting.pause(stays_idle, nullptr)) continue;
      if (!context_.transport().alive(members_[static_cast<std::size_t>(member)].context_rank)) break;
      if (waiting.is_over()) throw_missing(member);
    }
  }
  // Views may differ by a rank that died after it published; the first decision holds for all.
  SurvivorsRecord& record = first_control_->survivors;
  std::uint32_t none = FailureRecord::kNone;
  if (record.state.compare_exchange_strong(none, FailureRecord::kClaimed, std::memory_order_acq_rel)) {
    for (int member = 0; member < ranks(); ++member) {
      if (control(member).survivors.staging.load(std::memory_order_acquire) == 0) continue;
      record.members[member / 64] |= std::uint64_t{1} << (member % 64);
    }
    record.state.store(FailureRecord::kPublished, std::memory_order_release);
  }
  while (record.state.load(std::memory_order_acquire) != FailureRecord::kPublished) {
    if (waiting.is_over()) throw_undecided();
    waiting.pause(stays_idle, nullptr);
  }
  const auto is_chosen = [&](int member) { return (record.members[member / 64] >> (member % 64) & 1) != 0; };
  for (int member = 0; member < ranks(); ++member) {
    const SurvivorsRecord& theirs = control(member).survivors;
    const std::int32_t refusal = theirs.status.load(std::memory_order_relaxed);
    if (is_chosen(member) && refusal != 0) throw_refusal(member, refusal, theirs.text);
  }
  for (int member = 0; member < ranks(); ++member) {
    if (!is_chosen(member)) continue;
    const SurvivorsRecord& theirs = control(member).survivors;
    chosen.push_back(
        {member, theirs.staging.load(std::memory_order_acquire) - 1, theirs.digest.load(std::memory_order_relaxed)});
  }
}

/// Between nodes: everybody waits until everybody has published or is dead, and tells by which engines nothing came of
/// it; then the lowest of the living decides. Should it die over that, the next one does, with the decision that it has
/// learnt of, if any.
void Team::agree_between_nodes(const SurvivorsOffer& own, std::vector<Survivor>& chosen) {
  lines_->put_offer(own.digest, own.staging, own.status, own.text);
  Transport& transport = context_.transport();
  Waiting waiting(transport, wait_mode_, timeout_ns_);
  const auto pause = [&] {
    (void)transport.progress();
    return waiting.pause(stays_idle, nullptr);
  };
  const auto lives = [&](int member) {
    return member == rank_ || transport.alive(members_[static_cast<std::size_t>(member)].context_rank);
  };
  for (int member = 0; member < ranks(); ++member) {
    while (!lines_->offer(member)) {
      if (!pause()) continue;
      if (!lives(member) || lines_->decision() != nullptr) break;
      if (waiting.is_over()) throw_missing(member);
    }
  }
  const std::int64_t offered_ns = waiting.quiet_ns();
  const std::int64_t patience_ns = std::min(kHailNs, timeout_ns_ / 4);
  std::uint64_t missed = transport.lost_engines();
  for (int member = 0; member < ranks(); ++member) {
    while (lines_->missed_from(member) != 0 && waiting.quiet_ns() - offered_ns < patience_ns) {
      if (pause() && !lives(member)) break;
    }
    if (lives(member)) missed |= lines_->missed_from(member);
  }
  lines_->put_missed(missed);
  const auto has_told = [&](int member) {
    return !lines_->offer(member) || lines_->missed_by(member) || !lives(member);
  };
  const Letters::Decision* decision = nullptr;
  while ((decision = lines_->decision()) == nullptr) {
    int lowest = 0;
    while (!lines_->offer(lowest) || !lives(lowest)) ++lowest;
    int told = 0;
    while (lowest == rank_ && told < ranks() && has_told(told)) ++told;
    if (told == ranks()) lines_->decide();
    if (pause() && waiting.is_over()) throw_undecided();
  }
  if (decision->refusing != 0) {
    const int refusing = static_cast<int>(decision->refusing) - 1;
    lines_->push_out();
    const Letters::Offer* const offer = lines_->offer(refusing);
    if (offer != nullptr) throw_refusal(refusing, offer->status, offer->text);
    throw_refusal(refusing, static_cast<std::int32_t>(Status::no_resource), "it can make no team");
  }
  if ((decision->engines & ~std::uint64_t{transport.closed_engines()}) != 0) close_engines(*decision);
  for (int member = 0; member < ranks(); ++member) {
    if ((decision->members[member / 64] >> (member % 64) & 1) == 0) continue;
    const std::int64_t seen_ns = waiting.quiet_ns();
    while (!lines_->offer(member) && waiting.quiet_ns() - seen_ns < kOfferNs) (void)pause();
    // A member of which nothing comes is dead: the new team's first call says so, and nothing is put to it.
    const Letters::Offer* const offer = lines_->offer(member);
    const bool is_here = offer != nullptr;
    chosen.push_back({member, is_here ? offer->staging : own.staging, is_here ? offer->digest : own.digest});
  }
}

/// This rank has made its object of the new team, or says why it could not.
void Team::tell_made(Status status, const std::string& text) noexcept {
  if (lines_ != nullptr) {
    lines_->put_made(status, text);
    return;
  }
  SurvivorsRecord& mine = control().survivors;
  if (status != Status::ok) std::strncpy(mine.text, text.c_str(), kFailureTextBytes - 1);
  // Release: who reads the status reads the text.
  mine.made.store(static_cast<std::uint32_t>(status) + 1, std::memory_order_release);
}

/// Waits until every member of the new team has said that it has made its object, or has died, which the first call
/// says. Throws where one could not: on all, since nobody has yet put into the others' memory.
void Team::wait_until_made(const std::vector<Survivor>& chosen) {
  Transport& transport = context_.transport();
  Waiting waiting(transport, wait_mode_, timeout_ns_);
  const auto has_told = [&](int member) {
    if (lines_ != nullptr) return lines_->made(member) != nullptr;
    return control(member).survivors.made.load(std::memory_order_acquire) != 0;
  };
  for (const Survivor& one : chosen) {
    while (!has_told(one.member)) {
      (void)transport.progress();
      if (!waiting.pause(stays_idle, nullptr)) continue;
      if (!transport.alive(members_[static_cast<std::size_t>(one.member)].context_rank)) break;
      if (waiting.is_over()) throw_missing(one.member);
    }
  }
  if (lines_ != nullptr) lines_->push_out();
  for (const Survivor& one : chosen) {
    if (!has_told(one.member)) continue;
    if (lines_ != nullptr) {
      const Letters::Offer& made = *lines_->made(one.member);
      if (made.status != 0) throw_refusal(one.member, made.status, made.text);
      continue;
    }
    const SurvivorsRecord& theirs = control(one.member).survivors;
    const std::uint32_t made = theirs.made.load(std::memory_order_acquire);
    if (made != 1) throw_refusal(one.member, static_cast<std::int32_t>(made) - 1, theirs.text);
  }
}

/// The engines of the decision, by all members of the new team: when this returns, nothing that a call of the old team
/// has left in one of them can come any more.
void Team::close_engines(const Letters::Decision& decision) {
  Transport& transport = context_.transport();
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
  lines_->put_closed();
  Waiting waiting(transport, wait_mode_, timeout_ns_);
  for (int member = 0; member < ranks(); ++member) {
    if ((decision.members[member / 64] >> (member % 64) & 1) == 0) continue;
    while (!lines_->has_closed(member)) {
      (void)transport.progress();
      if (!waiting.pause(stays_idle, nullptr)) continue;
      if (!transport.alive(members_[static_cast<std::size_t>(member)].context_rank)) break;
      if (waiting.is_over()) throw_missing(member);
    }
  }
}

}  // namespace torii
