// SPDX-License-Identifier: Apache-2.0
// The team of the living members: every member publishes its new memory, one decides for all.
#include <algorithm>
#include <cstring>

#include "api/agreement/survivor_messages.hpp"
#include "api/agreement/survivors_judge.hpp"
#include "api/team/founding_memory.hpp"
#include "api/team/options_digest.hpp"
#include "api/team/team_factory.hpp"

namespace torii {
namespace {

/// The set of TeamOptions::without. Throws Error{invalid_argument}.
MemberSet read_without(const Team& parent, const TeamOptions& options) {
  if (options.without_count < 0 || (options.without == nullptr && options.without_count != 0)) {
    invalid("without_count is " + std::to_string(options.without_count) +
            (options.without == nullptr ? ", but without is NULL" : "; it must not be negative"));
  }
  MemberSet without = {};
  for (int i = 0; i < options.without_count; ++i) {
    const int member = options.without[i];
    if (member < 0 || member >= parent.ranks()) {
      invalid("without names rank " + std::to_string(member) + "; the ranks of the team are from 0 to " +
              std::to_string(parent.ranks() - 1));
    }
    if (member == parent.rank()) invalid("without names rank " + std::to_string(member) + ", which makes the call");
    without.add(member);
  }
  return without;
}

/// The options that must be equal on all survivors, as a text.
std::string text_to_compare(Context& context, const TeamOptions& options, const MemberSet& without) {
  std::string text = digest_text(context, options) + "without=";
  for (const std::uint64_t word : without.words) text += std::to_string(word) + ",";
  return text + (options.allows_minority ? "\nminority\n" : "\n");
}

}  // namespace

std::unique_ptr<Team> TeamFactory::make_survivors(Team& parent, const TeamOptions& given,
                                                  const Trouble& given_trouble) {
  Trouble trouble = given_trouble;
  if (!parent.agreement_->vote().learns_failure()) {
    if (trouble.is_there()) throw Error(trouble.status, trouble.text);
    throw Error(Status::invalid_argument, "the team is not poisoned: split it instead");
  }
  if (parent.survivors_made_) {
    throw Error(Status::invalid_argument, "a team of the survivors has been made already");
  }
  if (parent.operations_.health().cause().status == Status::ok) (void)parent.operations_.adopt_failure();
  FoundingMemory memory(context_);
  TeamOptions options;
  SurvivorProposal own = {};
  std::vector<Survivor> chosen;
  std::vector<int> left_out;
  trouble.keep([&] {
    own.without = read_without(parent, given);
    own.allows_minority = given.allows_minority ? 1 : 0;
    // Nothing may fail on one rank alone once it has made its proposal.
    chosen.reserve(parent.members_.all().size());
    left_out.reserve(parent.members_.all().size());
    options = with_tree(given, given.topology);
    own.digest = digest_of(text_to_compare(context_, options, own.without));
    memory.take(parent.ranks(), shared_channels_of(options, context_.settings()));
    own.memory_offset = memory.offset();
  });
  // A rank that another team has left out may ask too. Its proposal must not count, whether the others have lost it too
  // or not, so it is no part of what is compared.
  for (int member = 0; member < parent.ranks(); ++member) {
    if (context_.has_left_out(parent.members_.at(member).context_rank)) own.without.add(member);
  }
  own.status = static_cast<std::int32_t>(trouble.status);
  std::memcpy(own.text, trouble.text, kRoundTextBytes);
  try {
    std::unique_ptr<Team> team = agree_on_survivors(parent, options, own, chosen);
    memory.release();
    leave_out_others(parent, *team, left_out);
    return team;
  } catch (const RoundError& error) {
    if (error.status() == Status::timeout) parent.operations_.tell_absent(error.absent());
    if (error.others_may_go_on()) memory.release();
    throw;
  }
}

/// Goes through rounds until this rank is in one that ends: throws what that says, or has the team with all others.
std::unique_ptr<Team> TeamFactory::agree_on_survivors(Team& parent, const TeamOptions& options,
                                                      const SurvivorProposal& own, std::vector<Survivor>& chosen) {
  std::unique_ptr<Team> team;
  for (bool is_made = false; !is_made;) {
    team.reset();
    chosen.clear();
    parent.agreement_->vote().choose_survivors(own, chosen);
    Trouble trouble;
    trouble.keep([&] { team = make_object(parent, options, chosen); });
    is_made = parent.agreement_->vote().settle_survivors(trouble, chosen);
  }
  team->owns_memory_ = true;
  parent.survivors_made_ = true;
  return team;
}

/// Members that are not in the team of survivors though they may live. `left_out` has room for them.
void TeamFactory::leave_out_others(const Team& parent, const Team& team, std::vector<int>& left_out) noexcept {
  for (const Member& member : parent.members_.all()) {
    const bool may_live = parent.members_.transport().alive(member.context_rank);
    if (may_live && team.members_.member_of(member.context_rank) < 0) left_out.push_back(member.context_rank);
  }
  context_.leave_out(left_out);
}

/// This rank's object of the survivors' team. Nobody puts into the others' memory before all have made theirs.
std::unique_ptr<Team> TeamFactory::make_object(Team& parent, const TeamOptions& options,
                                               const std::vector<Survivor>& chosen) {
  const std::size_t bytes =
      team_memory_bytes(parent.ranks(), shared_channels_of(options, context_.settings()), context_);
  std::vector<Member> members;
  for (const Survivor& one : chosen) {
    check_proposal(one.member, one.memory_offset, bytes, parent.members_.transport().arena_bytes());
    members.push_back({parent.members_.at(one.member).context_rank, one.memory_offset});
  }
  const TeamOptions part = part_options(parent, options, members);
  return std::unique_ptr<Team>(new Team(context_, part, std::move(members), parent.ranks()));
}

}  // namespace torii
