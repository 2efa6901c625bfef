// SPDX-License-Identifier: Apache-2.0
// Calls that this rank refused: they count as its calls, and its peers learn why.
#include "api/team/team.hpp"

namespace torii {

void Team::count_refusal(const char* reason) noexcept {
  const Inside inside(busy_, in_background_);
  if (!context_.is_forked_child() && !poisoned_ && !failed_.is_set()) note_refusal(++sequence_, reason);
}

/// Call number `sequence` of this rank was refused. Between nodes the notice leaves now: this rank may not be in a call
/// again for long.
void Team::note_refusal(std::uint64_t sequence, const char* reason) noexcept {
  history_.add_refused();
  const RefusalNotice& notice = refused_.add(sequence, reason);
  agreement_->put_refusal(notice);
}

/// Compares what this rank, whose calls up to `own_sequence` are settled, refused with what each member did. May throw.
Status Team::check_refusals(std::uint64_t own_sequence) {
  for (int member = 0; member < ranks(); ++member) {
    if (member == members_.rank()) continue;
    const std::span<const RefusalNotice> theirs = agreement_->refusals_of(member);
    // A member writes a notice before it writes its next call on the board. Between nodes lines may overtake each
    // other; there the member finds this rank's notice, or check_board() finds that signatures differ.
    const auto has_passed = [&](std::uint64_t sequence) {
      return !members_.is_distant(member) && agreement_->has_come_to(member, sequence + 1);
    };
    if (const auto own = refused_.refused_here_alone(theirs, has_passed)) return fail_refused(members_.rank(), *own);
    if (const auto other = refused_.refused_by_peer_alone(theirs, own_sequence)) return fail_refused(member, *other);
  }
  return Status::ok;
}

/// What this rank and that member refused last: a cause of differences that no call shows.
std::string Team::refusals_text(int member) {
  std::string text;
  const auto add = [&](int rank, const std::optional<RefusalNotice>& notice) {
    if (notice) text += "; " + members_.text(rank) + " has refused a call: " + notice->text.data();
  };
  const auto own = refused_.last();
  const auto theirs = last_notice(agreement_->refusals_of(member));
  if (members_.rank() < member) add(members_.rank(), own);
  add(member, theirs);
  if (members_.rank() > member) add(members_.rank(), own);
  return text;
}

Status Team::fail_refused(int member, const RefusalNotice& notice) {
  return fail(Status::mismatch, member,
              "calls differ: " + members_.text(member) + " refused its call " + std::to_string(notice.sequence) +
                  " on this team, which other ranks made: " + notice.text.data());
}

}  // namespace torii
