// SPDX-License-Identifier: Apache-2.0
// What ends a call before its time: a dead peer, a deadline, calls that differ, an abort. One cause for all survivors.
#include <algorithm>
#include <cstring>
#include <optional>

#include "api/team/team.hpp"

namespace torii {
namespace {

constexpr std::int64_t kAliveEveryNs = 10'000'000;
/// How long a claimed failure record may stay unpublished before its writer counts as dead.
constexpr std::int64_t kClaimNs = 1'000'000'000;
/// How long a rank has waited for something before it takes a dead member of another node for the reason.
constexpr std::int64_t kDoubtNs = 20'000'000;

/// Writes the record unless somebody has.
void claim_failure(FailureRecord& record, Status status, int member, const std::string& text) noexcept {
  std::uint32_t none = FailureRecord::kNone;
  if (!record.state.compare_exchange_strong(none, FailureRecord::kClaimed, std::memory_order_acq_rel)) return;
  record.status = static_cast<std::int32_t>(status);
  record.rank = member;
  std::strncpy(record.text, text.c_str(), kFailureTextBytes - 1);
  record.state.store(FailureRecord::kPublished, std::memory_order_release);
}

/// What the board of a member of this node says of that call, if it still stands there.
std::optional<Standing> read_board(const TeamControl& control, std::uint64_t sequence) noexcept {
  const BoardLine& line = control.board[board_line(sequence)];
  if (line.sequence.load(std::memory_order_acquire) != sequence) return {};
  Standing standing;
  standing.sequence = sequence;
  standing.kind = line.kind.load(std::memory_order_acquire);
  standing.count = line.count.load(std::memory_order_acquire);
  standing.root = line.root.load(std::memory_order_acquire);
  // The line may have been written for a later call meanwhile; then what was read is of no call.
  if (line.sequence.load(std::memory_order_acquire) != sequence) return {};
  return standing;
}

std::string verb_of(const Standing& standing) {
  return (standing.kind & kPreparesOnBoard & 0xffffffff) != 0 ? " prepares " : " calls ";
}

CallArguments arguments_of(const Standing& standing) {
  CallArguments arguments;
  arguments.collective = static_cast<Collective>(standing.kind >> 16 & 0xff);
  arguments.unequal = standing.count == kUnequalOnBoard;
  arguments.count = arguments.unequal ? 0 : standing.count;
  arguments.type = static_cast<Type>(standing.kind >> 8 & 0xff);
  arguments.op = static_cast<Op>(standing.kind & 0xff);
  arguments.root = static_cast<int>(standing.root);
  return arguments;
}

}  // namespace

int Team::member_of(int context_rank) const noexcept {
  const auto at = std::find_if(members_.begin(), members_.end(),
                               [=](const Member& member) { return member.context_rank == context_rank; });
  return at == members_.end() ? -1 : static_cast<int>(at - members_.begin());
}

std::string Team::member_text(int member) const {
  const int context_rank = members_[static_cast<std::size_t>(member)].context_rank;
  return "rank " + std::to_string(member) + " on host " + context_.host(context_rank);
}

/// "in 'up tree 0', segment 7, waiting for rank 3 on host a".
std::string Team::phase_text(const Request& request) const {
  if (request.state == Request::State::queued) return "queued behind another operation";
  for (const auto& channel : channels_) {
    if (channel->current != &request) continue;
    if (channel->awaited != 0) return "before its first message, waiting for " + member_text(channel->agreed_members);
    const Stall stall = channel->execution.stall();
    std::string text = "in '" + std::string(stall.label) + "', segment " + std::to_string(stall.segment);
    const int member = member_of(stall.peer);
    return member < 0 ? text : text + ", waiting for " + member_text(member);
  }
  return "at its end";
}

bool Team::is_distant(int member) const noexcept {
  const Transport& transport = context_.transport();
  return transport.node(members_[static_cast<std::size_t>(member)].context_rank) != transport.node(context_.rank());
}

/// Claims the team's failure record, or takes over what another rank wrote first; between nodes proposes a cause.
Status Team::fail(Status status, int member, const std::string& text) noexcept {
  if (lines_ != nullptr) {
    lines_->propose(status, member, text);
  } else {
    claim_failure(first_control_->failure, status, member, text);
  }
  return adopt_failure();
}

Team::Cause Team::read_cause() noexcept {
  constexpr const char* kNoCause = "a rank died while it reported a failure";
  if (lines_ != nullptr) {
    const Letters::Proposal* const proposal = lines_->settle();
    if (proposal == nullptr) return {Status::internal, kNoCause};
    return {static_cast<Status>(proposal->status), proposal->text};
  }
  const FailureRecord& record = first_control_->failure;
  Deadline claim(kClaimNs);
  while (record.state.load(std::memory_order_acquire) == FailureRecord::kClaimed && !claim.is_over()) {
  }
  if (record.state.load(std::memory_order_acquire) != FailureRecord::kPublished) return {Status::internal, kNoCause};
  return {static_cast<Status>(record.status), record.text};
}

/// Ends all requests with the recorded status. The first call to learn of it reports the cause, later ones `poisoned`.
Status Team::adopt_failure() noexcept {
  auto [status, text] = read_cause();
  for (const auto& channel : channels_) {
    channel->execution.abandon();
    for (Request* request : channel->queue) {
      request->state = Request::State::done;
      request->status = status;
      --in_flight_;
    }
    channel->queue.clear();
    if (channel->current != nullptr) complete(*channel, status);
  }
  if (poisoned_) {
    set_last_error("the team is poisoned: " + text + "; make a new one of the survivors");
    return Status::poisoned;
  }
  poisoned_ = true;
  set_last_error(text);
  cause_ = std::move(text);
  cause_status_ = status;
  return status;
}

/// What this rank tells of itself while it waits in a call.
Standing Team::standing(const Request& request) noexcept {
  const Prepared& prepared = *request.prepared;
  return {request.sequence, prepared.board_count, salted(prepared.board_kind, request.salt), prepared.arguments.root,
          control().completed.load(std::memory_order_acquire)};
}

std::uint64_t Team::completed_by(int member) noexcept {
  if (is_distant(member)) {
    return std::max(lines_->view(member).standing.completed, lines_->view(member, true).standing.completed);
  }
  return control(member).completed.load(std::memory_order_acquire);
}

/// True when the member destroyed its team.
bool Team::has_departed(int member) noexcept {
  if (lines_ != nullptr) return lines_->has_departed(member);
  return control().departed[member].load(std::memory_order_acquire) != 0;
}

/// True when the member ended this call, or destroyed the team, before it died: nobody waits for it here.
bool Team::has_left_after(int member, const Request& request) noexcept {
  return has_departed(member) || (request.sequence != 0 && completed_by(member) >= request.sequence);
}

/// Of a member of another node it is not known at once whether it had ended this call when it died. If it had, then
/// this rank mostly goes on; so it counts as lost when this rank has been waiting for a moment.
Status Team::check_lives(const Waiting& waiting, const Request& request, std::int64_t now) {
  if (now - alive_checked_ns_ < kAliveEveryNs) return Status::ok;
  alive_checked_ns_ = now;
  context_.report_strangers();
  for (int member = 0; member < ranks(); ++member) {
    const int peer = members_[static_cast<std::size_t>(member)].context_rank;
    if (context_.transport().alive(peer) || has_left_after(member, request)) continue;
    if (is_distant(member) && waiting.attentive_ns() < kDoubtNs) continue;
    return fail(Status::peer_lost, member,
                member_text(member) + " died during " + call_text(request.arguments) + ", noticed by rank " +
                    std::to_string(rank_) + " " + phase_text(request));
  }
  return Status::ok;
}

/// Slow checks, about once a millisecond of waiting.
Status Team::check(const Waiting& waiting, const Request& request) noexcept {
  if (lines_ != nullptr) (void)context_.transport().progress();
  if (has_failed()) return adopt_failure();
  const std::int64_t now = now_ns();
  control().looked_ns.store(now, std::memory_order_relaxed);
  if (lines_ != nullptr) lines_->publish(next_told(request), now, now - waiting.quiet_ns());
  try {
    const Status refusals = check_refusals(sequence_);
    if (refusals != Status::ok) return refusals;
    const Status lives = check_lives(waiting, request, now);
    if (lives != Status::ok) return lives;
    const Status differs = check_board(request);
    if (differs != Status::ok) return differs;
    const Status plans = check_installs(waiting, request);
    if (plans != Status::ok) return plans;
    if (waiting.is_over()) return fail_timeout(waiting, request);
  } catch (const std::exception&) {
    return fail(Status::no_resource, rank_, "out of memory");
  }
  return Status::ok;
}

/// True when the member's board, or what it told last, shows this call or a later one of the same order.
bool Team::has_come_to(int member, std::uint64_t sequence) noexcept {
  const auto shows = [&](std::uint64_t shown) {
    return is_persistent(shown) == is_persistent(sequence) && shown >= sequence;
  };
  if (is_distant(member)) return shows(lines_->view(member, is_persistent(sequence)).standing.sequence);
  const BoardLine* board = control(member).board;
  const auto line_shows = [&](const BoardLine& line) { return shows(line.sequence.load(std::memory_order_acquire)); };
  if (is_persistent(sequence)) return line_shows(board[board_line(sequence)]);
  return std::any_of(board, board + kSharedBoardLines, line_shows);
}

/// When the member last looked after a call that it waits in, as far as this rank knows.
std::int64_t Team::looked_ns(int member) noexcept {
  if (is_distant(member)) {
    return std::max(lines_->view(member).changed_ns, lines_->view(member, true).changed_ns);
  }
  return control(member).looked_ns.load(std::memory_order_relaxed);
}

/// "rank 3 on host a, rank 5 on host b and 9 more".
std::string Team::members_text(const std::vector<int>& members) const {
  constexpr std::size_t kNamedMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(members.size(), kNamedMost); ++i) {
    text += (i == 0 ? "" : ", ") + member_text(members[i]);
  }
  if (members.size() > kNamedMost) text += " and " + std::to_string(members.size() - kNamedMost) + " more";
  return text;
}

