// SPDX-License-Identifier: Apache-2.0
// The team of those who live: everybody publishes its new memory, one decides for all.
#include <algorithm>
#include <cstring>
#include <new>

#include "api/team/staging.hpp"
#include "api/team/team.hpp"
#include "api/team/team_lines.hpp"

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

std::unique_ptr<Team> Team::survivors(const TeamOptions& given) {
  if (!operations_.has_failed()) throw Error(Status::invalid_argument, "the team is not poisoned: split it instead");
  if (survivors_made_) throw Error(Status::invalid_argument, "a team of the survivors has been asked for already");
  survivors_made_ = true;
  if (!operations_.is_poisoned()) (void)operations_.adopt_failure();
  Staging staging(context());
  TeamOptions options;
  SurvivorsOffer own;
  std::vector<Survivor> chosen;
  keep_trouble(own.status, own.text, [&] {
    chosen.reserve(members_.all().size());  // nothing may fail on one rank alone once it has made its offer
    options = with_own_tree(given);
    own.digest = options_digest(context(), options);
    staging.take(ranks());
    own.staging = staging.offset();
  });
  agreement_->choose_survivors(own, chosen);
  const std::size_t bytes = team_control_bytes(ranks(), context()) + team_staging_bytes(ranks(), context());
  for (const Survivor& one : chosen) {
    check_offer(one.member, one.staging, bytes, members_.transport().arena_bytes());
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
      members.push_back({members_.at(one.member).context_rank, one.staging});
    }
    const TeamOptions part = part_options(options, members);
    team.reset(new Team(context(), part, std::move(members), ranks()));
  });
  agreement_->tell_made(status, text);
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

/// Waits until every member of the new team has said that it has made its object, or has died, which the first call
/// says. Throws where one could not: on all, since nobody has yet put into the others' memory.
void Team::wait_until_made(const std::vector<Survivor>& chosen) {
  Transport& transport = members_.transport();
  Waiting waiting = members_.waiting();
  for (const Survivor& one : chosen) {
    while (!agreement_->made_by(one.member)) {
      (void)transport.progress();
      if (!waiting.pause(stays_idle, nullptr)) continue;
      if (!members_.is_alive(one.member)) break;
      if (waiting.is_over()) throw_missing(one.member);
    }
  }
  agreement_->push_out();
  for (const Survivor& one : chosen) {
    const std::optional<MadeReport> made = agreement_->made_by(one.member);
    if (made && made->status != 0) throw_refusal(one.member, made->status, made->text);
  }
}

}  // namespace torii
