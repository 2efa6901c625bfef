// SPDX-License-Identifier: Apache-2.0
// What ends a call before its time: a dead peer, a deadline, calls that differ, an abort. One cause for all survivors.
#include <algorithm>
#include <cstring>

#include "api/team.hpp"

namespace torii {
namespace {

constexpr std::int64_t kAliveEveryNs = 10'000'000;
/// How long a claimed failure record may stay unpublished before its writer counts as dead.
constexpr std::int64_t kClaimNs = 1'000'000'000;

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
    const Stall stall = channel->execution.stall();
    std::string text = "in '" + std::string(stall.label) + "', segment " + std::to_string(stall.segment);
    const int member = member_of(stall.peer);
    return member < 0 ? text : text + ", waiting for " + member_text(member);
  }
  return "at its end";
}

/// Claims the team's failure record, or takes over what another rank wrote first.
Status Team::fail(Status status, int member, const std::string& text) noexcept {
  FailureRecord& record = first_control_->failure;
  std::uint32_t none = FailureRecord::kNone;
  if (record.state.compare_exchange_strong(none, FailureRecord::kClaimed, std::memory_order_acq_rel)) {
    record.status = static_cast<std::int32_t>(status);
    record.rank = member;
    std::strncpy(record.text, text.c_str(), kFailureTextBytes - 1);
    record.state.store(FailureRecord::kPublished, std::memory_order_release);
  }
  return adopt_failure();
}

/// Ends all requests with the recorded status. The first call to learn of it reports the cause, later ones `poisoned`.
Status Team::adopt_failure() noexcept {
  const FailureRecord& record = first_control_->failure;
  const std::int64_t begun_ns = now_ns();
  while (record.state.load(std::memory_order_acquire) == FailureRecord::kClaimed && now_ns() - begun_ns < kClaimNs) {
  }
  const bool published = record.state.load(std::memory_order_acquire) == FailureRecord::kPublished;
  const Status status = published ? static_cast<Status>(record.status) : Status::internal;
  const std::string text = published ? record.text : "a rank died while it reported a failure";
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
  return status;
}

/// True when the member ended this call, or destroyed the team, before it died: nobody waits for it here.
bool Team::has_left_after(int member, const Request& request) noexcept {
  if (control().departed[member].load(std::memory_order_acquire) != 0) return true;
  return request.sequence != 0 && control(member).completed.load(std::memory_order_acquire) >= request.sequence;
}

/// Slow checks, about once a millisecond of waiting.
Status Team::check(const Waiting& waiting, const Request& request) noexcept {
  if (has_failed()) return adopt_failure();
  const std::int64_t now = now_ns();
  control().looked_ns.store(now, std::memory_order_relaxed);
  try {
    if (now - alive_checked_ns_ >= kAliveEveryNs) {
      alive_checked_ns_ = now;
      for (int member = 0; member < ranks(); ++member) {
        const int peer = members_[static_cast<std::size_t>(member)].context_rank;
        if (context_.transport().alive(peer) || has_left_after(member, request)) continue;
        return fail(Status::peer_lost, member,
                    member_text(member) + " died during " + call_text(request.arguments) + ", noticed by rank " +
                        std::to_string(rank_) + " " + phase_text(request));
      }
    }
    const Status differs = check_board(request);
    if (differs != Status::ok) return differs;
    if (waiting.quiet_since_ns() != 0 && now - waiting.quiet_since_ns() > timeout_ns_) {
      return fail_timeout(request);
    }
  } catch (const std::exception&) {
    return fail(Status::no_resource, rank_, "out of memory");
  }
  return Status::ok;
}

/// True when the member's board shows this call or a later one of the same order.
bool Team::has_come_to(int member, const Request& request) noexcept {
  const auto shows = [&](const BoardLine& line) {
    const std::uint64_t sequence = line.sequence.load(std::memory_order_acquire);
    return is_persistent(sequence) == is_persistent(request.sequence) && sequence >= request.sequence;
  };
  const BoardLine* board = control(member).board;
  if (is_persistent(request.sequence)) return shows(board[board_line(request.sequence)]);
  return std::any_of(board, board + kSharedBoardLines, shows);
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
Status Team::fail_timeout(const Request& request) {
  std::vector<int> absent;
  std::vector<int> stuck;
  for (int member = 0; member < ranks(); ++member) {
    if (member == rank_ || has_left_after(member, request)) continue;
    const std::int64_t quiet_ns = now_ns() - control(member).looked_ns.load(std::memory_order_relaxed);
    if (!has_come_to(member, request)) {
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
    } else if (member >= 0) {
      text += " towards " + member_text(member);
    }
    text += " during " + call_text(request.arguments) + ", noticed by rank " + std::to_string(rank_) + " " +
            phase_text(request);
    const std::string reason = context_.transport().failure_text();
    if (!reason.empty()) text += ": " + reason;
    (void)fail(status, member >= 0 ? member : rank_, text);
  } catch (const std::exception&) {
    (void)fail(status, member >= 0 ? member : rank_, "the transport failed");
  }
}

/// Compares this rank's call with those of its peers at the same place in the order of calls.
Status Team::check_board(const Request& request) noexcept {
  const std::uint32_t mine = request.prepared->shape.signature;
  for (int member = 0; member < ranks(); ++member) {
    const BoardLine& line = control(member).board[board_line(request.sequence)];
    if (line.sequence.load(std::memory_order_acquire) != request.sequence) continue;
    const std::uint64_t kind = line.kind.load(std::memory_order_acquire);
    if (kind >> 32 == mine) continue;
    CallArguments theirs;
    theirs.collective = static_cast<Collective>(kind >> 16 & 0xff);
    theirs.count = line.count.load(std::memory_order_acquire);
    theirs.type = static_cast<Type>(kind >> 8 & 0xff);
    theirs.op = static_cast<Op>(kind & 0xff);
    theirs.root = static_cast<int>(line.root.load(std::memory_order_acquire));
    // The line may have been written for a later call meanwhile; then what was read is of no call.
    if (line.sequence.load(std::memory_order_acquire) != request.sequence) continue;
    // Named from the lower rank's side, so that the text does not depend on who noticed first.
    const bool mine_first = rank_ < member;
    const std::string own_text = "rank " + std::to_string(rank_) + " calls " + call_text(request.arguments);
    const std::string their_text = "rank " + std::to_string(member) + " calls " + call_text(theirs);
    return fail(Status::mismatch, std::max(rank_, member),
                "calls differ: " + (mine_first ? own_text : their_text) + ", " + (mine_first ? their_text : own_text));
  }
  return Status::ok;
}

void Team::abort(const std::string& reason) noexcept {
  // Only the record: this may be any thread, and the caller of an operation finds it in its next check.
  FailureRecord& record = first_control_->failure;
  std::uint32_t none = FailureRecord::kNone;
  if (!record.state.compare_exchange_strong(none, FailureRecord::kClaimed, std::memory_order_acq_rel)) return;
  record.status = static_cast<std::int32_t>(Status::aborted);
  record.rank = rank_;
  const std::string text = "aborted by rank " + std::to_string(rank_) + (reason.empty() ? "" : ": " + reason);
  std::strncpy(record.text, text.c_str(), kFailureTextBytes - 1);
  record.state.store(FailureRecord::kPublished, std::memory_order_release);
}

}  // namespace torii