/// Along a chain of partners the rank that this one waits for may itself wait. So the text names the ranks that have
/// not come to the call, and those that are in it but have stopped looking. May throw.
Status Team::fail_timeout(const Waiting& waiting, const Request& request) {
  std::vector<int> absent;
  std::vector<int> stuck;
  for (int member = 0; member < ranks(); ++member) {
    if (member == rank_ || has_left_after(member, request)) continue;
    // While this process did not run, the members perhaps did not either.
    const std::int64_t quiet_ns = now_ns() - std::max(looked_ns(member), waiting.resumed_ns());
    if (!has_come_to(member, request.sequence)) {
      absent.push_back(member);
    } else if (quiet_ns > timeout_ns_ / 2) {
      stuck.push_back(member);
    }
  }
  std::string text = "no progress for " + std::to_string(timeout_ns_ / 1'000'000) + " ms in " +
                     call_text(request.arguments) + " on " + member_text(rank_) + " " + phase_text(request);
  if (!absent.empty()) text += "; not come to the call: " + members_text(absent);
  if (!stuck.empty()) text += "; in the call but not moving it: " + members_text(stuck);
  const int named = !absent.empty() ? absent.front() : !stuck.empty() ? stuck.front() : rank_;
  return fail(Status::timeout, named, text);
}

