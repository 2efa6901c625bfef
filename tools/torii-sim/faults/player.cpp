// SPDX-License-Identifier: Apache-2.0
// The steps of a history, and what may come of them.
#include "tools/torii-sim/faults/player.hpp"

#include <algorithm>
#include <cstring>

namespace torii::faults {
namespace {

std::string cause_of(torii_status status) { return std::string(torii_status_name(status)) + ": " + torii_last_error(); }

}  // namespace

void Stage::fail(int rank, const std::string& what) {
  failures.push_back("rank " + std::to_string(rank) + " at " + std::to_string(fibers.now() / fibers::kMicrosecond) +
                     " us: " + what);
}

void Stage::enter(int rank, Phase phase) {
  const auto at = static_cast<std::size_t>(rank);
  phases[at] = phase;
  fibers.note(rank, text_of(phase));
  const int visit = visits[at][static_cast<std::size_t>(phase)]++;
  for (const Fault& fault : history.faults) {
    if (fault.rank != rank || fault.phase != phase || fault.visit != visit) continue;
    if (fault.kind == FaultKind::dies) fibers.die_in(fault.point);
    if (fault.kind == FaultKind::stops) fibers.stop_in(fault.point, fault.time);
  }
}

Player::Player(Stage& stage, torii_context* context, int rank)
    : stage_(stage), history_(stage.history), context_(context), rank_(rank), teams_(history_.teams, nullptr) {}

/// Memory is given back when no peer reads it any more: every team is gone by then.
Player::~Player() {
  for (torii_region* const region : regions_) {
    if (torii_deregister(context_, region) != TORII_OK) stage_.fail(rank_, torii_last_error());
  }
  for (void* const address : arena_memory_) {
    if (torii_free(context_, address) != TORII_OK) stage_.fail(rank_, torii_last_error());
  }
}

std::string Player::where(std::size_t step, std::size_t team) const {
  return " (step " + std::to_string(step) + ", team " + std::to_string(team) + ")";
}

/// No wait without progress is longer than the deadline; some calls consist of several waits.
template <class Body>
torii_status Player::timed(Phase phase, const Body& body) {
  constexpr int kWaitsMost = 4;
  stage_.enter(rank_, phase);
  const fibers::Time begun = stage_.fibers.now();
  fibers::Time stopped = 0;
  for (const Fault& fault : history_.faults) {
    if (fault.kind == FaultKind::stops) stopped += fault.time;
  }
  const torii_status status = body();
  if (status != TORII_OK) stage_.fibers.note(rank_, cause_of(status));
  stage_.enter(rank_, Phase::computing);
  const auto deadline = static_cast<fibers::Time>(history_.job.timeout_s * fibers::kSecond);
  const fibers::Time took = stage_.fibers.now() - begun;
  if (took > kWaitsMost * deadline + 4 * fibers::kSecond + stopped) {
    stage_.fail(rank_, std::string(text_of(phase)) + " took " + std::to_string(took / fibers::kMillisecond) + " ms");
  }
  return status;
}

bool Player::make_world() {
  torii_team_options options = {};
  options.size = sizeof(options);
  const Job& job = history_.job;
  if (!job.topology.empty()) options.topology = job.topology.c_str();
  if (!job.algorithm.empty()) options.algorithm = job.algorithm.c_str();
  if (!job.determinism.empty()) options.determinism = job.determinism.c_str();
  const torii_status status =
      timed(Phase::making_team, [&] { return torii_team_create(context_, &options, &teams_[0]); });
  // A rank that misses another one tells nobody, so each may name another one.
  if (status != TORII_OK && !history_.may_fail(0, rank_)) {
    stage_.fail(rank_, "cannot make the team of all ranks without a fault: " + cause_of(status));
  }
  return status == TORII_OK;
}

void Player::play() {
  if (!make_world()) return;
  for (std::size_t index = 0; index < history_.steps.size(); ++index) {
    const Step& step = history_.steps[index];
    if (step.is_left_out) continue;
    const int pause_us = step.pauses_us[static_cast<std::size_t>(rank_)];
    if (pause_us != 0) stage_.fibers.sleep(pause_us * fibers::kMicrosecond);
    wait_until(index);
    if (step.splits) {
      split(step);
    } else if (teams_[step.team] != nullptr) {
      run(index);
    }
  }
  wait_until(SIZE_MAX);
  for (std::size_t team = history_.teams; team-- > 0;) {
    if (teams_[team] != nullptr) end_team(team);
  }
  for (const Call& call : calls_) {
    if (call.was_right && !difference(call).empty()) {
      stage_.fail(rank_, "a result has changed after its call had ended" + where(call.step, call.team));
    }
  }
}

void Player::split(const Step& step) {
  const int color = static_cast<int>(step.colors >> rank_ & 1);
  const torii_status status =
      timed(Phase::splitting, [&] { return torii_team_split(teams_[0], color, rank_, nullptr, &teams_[step.part]); });
  if (status != TORII_OK) judge_failure(0, status, " (split)");
}

std::byte* Player::memory(std::size_t bytes, Memory where) {
  if (where == Memory::allocated && bytes != 0) {
    void* address = nullptr;
    if (torii_allocate(context_, bytes, &address) != TORII_OK) stage_.fail(rank_, torii_last_error());
    arena_memory_.push_back(address);
    return static_cast<std::byte*>(address);
  }
  if (where != Memory::adopted || bytes == 0) return private_memory_.emplace_back(bytes + 1).data();
  // Whole pages: whoever adopts the end of a block reads its neighbours, which the address sanitizer refuses.
  constexpr std::size_t kPage = 4096;
  void* const pages = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  adopted_memory_.emplace_back(pages);
  torii_region* region = nullptr;
  if (torii_register(context_, pages, bytes, TORII_REGISTER_ADOPT, &region) == TORII_OK) regions_.push_back(region);
  return static_cast<std::byte*>(pages);
}

Player::Call& Player::make(std::size_t index, const CallSpec& spec, Memory where) {
  const Step& step = history_.steps[index];
  Call& call = calls_.emplace_back();
  call.step = index;
  call.team = step.team;
  call.spec = spec;
  call.ranks = torii_team_ranks(teams_[step.team]);
  call.rank = torii_team_rank(teams_[step.team]);
  call.input = memory(input_bytes(spec, call.ranks), where);
  call.result = memory(result_bytes(spec, call.ranks, call.rank), where);
  const std::vector<std::byte> input = input_of(spec, call.ranks, call.rank);
  std::ranges::copy(input, call.input);
  const bool is_sent_from_result = spec.collective == TORII_BROADCAST && call.rank == spec.root % call.ranks;
  if (is_sent_from_result) std::ranges::copy(input, call.result);
  return call;
}

torii_call Player::words_of(const Call& call) const {
  return call_of(call.spec.collective, call.input, call.result, call.spec.count, call.spec.type, call.spec.op,
                 call.spec.root % call.ranks);
}

void Player::run(std::size_t index) {
  const Step& step = history_.steps[index];
  torii_team* const team = teams_[step.team];
  const auto rank = static_cast<std::size_t>(rank_);
  const Deviation deviation = step.deviations[rank];
  if (deviation == Deviation::refused) return refuse(index);
  if (deviation == Deviation::aborts && torii_team_abort(team, "a history says so") != TORII_OK) {
    stage_.fail(rank_, std::string("abort: ") + torii_last_error());
  }
  Call& call = make(index, deviation == Deviation::differs ? step.other : step.call, step.memory[rank]);
  call.is_checked = deviation != Deviation::differs;
  const torii_call words = words_of(call);
  if (step.manner == Manner::blocking)
    return judge(call, timed(Phase::calling, [&] { return torii_run(team, &words); }));
  if (step.manner == Manner::started) {
    const torii_status started = timed(Phase::starting, [&] { return torii_start(team, &words, &call.request); });
    call.due = index + 1 + call.spec.seed % 3;
    if (started != TORII_OK) judge(call, started);
    return;
  }
  torii_request* request = nullptr;
  torii_status status = timed(Phase::preparing, [&] { return torii_prepare(team, &words, &request); });
  for (int round = 0; round < 2 && status == TORII_OK; ++round) {
    call.was_right = false;  // the result may change from here on
    status = timed(Phase::starting, [&] { return torii_restart(request); });
    if (status == TORII_OK) status = timed(Phase::waiting, [&] { return torii_wait(&request); });
    if (status == TORII_OK) judge(call, status);
  }
  if (status != TORII_OK) judge(call, status);
  if (torii_request_free(&request) != TORII_OK) stage_.fail(rank_, std::string("free: ") + torii_last_error());
}

void Player::refuse(std::size_t index) {
  const Step& step = history_.steps[index];
  const int way = static_cast<int>((step.call.seed + static_cast<std::uint64_t>(rank_)) % kRefusals);
  const torii_status status = timed(Phase::refusing, [&] { return make_refused_call(teams_[step.team], way); });
  if (status == TORII_OK)
    stage_.fail(rank_, "wrong call " + std::to_string(way) + " succeeded" + where(index, step.team));
}

void Player::wait_until(std::size_t step) {
  for (Call& call : calls_) {
    if (call.request == nullptr || call.due > step) continue;
    torii_request* request = call.request;
    call.request = nullptr;
    judge(call, timed(Phase::waiting, [&] { return torii_wait(&request); }));
  }
}

std::string Player::difference(const Call& call) const {
  const std::vector<std::byte> expected = expected_result(call.spec, call.ranks, call.rank);
  const auto [right, wrong] = std::mismatch(expected.begin(), expected.end(), call.result);
  if (right == expected.end()) return "";
  std::size_t count = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) count += expected[i] != call.result[i] ? 1 : 0;
  return std::to_string(count) + " of " + std::to_string(expected.size()) + " bytes, from byte " +
         std::to_string(right - expected.begin()) + " on";
}

