// SPDX-License-Identifier: Apache-2.0
// The team of the living members: every member publishes its new memory, one decides for all.
#include <algorithm>
#include <new>

#include "api/team/options_digest.hpp"
#include "api/team/staging.hpp"
#include "api/team/survivor_messages.hpp"
#include "api/team/team_factory.hpp"

namespace torii {
namespace {

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

std::unique_ptr<Team> TeamFactory::make_survivors(Team& parent, const TeamOptions& given) {
  if (!parent.agreement_->failure_sign().is_set()) {
    throw Error(Status::invalid_argument, "the team is not poisoned: split it instead");
  }
  if (parent.survivors_made_) {
    throw Error(Status::invalid_argument, "a team of the survivors has been asked for already");
  }
  parent.survivors_made_ = true;
  if (parent.operations_.health().cause().status == Status::ok) (void)parent.operations_.adopt_failure();
  Staging staging(context_);
  TeamOptions options;
  SurvivorsOffer own;
  std::vector<Survivor> chosen;
  keep_trouble(own.status, own.text, [&] {
    chosen.reserve(parent.members_.all().size());  // nothing may fail on one rank alone once it has made its offer
    options = with_tree(given, given.topology);
    own.digest = digest_of(digest_text(context_, options));
    staging.take(parent.ranks());
    own.staging = staging.offset();
  });
  parent.agreement_->choose_survivors(own, chosen);
  const auto is_own = [&](const Survivor& one) { return one.member == parent.members_.rank(); };
  if (std::ranges::none_of(chosen, is_own)) {
    throw Error(Status::peer_lost,
                "the other members have lost this rank, which they no longer reach, and go on without it",
                parent.members_.rank());
  }
  std::unique_ptr<Team> team;
  Status status = Status::ok;
  std::string text;
  try {
    check_survivors(parent, chosen);
  } catch (const Error& error) {
    // A member that misses the offer of a dead one finds nothing to compare, and waits for this rank.
    parent.agreement_->tell_made(error.status(), error.what());
    parent.agreement_->push_out();
    throw;
  }
  keep_trouble(status, text, [&] {
    std::vector<Member> members;
    for (const Survivor& one : chosen) {
      members.push_back({parent.members_.at(one.member).context_rank, one.staging});
    }
    const TeamOptions part = part_options(parent, options, members);
    team.reset(new Team(context_, part, std::move(members), parent.ranks()));
  });
  parent.agreement_->tell_made(status, text);
  try {
    wait_until_made(parent, chosen);
  } catch (const Error& error) {
    if (error.status() == Status::timeout) staging.release();  // the others may have the team, and write there
    throw;
  }
  staging.release();
  team->owns_memory_ = true;
  return team;
}

/// Every survivor compares the same words, so every survivor ends here and none puts into the memory.
void TeamFactory::check_survivors(const Team& parent, const std::vector<Survivor>& chosen) const {
  const std::size_t bytes = team_memory_bytes(parent.ranks(), context_);
  for (const Survivor& one : chosen) {
    check_offer(one.member, one.staging, bytes, parent.members_.transport().arena_bytes());
    if (one.digest == chosen.front().digest) continue;
    throw Error(Status::mismatch,
                "the options of the survivors' team differ between rank " + std::to_string(chosen.front().member) +
                    " and rank " + std::to_string(one.member) + "; they must be equal on all survivors",
                one.member);
  }
}

/// Waits until every member of the new team has said that it has made its object, or has died, which the first call
/// says. Throws where one could not: on all, since nobody has yet put into the others' memory. A dead member may have
/// given its reason to others, which pass it on.
void TeamFactory::wait_until_made(Team& parent, const std::vector<Survivor>& chosen) {
  Transport& transport = parent.members_.transport();
  TeamAgreement& agreement = *parent.agreement_;
  Waiting waiting = parent.members_.waiting();
  std::int64_t death_seen_ns = -1;
  for (const Survivor& one : chosen) {
    while (!agreement.made_by(one.member)) {
      (void)transport.progress();
      if (!waiting.pause(stays_idle, nullptr)) continue;
      if (!parent.members_.is_alive(one.member)) {
        if (death_seen_ns < 0) death_seen_ns = waiting.quiet_ns();
        if (waiting.quiet_ns() - death_seen_ns > agreement.pass_on_ns()) break;
      } else if (waiting.is_over()) {
        throw_missing(one.member);
      }
    }
  }
  const auto refusing = std::ranges::find_if(chosen, [&](const Survivor& one) {
    const std::optional<MadeReport> made = agreement.made_by(one.member);
    return made && made->status != 0;
  });
  agreement.push_out();
  if (refusing == chosen.end()) return;
  const MadeReport made = *agreement.made_by(refusing->member);
  throw_refusal(refusing->member, made.status, made.text);
}

}  // namespace torii