/// What the executor could not put or read.
void Team::fail_transport(const Execution& execution, const Request& request) noexcept {
  const Status status = execution.status();
  const int member = member_of(execution.failed_peer());
  try {
    std::string text = "the transport failed";
    if (member >= 0 && status == Status::peer_lost) {
      text = member_text(member) + " died";
    } else if (member >= 0 && status == Status::mismatch) {
      text =
          member_text(member) + " and rank " + std::to_string(rank_) + " give unequal lengths for a block between them";
    } else if (member >= 0) {
      text += " towards " + member_text(member);
    }
    text += " during " + call_text(request.arguments) + ", noticed by rank " + std::to_string(rank_) + " " +
            phase_text(request);
    const std::string refusal = execution.refusal();
    const std::string reason = refusal.empty() ? context_.transport().failure_text() : refusal;
    if (!reason.empty()) text += ": " + reason;
    (void)fail(status, member >= 0 ? member : rank_, text);
  } catch (const std::exception&) {
    (void)fail(status, member >= 0 ? member : rank_, "the transport failed");
  }
}

/// Compares this rank's calls with those of its peers at the same places: the call that it waits in, and if that is a
/// persistent operation, which is in no order with others, also the last call before it.
Status Team::check_board(const Request& request) {
  for (int member = 0; member < ranks(); ++member) {
    Status status = compare_calls(member, request, request.sequence);
    if (status == Status::ok && is_persistent(request.sequence)) status = compare_calls(member, request, sequence_);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

/// A member of another node has told of one call only, which may not be the one that this rank asks for.
Status Team::compare_calls(int member, const Request& request, std::uint64_t sequence) {
  const std::optional<Standing> theirs = is_distant(member) ? lines_->view(member, is_persistent(sequence)).standing
                                                            : read_board(control(member), sequence);
  if (!theirs || theirs->sequence == 0) return Status::ok;
  const std::optional<Standing> own = read_board(control(), theirs->sequence);
  if (!own || own->kind >> 32 == theirs->kind >> 32) return Status::ok;
  const std::string own_call =
      verb_of(*own) + call_text(own->sequence == request.sequence ? request.arguments : arguments_of(*own));
  const std::string their_call = verb_of(*theirs) + call_text(arguments_of(*theirs));
  const std::string own_text = "rank " + std::to_string(rank_) + own_call;
  const std::string their_text = "rank " + std::to_string(member) + their_call;
  std::string difference;
  if (own_call == their_call) {
    difference =
        own->count == kUnequalOnBoard ? ", with other counts" : ", after calls that differ" + refusals_text(member);
  }
  // Named from the lower rank's side, so that the text does not depend on who noticed first.
  const bool mine_first = rank_ < member;
  return fail(Status::mismatch, std::max(rank_, member),
              "calls differ: " + (mine_first ? own_text : their_text) + ", " + (mine_first ? their_text : own_text) +
                  difference);
}

/// What this rank tells of itself next. In a persistent operation it tells of the last call in order, too, by turns.
Standing Team::next_told(const Request& request) noexcept {
  tells_call_in_order_ = is_persistent(request.sequence) && !tells_call_in_order_;
  if (!tells_call_in_order_) return standing(request);
  std::optional<Standing> last = read_board(control(), sequence_);
  if (!last) return standing(request);
  last->completed = standing(request).completed;
  return *last;
}

void Team::abort(const std::string& reason) noexcept {
  // Only the record: this may be any thread, and the caller of an operation finds it in its next check.
  const std::string text = "aborted by rank " + std::to_string(rank_) + (reason.empty() ? "" : ": " + reason);
  if (lines_ == nullptr) {
    claim_failure(first_control_->failure, Status::aborted, rank_, text);
    return;
  }
  lines_->propose(Status::aborted, rank_, text);
  // This rank may never be in a call again.
  lines_->push_out();
}

}  // namespace torii
