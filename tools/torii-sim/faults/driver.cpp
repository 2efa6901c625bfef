// SPDX-License-Identifier: Apache-2.0
// The steps of a history, and what may come of them.
#include "tools/torii-sim/faults/driver.hpp"

#include <algorithm>
#include <utility>

#include "api/agreement/team_control.hpp"

namespace torii::faults {
namespace {

std::string cause_of(torii_status status) { return std::string(torii_status_name(status)) + ": " + torii_last_error(); }

}  // namespace

Driver::Driver(SimulatedJob& job, torii_context* context, int rank)
    : job_(job),
      history_(job.history),
      context_(context),
      rank_(rank),
      memory_(job, context, rank),
      teams_(history_.teams, nullptr) {}

std::string Driver::where(std::size_t step, std::size_t team) const {
  return " (step " + std::to_string(step) + ", team " + std::to_string(team) + ")";
}

torii_status Driver::timed(Phase phase, const std::string& name, const std::function<torii_status()>& body) {
  constexpr int kWaitsMost = 4;
  job_.enter(rank_, phase);
  const fibers::Time begun = job_.fibers.now();
  fibers::Time stopped = 0;
  for (const Fault& fault : history_.faults) {
    if (fault.kind == FaultKind::stops) stopped += fault.time;
  }
  std::size_t act = 0;
  if (job_.log != nullptr) {
    act = job_.log->acts.size();
    job_.log->acts.push_back({rank_, name, begun});
  }
  const torii_status status = body();
  if (status != TORII_OK) job_.fibers.note(rank_, cause_of(status));
  if (job_.log != nullptr) {
    job_.log->acts[act].ended = job_.fibers.now();
    job_.log->acts[act].status = torii_status_name(status);
  }
  job_.enter(rank_, Phase::computing);
  const fibers::Time took = job_.fibers.now() - begun;
  if (took > kWaitsMost * history_.deadline() + 4 * fibers::kSecond + stopped) {
    job_.fail(rank_, std::string(text_of(phase)) + " took " + std::to_string(took / fibers::kMillisecond) + " ms");
  }
  return status;
}

/// Tries once more when the reason of a refusal has gone, as programs do.
bool Driver::make_world() {
  const std::optional<bool> first = try_world(true);
  return first ? *first : try_world(false).value_or(false);
}

/// Nothing: the reason was one that may have gone.
std::optional<bool> Driver::try_world(bool is_first) {
  constexpr std::size_t kOddSegmentBytes = 12288;
  const Job& job = history_.job;
  const bool is_odd = job.odd_rank >= 0 && !job.is_odd_for_good && is_first;
  torii_team_options options = {};
  options.size = sizeof(options);
  if (!job.topology.empty()) options.topology = job.topology.c_str();
  if (!job.algorithm.empty()) options.algorithm = job.algorithm.c_str();
  if (!job.determinism.empty()) options.determinism = job.determinism.c_str();
  if (!job.wire.empty()) options.wire = job.wire.c_str();
  if (is_odd && job.odd_rank == rank_) options.segment_bytes = kOddSegmentBytes;
  const torii_status status =
      timed(Phase::making_team, "make team", [&] { return torii_team_create(context_, &options, &teams_[0]); });
  if (status == TORII_OK) {
    if (is_odd || (job.odd_rank >= 0 && job.is_odd_for_good)) job_.fail(rank_, "made a team of unlike settings");
    return true;
  }
  const bool is_expected = (status == TORII_MISMATCH && job.odd_rank >= 0 && (is_first || job.is_odd_for_good)) ||
                           (status == TORII_NO_RESOURCE && job_.has_refused_memory());
  // A rank that misses another one tells nobody, so each may name another one.
  if (!is_expected && !history_.may_fail(0, rank_)) {
    job_.fail(rank_, "cannot make the team of all ranks without a fault: " + cause_of(status));
  }
  if (is_expected) return {};
  return false;
}

void Driver::play() {
  if (!make_world()) return;
  job_.departures.leave(0, rank_, job_.fibers.now());
  for (std::size_t index = 0; index < history_.steps.size(); ++index) {
    const Step& step = history_.steps[index];
    if (step.is_left_out) continue;
    const int pause_us = step.pauses_us[static_cast<std::size_t>(rank_)];
    if (pause_us != 0) job_.fibers.sleep(pause_us * fibers::kMicrosecond);
    wait_until(index);
    if (step.splits) {
      split(index);
    } else if (teams_[step.team] != nullptr && step.streak.calls != 0) {
      run_streak(index);
    } else if (teams_[step.team] != nullptr) {
      run(index);
    }
  }
  wait_until(SIZE_MAX);
  for (std::size_t team = history_.teams; team-- > 0;) {
    if (teams_[team] != nullptr) end_team(team);
  }
  check_sealed();
}

void Driver::check_sealed() {
  for (const Call& call : calls_) {
    if (call.vectors.has_changed()) {
      job_.fail(rank_, "memory was written after its call had ended" + where(call.step, call.team));
    }
  }
}

void Driver::split(std::size_t index) {
  const Visit visit(job_, 0, rank_);
  const Step& step = history_.steps[index];
  const int color = static_cast<int>(step.colors >> rank_ & 1);
  const torii_status status = timed(Phase::splitting, "split", [&] {
    return torii_team_split(teams_[0], color, rank_, nullptr, &teams_[step.part]);
  });
  job_.departures.leave(step.part, rank_, job_.fibers.now());
  job_.state(rank_).parts[step.part] = status == TORII_OK ? Part::made : Part::not_made;
  if (status == TORII_NO_RESOURCE && job_.has_refused_memory()) {
    // The team goes on without parts, and all say why. One that has failed agrees on nothing any more.
    // The cause is read first: other ranks run while this one asks.
    const std::string cause = cause_of(status);
    if (torii_team_health(teams_[0]) == TORII_OK) compare_causes(history_.teams + step.part, cause, where(index, 0));
  } else if (status != TORII_OK) {
    judge_failure(0, status, where(index, 0));
  }
  const bool aborts = step.deviations[static_cast<std::size_t>(rank_)] == Deviation::aborts;
  if (aborts && torii_team_abort(teams_[0], "a history says so") != TORII_OK) {
    job_.fail(rank_, std::string("abort: ") + torii_last_error());
  }
}

Driver::Call& Driver::make(std::size_t index, const DrawnCall& spec, Memory where) {
  const Step& step = history_.steps[index];
  Call& call = calls_.emplace_back();
  call.step = index;
  call.team = step.team;
  call.spec = spec;
  call.place = {torii_team_ranks(teams_[step.team]), torii_team_rank(teams_[step.team])};
  call.vectors = memory_.make(spec, call.place, where);
  call.vectors.fill();
  return call;
}

/// True if the team's algorithm can run the call: if not, all members are refused.
bool Driver::is_served(torii_team* team, const Words& words) const {
  if (history_.job.algorithm.empty()) return true;
  torii_choice choice = {};
  choice.size = sizeof(choice);
  return torii_choose(team, &words.call, &choice) == TORII_OK;
}

void Driver::run(std::size_t index) {
  const Step& step = history_.steps[index];
  torii_team* const team = teams_[step.team];
  const Visit visit(job_, step.team, rank_);
  const auto rank = static_cast<std::size_t>(rank_);
  const Deviation deviation = step.deviations[rank];
  if (deviation == Deviation::refused) return refuse(index);
  if (deviation == Deviation::aborts && torii_team_abort(team, "a history says so") != TORII_OK) {
    job_.fail(rank_, std::string("abort: ") + torii_last_error());
  }
  ++job_.state(rank_).calls_begun;
  Call& call = make(index, deviation == Deviation::differs ? step.other : step.call, step.memory[rank]);
  call.is_checked = deviation != Deviation::differs;
  if (call.spec.kind != CallKind::collective) return run_blocking(call);
  Words words;
  write_words(words, call.spec, call.place, call.vectors.input(), call.vectors.result());
  if (!is_served(team, words)) {
    const torii_status status =
        timed(Phase::refusing, text_of(call.spec), [&] { return torii_run(team, &words.call); });
    ++job_.refused_calls;
    if (status == TORII_OK) job_.fail(rank_, "an algorithm ran what it cannot run" + where(index, step.team));
    return;
  }
  const std::string name = job_.log != nullptr ? text_of(call.spec) : "";
  if (step.manner == Manner::blocking) {
    const bool in_parts = is_made_in_parts(call.spec);
    const torii_status status = timed(Phase::calling, name, [&] {
      return in_parts ? run_in_parts(team, call.spec, words.call) : torii_run(team, &words.call);
    });
    if (status != TORII_OK && in_parts) job_.has_abandoned = true;
    return judge(call, status);
  }
  if (step.manner == Manner::persistent) return run_persistent(call, words);
  const torii_status started =
      timed(Phase::starting, "start " + name, [&] { return torii_start(team, &words.call, &call.request); });
  call.due = index + 1 + call.spec.seed % (history_.is_busy() ? 6 : 3);
  if (started != TORII_OK) judge(call, started);
}

void Driver::run_blocking(Call& call) {
  torii_team* const team = teams_[call.team];
  const torii_status status = timed(Phase::calling, text_of(call.spec), [&] {
    const auto make = call.spec.kind == CallKind::sends ? send_and_receive : redistribute;
    return make(team, call.spec, call.place, call.vectors.input(), call.vectors.result());
  });
  if (status != TORII_OK && redistributes(call.spec.kind)) job_.has_abandoned = true;
  judge(call, status);
}

void Driver::run_persistent(Call& call, const Words& words) {
  const std::string name = job_.log != nullptr ? text_of(call.spec) : "";
  torii_request* request = nullptr;
  torii_status status =
      timed(Phase::preparing, "prepare", [&] { return torii_prepare(teams_[call.team], &words.call, &request); });
  // torii_team_health() may set another text: of a member that is lost, though the team has not failed.
  const std::string own = "rank " + std::to_string(torii_team_rank(teams_[call.team])) + " on ";
  const auto is_refused_here = [&] {
    return std::string(torii_last_error()).starts_with(own) || torii_team_health(teams_[call.team]) == TORII_OK;
  };
  if (status == TORII_NO_RESOURCE && job_.has_refused_memory() && is_refused_here()) {
    // This rank alone refuses the operation. The team fails when another one starts it.
    ++job_.failed_calls;
    call.has_ended = true;
    return;
  }
  for (int round = 0; round < 2 && status == TORII_OK; ++round) {
    call.vectors.unseal();
    call.vectors.fill();
    status = timed(Phase::starting, "start " + name, [&] { return torii_restart(request); });
    if (status == TORII_OK) status = timed(Phase::waiting, "wait", [&] { return torii_wait(&request); });
    if (status == TORII_OK) judge(call, status);
  }
  if (status != TORII_OK) judge(call, status);
  if (torii_request_free(&request) != TORII_OK) job_.fail(rank_, std::string("free: ") + torii_last_error());
}

void Driver::refuse(std::size_t index) {
  const Step& step = history_.steps[index];
  const int first = static_cast<int>((step.call.seed + static_cast<std::uint64_t>(rank_)) % kRefusals);
  for (int way = first; way < first + step.refused_calls(); ++way) {
    const torii_status status =
        timed(Phase::refusing, "wrong call", [&] { return make_refused_call(teams_[step.team], way); });
    if (status == TORII_OK)
      job_.fail(rank_, "wrong call " + std::to_string(way) + " succeeded" + where(index, step.team));
  }
}

void Driver::wait_until(std::size_t step) {
  for (Call& call : calls_) {
    if (call.request == nullptr || call.due > step) continue;
    const Visit visit(job_, call.team, rank_);
    wait_for(call);
  }
}

torii_status Driver::wait_for(Call& call) {
  torii_request* request = std::exchange(call.request, nullptr);
  const torii_status status = timed(Phase::waiting, "wait", [&] { return torii_wait(&request); });
  judge(call, status);
  return status;
}

/// After a call the vectors belong to the rank, which writes to its input at once.
void Driver::judge(Call& call, torii_status status) {
  call.has_ended = true;
  if (status != TORII_OK) return judge_failure(call.team, status, where(call.step, call.team));
  ++job_.calls;
  if (call.is_checked) {
    const std::string wrong = call.vectors.difference();
    if (!wrong.empty()) {
      job_.fail(rank_, "wrong result although the call returned ok: " + wrong + where(call.step, call.team));
    }
  }
  call.vectors.spoil();
  call.vectors.seal();
}

/// A rank takes memory for rings and outboxes when it first needs them, in any call.
bool Driver::lacks_memory(const std::string& cause) const {
  const auto names = [&](const char* purpose) { return cause.find(purpose) != std::string::npos; };
  return job_.has_refused_memory() && (names("for an outbox") || names("for standing rings"));
}

void Driver::judge_failure(std::size_t team, torii_status status, const std::string& at) {
  const std::string cause = cause_of(status);
  ++job_.failed_calls;
  const bool may_fail = history_.may_fail(team, rank_) || job_.has_left_out;
  const bool is_timeout_right = job_.is_timeout_right(team, rank_, status);
  if (!is_timeout_right && !may_fail && !lacks_memory(cause)) job_.fail(rank_, "failed without a fault: " + cause + at);
  if (status == TORII_POISONED) return;
  compare_causes(team, cause, at);
  if (status != TORII_MISMATCH && !is_timeout_right) check_names_difference(team, cause, at);
}

/// Where nothing is wrong but calls, a rank tells which differ, and does not only wait. The library has the records of
/// so many calls; ranks that are further apart than these cannot know.
void Driver::check_names_difference(std::size_t team, const std::string& cause, const std::string& at) {
  constexpr auto kApartMost = static_cast<int>(kSharedRecords) - 2;
  if (job_.is_difference_judged || !history_.only_differs(team, rank_)) return;
  job_.is_difference_judged = true;
  const auto [least, most] = std::ranges::minmax(job_.ranks, {}, &RankState::calls_begun);
  if (most.calls_begun - least.calls_begun <= kApartMost) {
    job_.fail(rank_, "calls differ, and the cause tells nothing of them: " + cause + at);
  }
}

void Driver::compare_causes(std::size_t team, const std::string& cause, const std::string& at) {
  const auto first = job_.causes.try_emplace({team, history_.members(team, rank_).front()}, cause);
  if (!history_.job.several_nodes() && first.first->second != cause) {
    job_.fail(rank_,
              "reports another cause than a member before: " + cause + " instead of " + first.first->second + at);
  }
}

void Driver::destroy(torii_team* team) {
  if (torii_team_destroy(team) != TORII_OK) job_.fail(rank_, std::string("destroy: ") + torii_last_error());
}

/// A call in which each member waits for all others, if the team's algorithm can run one.
torii_status Driver::meet(std::size_t team) {
  std::int64_t values[2 * 64] = {};
  for (const torii_collective collective : {TORII_BARRIER, TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_ALLTOALL}) {
    const Words words = {make_call(collective, values, values + 64, 1, TORII_I64)};
    if (is_served(teams_[team], words)) return torii_run(teams_[team], &words.call);
  }
  return TORII_OK;
}

/// A team on which something went wrong has failed for all by now, and its survivors go on.
void Driver::end_team(std::size_t team) {
  const Visit visit(job_, team, rank_);
  ++job_.state(rank_).calls_begun;
  const torii_status status = timed(Phase::calling, "meet", [&] { return meet(team); });
  if (status != TORII_OK) {
    judge_failure(team, status, " (barrier at the end of team " + std::to_string(team) + ")");
    go_on_with_survivors(team);
  } else {
    ++job_.left[team];
  }
  destroy(teams_[team]);
}

}  // namespace torii::faults