void Player::judge(Call& call, torii_status status) {
  if (status != TORII_OK) return judge_failure(call.team, status, where(call.step, call.team));
  ++stage_.calls;
  if (!call.is_checked) return;
  const std::string wrong = difference(call);
  call.was_right = wrong.empty();
  if (!call.was_right) {
    stage_.fail(rank_, "wrong result although the call returned ok: " + wrong + where(call.step, call.team));
  }
}

void Player::judge_failure(std::size_t team, torii_status status, const std::string& at) {
  const std::string cause = cause_of(status);
  ++stage_.failed_calls;
  if (!history_.may_fail(team, rank_)) stage_.fail(rank_, "failed without a fault: " + cause + at);
  if (status == TORII_POISONED) return;
  const auto first = stage_.causes.try_emplace({team, history_.members(team, rank_).front()}, cause);
  if (!history_.job.several_nodes() && first.first->second != cause) {
    stage_.fail(rank_,
                "reports another cause than a member before: " + cause + " instead of " + first.first->second + at);
  }
}

/// A team on which something went wrong has failed for all by now, and its survivors go on.
void Player::end_team(std::size_t team) {
  const torii_status status = timed(Phase::calling, [&] { return torii_barrier(teams_[team]); });
  if (status != TORII_OK) {
    judge_failure(team, status, " (barrier at the end of team " + std::to_string(team) + ")");
    go_on_with_survivors(team);
  } else {
    ++stage_.left[team];
  }
  if (torii_team_destroy(teams_[team]) != TORII_OK) stage_.fail(rank_, std::string("destroy: ") + torii_last_error());
}

