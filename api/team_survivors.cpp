// SPDX-License-Identifier: Apache-2.0
// The team of those who live: everybody publishes its new memory, one decides for all.
#include <algorithm>

#include "api/team.hpp"
#include "runtime/log.hpp"

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

}  // namespace

std::unique_ptr<Team> Team::survivors(const TeamOptions& given) {
  if (!has_failed()) throw Error(Status::invalid_argument, "the team is not poisoned: split it instead");
  if (survivors_made_) throw Error(Status::invalid_argument, "a team of the survivors has been made already");
  survivors_made_ = true;
  const TeamOptions options = with_own_tree(given);
  if (!poisoned_) (void)adopt_failure();
  const std::size_t bytes = team_control_bytes(ranks(), context_) + team_staging_bytes(ranks(), context_);
  const std::uint64_t mine = context_.allocate_staging(bytes);
  const std::uint64_t digest = options_digest(context_, options);
  const std::vector<Survivor> chosen =
      lines_ == nullptr ? agree_on_survivors(digest, mine) : agree_between_nodes(digest, mine);
  std::vector<Member> members;
  for (const Survivor& one : chosen) {
    members.push_back({members_[static_cast<std::size_t>(one.member)].context_rank, one.staging});
    try {
      check_offer(one.member, one.staging, bytes, context_.transport().arena_bytes());
    } catch (const Error&) {
      context_.free_staging(mine);
      throw;
    }
    if (one.digest == chosen.front().digest) continue;
    // Everybody compares the same words, so everybody ends here and nobody puts into the memory.
    context_.free_staging(mine);
    throw Error(Status::mismatch,
                "the options of the survivors' team differ between rank " + std::to_string(chosen.front().member) +
                    " and rank " + std::to_string(one.member) + "; they must be equal on all survivors",
                one.member);
  }
  const TeamOptions part = part_options(options, members);
  return make(context_, part, std::move(members), ranks(), mine);
}

/// On one node: the first to find that everybody has published or is dead decides.
std::vector<Team::Survivor> Team::agree_on_survivors(std::uint64_t digest, std::uint64_t staging) {
  control().survivors.digest.store(digest, std::memory_order_relaxed);
  control().survivors.staging.store(staging + 1, std::memory_order_release);
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
  std::vector<Survivor> chosen;
  for (int member = 0; member < ranks(); ++member) {
    if ((record.members[member / 64] >> (member % 64) & 1) == 0) continue;
    const SurvivorsRecord& theirs = control(member).survivors;
    chosen.push_back(
        {member, theirs.staging.load(std::memory_order_acquire) - 1, theirs.digest.load(std::memory_order_relaxed)});
  }
  return chosen;
}

/// Between nodes: everybody waits until everybody has published or is dead, and tells by which engines nothing came of
/// it; then the lowest of the living decides. Should it die over that, the next one does, with the decision that it has
/// learnt of, if any.
std::vector<Team::Survivor> Team::agree_between_nodes(std::uint64_t digest, std::uint64_t staging) {
  lines_->put_offer(digest, staging);
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
  if ((decision->engines & ~std::uint64_t{transport.closed_engines()}) != 0) close_engines(*decision);
  std::vector<Survivor> chosen;
  for (int member = 0; member < ranks(); ++member) {
    if ((decision->members[member / 64] >> (member % 64) & 1) == 0) continue;
    const std::int64_t seen_ns = waiting.quiet_ns();
    while (!lines_->offer(member) && waiting.quiet_ns() - seen_ns < kOfferNs) (void)pause();
    // A member of which nothing comes is dead: the new team's first call says so, and nothing is put to it.
    const auto offer = lines_->offer(member);
    chosen.push_back({member, offer ? offer->staging : staging, offer ? offer->digest : digest});
  }
  return chosen;
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
