// SPDX-License-Identifier: Apache-2.0
// What ends a call before its time: a dead peer, a deadline, calls that differ, an abort. One cause for all survivors.
#include <algorithm>
#include <cstring>
#include <optional>

#include "api/team/board.hpp"
#include "api/team/team.hpp"

namespace torii {
namespace {

constexpr std::int64_t kAliveEveryNs = 10'000'000;
/// How long a rank has waited for something before it takes a dead member of another node for the reason.
constexpr std::int64_t kDoubtNs = 20'000'000;

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

/// "in 'up tree 0', segment 7, waiting for rank 3 on host a".
std::string Team::phase_text(const Request& request) const {
  if (request.state == Request::State::queued) return "queued behind another operation";
  for (const auto& channel : channels_) {
    if (channel->current != &request) continue;
    if (channel->awaited != 0) return "before its first message, waiting for " + members_.text(channel->agreed_members);
    const Stall stall = channel->execution.stall();
    std::string text = "in '" + std::string(stall.label) + "', segment " + std::to_string(stall.segment);
    const int member = members_.member_of(stall.peer);
    return member < 0 ? text : text + ", waiting for " + members_.text(member);
  }
  return "at its end";
}

/// Claims the team's failure record, or takes over what another rank wrote first; between nodes proposes a cause.
Status Team::fail(Status status, int member, const std::string& text) noexcept {
  agreement_->claim(status, member, text);
  return adopt_failure();
}

/// Ends all requests with the recorded status. The first call to learn of it reports the cause, later ones `poisoned`.
Status Team::adopt_failure() noexcept {
  auto [status, text] = agreement_->read_cause();
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
          own_control_->completed.load(std::memory_order_acquire)};
}

/// True when the member ended this call, or destroyed the team, before it died: nobody waits for it here.
bool Team::has_left_after(int member, const Request& request) noexcept {
  return agreement_->has_departed(member) ||
         (request.sequence != 0 && agreement_->completed_by(member) >= request.sequence);
}

/// Of a member of another node it is not known at once whether it had ended this call when it died. If it had, then
/// this rank mostly goes on; so it counts as lost when this rank has been waiting for a moment.
Status Team::check_lives(const Waiting& waiting, const Request& request, std::int64_t now) {
  if (now - alive_checked_ns_ < kAliveEveryNs) return Status::ok;
  alive_checked_ns_ = now;
  context_.report_strangers();
  for (int member = 0; member < ranks(); ++member) {
    if (members_.is_alive(member) || has_left_after(member, request)) continue;
    if (members_.is_distant(member) && waiting.attentive_ns() < kDoubtNs) continue;
    return fail(Status::peer_lost, member,
                members_.text(member) + " died during " + call_text(request.arguments) + ", noticed by rank " +
                    std::to_string(members_.rank()) + " " + phase_text(request));
  }
  return Status::ok;
}

/// Slow checks, about once a millisecond of waiting.
Status Team::check(const Waiting& waiting, const Request& request) noexcept {
  agreement_->progress();
  if (failed_.is_set()) return adopt_failure();
  const std::int64_t now = now_ns();
  own_control_->looked_ns.store(now, std::memory_order_relaxed);
  agreement_->publish(next_told(request), now, now - waiting.quiet_ns());
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
    return fail(Status::no_resource, members_.rank(), "out of memory");
  }
  return Status::ok;
}