/// Until a team of survivors works: each further death costs one more.
void Player::go_on_with_survivors(std::size_t team) {
  std::vector<torii_team*> made;
  torii_team* failed = teams_[team];
  for (std::size_t attempt = 0; attempt <= history_.faults.size(); ++attempt) {
    torii_team* next = nullptr;
    const torii_status status =
        timed(Phase::choosing_survivors, [&] { return torii_team_survivors(failed, nullptr, &next); });
    if (status != TORII_OK) {
      // A member whose last call succeeded knows of no failure, and does not come. Who waits for it is waited for in
      // other teams.
      stage_.waits_in_vain = stage_.waits_in_vain || stage_.left[team] != 0;
      if (!history_.may_time_out() && !stage_.waits_in_vain) {
        stage_.fail(rank_, "no team of survivors: " + cause_of(status) + where(history_.steps.size(), team));
      }
      break;
    }
    ++stage_.survivors;
    made.push_back(next);
    const std::int64_t one = 1;
    std::int64_t sum = 0;
    const torii_status called =
        timed(Phase::calling_survivors, [&] { return torii_allreduce(next, &one, &sum, 1, TORII_I64, TORII_SUM); });
    if (called == TORII_OK && sum != torii_team_ranks(next)) stage_.fail(rank_, "wrong sum over the survivors");
    if (called == TORII_OK) {
      ++stage_.left[team];
      break;
    }
    if (!history_.may_fail(team, rank_)) stage_.fail(rank_, "survivors failed without a fault: " + cause_of(called));
    failed = next;
  }
  while (!made.empty()) {
    if (torii_team_destroy(made.back()) != TORII_OK) stage_.fail(rank_, std::string("destroy: ") + torii_last_error());
    made.pop_back();
  }
}

}  // namespace torii::faults
