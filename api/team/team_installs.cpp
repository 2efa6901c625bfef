// SPDX-License-Identifier: Apache-2.0
// Members agree on the plans that they have put in place, before anybody writes into their staging.
#include <algorithm>

#include "api/team/team.hpp"

namespace torii {
namespace {

constexpr std::int64_t kCallsAreToldNs = 500'000'000;

}  // namespace

/// Whether all members agree on the installation that the channel awaits.
bool Team::is_agreed(Channel& channel) noexcept {
  agreement_->progress();
  for (; channel.agreed_members < ranks(); ++channel.agreed_members) {
    if (plans_.verdict(channel.agreed_members, channel.awaited) != InstallLog::Verdict::agrees) return false;
  }
  // Peers that wait for this rank's word are not served when this rank has left the call.
  if (!agreement_->words_have_left()) return false;
  const Prepared& prepared = *channel.current->prepared;
  prepared.places[channel.current->runs_on].plan->unagreed = 0;
  if (prepared.lengths != nullptr) prepared.lengths->places[channel.current->runs_on].plan->unagreed = 0;
  channel.awaited = 0;
  return true;
}

/// Finds a member that has put other plans in place, where the calls themselves do not show the difference: what the
/// members tell of their calls names it better, and may come a little later than the words.
Status Team::check_installs(const Waiting& waiting, const Request& request) {
  if (waiting.quiet_ns() < std::min(kCallsAreToldNs, members_.timeout_ns() / 2)) return Status::ok;
  for (const auto& channel : channels_) {
    if (channel->current == nullptr || channel->awaited == 0) continue;
    for (int member = channel->agreed_members; member < ranks(); ++member) {
      // Read before the word: a member publishes its words before it leaves.
      const bool has_left = agreement_->has_departed(member);
      const InstallLog::Verdict verdict = plans_.verdict(member, channel->awaited);
      if (verdict == InstallLog::Verdict::not_yet && has_left) {
        return fail(Status::mismatch, member,
                    members_.text(member) + " destroyed the team before it came to " + call_text(request.arguments));
      }
      if (verdict != InstallLog::Verdict::differs) continue;
      return fail(Status::mismatch, std::max(members_.rank(), member),
                  "calls differ: before " + call_text(request.arguments) + ", rank " +
                      std::to_string(std::min(members_.rank(), member)) + " and rank " +
                      std::to_string(std::max(members_.rank(), member)) + " made calls with different plans");
    }
  }
  return Status::ok;
}

void Team::finish_all() {
  if (channels_.size() - shared_channels_ != free_channels_.size()) {
    throw Error(Status::no_resource,
                "the team's staging is used up while persistent operations hold plans in it; make "
                "fewer of them, or more teams");
  }
  for (const auto& channel : channels_) {
    while (channel->current != nullptr) {
      const Status status = run_to_end(*channel->current);
      if (status != Status::ok) throw Error(status, last_error());
    }
  }
}

void Team::wait_for(int member, const std::string& purpose, const std::function<bool()>& is_there) {
  const auto require = [](Status status) {
    if (status != Status::ok) throw Error(status, last_error());
  };
  Waiting waiting = members_.waiting();
  while (!is_there()) {
    // The member may be waiting for this rank on another team first.
    context_.background().progress(this);
    if (progress_channels()) {
      // Or for an operation of this team that only this rank's caller moves.
      if (poisoned_) throw Error(cause_status_, cause_);
      waiting.moved();
      continue;
    }
    agreement_->progress();
    if (waiting.is_turn_of_others()) context_.idle();
    auto still_idle = [&] { return !is_there(); };
    const auto ask = [](void* idle) { return (*static_cast<decltype(still_idle)*>(idle))(); };
    if (!waiting.pause(ask, &still_idle)) continue;
    if (failed_.is_set()) require(adopt_failure());
    require(check_refusals(sequence_ - 1));  // this rank may yet refuse the call that it starts
    if (!members_.is_alive(member)) {
      require(fail(
          Status::peer_lost, member,
          members_.text(member) + " died while rank " + std::to_string(members_.rank()) + " waited for it " + purpose));
    }
    if (waiting.is_over()) {
      require(fail(Status::timeout, member,
                   "no progress for " + std::to_string(members_.timeout_ns() / 1'000'000) + " ms while rank " +
                       std::to_string(members_.rank()) + " waited for " + members_.text(member) + " " + purpose));
    }
  }
}

int Team::entries_in_flight_most() const noexcept {
  const std::lock_guard lock(channels_mutex_);
  int most = 0;
  for (const auto& channel : channels_) most = std::max(most, channel->execution.entries_in_flight_most());
  return most;
}

std::uint64_t Team::engine_bytes(int engine) const noexcept {
  const std::lock_guard lock(channels_mutex_);
  std::uint64_t bytes = 0;
  for (const auto& channel : channels_) bytes += channel->execution.engine_bytes(engine);
  return bytes;
}

}  // namespace torii