/// Along a chain of partners the rank that this one waits for may itself wait. So the text names the ranks that have
/// not come to the call, and those that are in it but have stopped looking. May throw.
Status Team::fail_timeout(const Waiting& waiting, const Request& request) {
  std::vector<int> absent;
  std::vector<int> stuck;
  for (int member = 0; member < ranks(); ++member) {
    if (member == members_.rank() || has_left_after(member, request)) continue;
    // While this process did not run, the members perhaps did not either.
    const std::int64_t quiet_ns = now_ns() - std::max(agreement_->looked_ns(member), waiting.resumed_ns());
    if (!agreement_->has_come_to(member, request.sequence)) {
      absent.push_back(member);
    } else if (quiet_ns > members_.timeout_ns() / 2) {
      stuck.push_back(member);
    }
  }
  std::string text = "no progress for " + std::to_string(members_.timeout_ns() / 1'000'000) + " ms in " +
                     call_text(request.arguments) + " on " + members_.text(members_.rank()) + " " + phase_text(request);
  if (!absent.empty()) text += "; not come to the call: " + members_.text(absent);
  if (!stuck.empty()) text += "; in the call but not moving it: " + members_.text(stuck);
  const int named = !absent.empty() ? absent.front() : !stuck.empty() ? stuck.front() : members_.rank();
  return fail(Status::timeout, named, text);
}

/// What the executor could not put or read.
void Team::fail_transport(const Execution& execution, const Request& request) noexcept {
  const Status status = execution.status();
  const int member = members_.member_of(execution.failed_peer());
  try {
    std::string text = "the transport failed";
    if (member >= 0 && status == Status::peer_lost) {
      text = members_.text(member) + " died";
    } else if (member >= 0 && status == Status::mismatch) {
      text = members_.text(member) + " and rank " + std::to_string(members_.rank()) +
             " give unequal lengths for a block between them";
    } else if (member >= 0) {
      text += " towards " + members_.text(member);
    }
    text += " during " + call_text(request.arguments) + ", noticed by rank " + std::to_string(members_.rank()) + " " +
            phase_text(request);
    const std::string refusal = execution.refusal();
    const std::string reason = refusal.empty() ? context_.transport().failure_text() : refusal;
    if (!reason.empty()) text += ": " + reason;
    (void)fail(status, member >= 0 ? member : members_.rank(), text);
  } catch (const std::exception&) {
    (void)fail(status, member >= 0 ? member : members_.rank(), "the transport failed");
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

Status Team::compare_calls(int member, const Request& request, std::uint64_t sequence) {
  const std::optional<Standing> theirs = agreement_->told_by(member, sequence);
  if (!theirs || theirs->sequence == 0) return Status::ok;
  const std::optional<Standing> own = read_board(*own_control_, theirs->sequence);
  if (!own || own->kind >> 32 == theirs->kind >> 32) return Status::ok;
  const std::string own_call =
      verb_of(*own) + call_text(own->sequence == request.sequence ? request.arguments : arguments_of(*own));
  const std::string their_call = verb_of(*theirs) + call_text(arguments_of(*theirs));
  const std::string own_text = "rank " + std::to_string(members_.rank()) + own_call;
  const std::string their_text = "rank " + std::to_string(member) + their_call;
  std::string difference;
  if (own_call == their_call) {
    difference =
        own->count == kUnequalOnBoard ? ", with other counts" : ", after calls that differ" + refusals_text(member);
  }
  // Named from the lower rank's side, so that the text does not depend on who noticed first.
  const bool mine_first = members_.rank() < member;
  return fail(Status::mismatch, std::max(members_.rank(), member),
              "calls differ: " + (mine_first ? own_text : their_text) + ", " + (mine_first ? their_text : own_text) +
                  difference);
}

/// What this rank tells of itself next. In a persistent operation it tells of the last call in order, too, by turns.
Standing Team::next_told(const Request& request) noexcept {
  tells_call_in_order_ = is_persistent(request.sequence) && !tells_call_in_order_;
  if (!tells_call_in_order_) return standing(request);
  std::optional<Standing> last = read_board(*own_control_, sequence_);
  if (!last) return standing(request);
  last->completed = standing(request).completed;
  return *last;
}

void Team::abort(const std::string& reason) noexcept {
  // Only the record: this may be any thread, and the caller of an operation finds it in its next check.
  const std::string text = "aborted by rank " + std::to_string(members_.rank()) + (reason.empty() ? "" : ": " + reason);
  agreement_->claim(Status::aborted, members_.rank(), text);
  // This rank may never be in a call again.
  agreement_->push_out();
}

}  // namespace torii
