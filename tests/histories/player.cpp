// SPDX-License-Identifier: Apache-2.0
// The steps of a history, and what may come of them.
#include "tests/histories/player.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
Player::Player(Stage& stage, torii_context* context, torii_team* base)
    : stage_(stage),
      history_(stage.history),
      context_(context),
      base_(base),
      rank_(torii_context_rank(context)),
      teams_(history_.teams, nullptr) {}

Player::~Player() {
  for (torii_team* team : teams_) EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
  // Nobody reads a vector of this rank any more when all have destroyed their teams.
  EXPECT_EQ(torii_barrier(base_), TORII_OK) << torii_last_error();
  for (void* address : arena_memory_) EXPECT_EQ(torii_free(context_, address), TORII_OK) << torii_last_error();
}

std::string Player::where(std::size_t step, std::size_t team) const {
  return "rank " + std::to_string(rank_) + ", step " + std::to_string(step) + ", team " + std::to_string(team) +
         " of " + text_of(history_);
}

void Player::play() {
  ASSERT_EQ(torii_team_split(base_, 0, rank_, nullptr, &teams_[0]), TORII_OK) << torii_last_error();
  for (std::size_t index = 0; index < history_.steps.size(); ++index) {
    const Step& step = history_.steps[index];
    const int pause_us = step.pauses_us[static_cast<std::size_t>(rank_)];
    if (pause_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    wait_until(index);
    if (step.splits) {
      split(step);
    } else {
      run(index);
    }
  }
  wait_until(SIZE_MAX);
  for (std::size_t team = history_.teams; team-- > 0;) end(team);
}

void Player::split(const Step& step) {
  const int color = static_cast<int>(step.colors >> rank_ & 1);
  EXPECT_EQ(torii_team_split(teams_[0], color, rank_, nullptr, &teams_[step.part]), TORII_OK) << torii_last_error();
}

std::byte* Player::memory(std::size_t bytes, bool in_arena) {
  if (!in_arena || bytes == 0) return private_memory_.emplace_back(bytes + 1).data();
  void* address = nullptr;
  EXPECT_EQ(torii_allocate(context_, bytes, &address), TORII_OK) << torii_last_error();
  arena_memory_.push_back(address);
  return static_cast<std::byte*>(address);
}

Player::Call& Player::make(std::size_t index, const CallSpec& spec, bool in_arena) {
  const Step& step = history_.steps[index];
  const int ranks = torii_team_ranks(teams_[step.team]);
  const int rank = torii_team_rank(teams_[step.team]);
  Call& call = calls_.emplace_back();
  call.step = index;
  call.team = step.team;
  call.spec = spec;
  call.input = memory(input_bytes(spec, ranks), in_arena);
  call.result = memory(result_bytes(spec, ranks, rank), in_arena);
  const std::vector<std::byte> input = input_of(spec, ranks, rank);
  std::copy(input.begin(), input.end(), call.input);
  const bool is_sent_from_result = spec.collective == TORII_BROADCAST && rank == spec.root % ranks;
  if (is_sent_from_result) std::copy(input.begin(), input.end(), call.result);
  return call;
}

torii_call Player::words_of(const Call& call) const {
  const int root = call.spec.root % torii_team_ranks(teams_[call.team]);
  return make_call(call.spec.collective, call.input, call.result, call.spec.count, call.spec.type, call.spec.op, root);
}

void Player::run(std::size_t index) {
  const Step& step = history_.steps[index];
  torii_team* const team = teams_[step.team];
  const Deviation deviation = step.deviations[static_cast<std::size_t>(rank_)];
  if (deviation == Deviation::refused) return refuse(index);
  if (deviation == Deviation::aborts) {
    EXPECT_EQ(torii_team_abort(team, "a history says so"), TORII_OK);
  }
  Call& call = make(index, deviation == Deviation::differs ? step.other : step.call, step.in_arena);
  call.is_checked = deviation != Deviation::differs;
  const torii_call words = words_of(call);
  if (step.manner == Manner::blocking) return judge(call, torii_run(team, &words));
  if (step.manner == Manner::started) {
    const torii_status started = torii_start(team, &words, &call.request);
    call.due = index + 1 + call.spec.seed % 3;
    if (started != TORII_OK) judge(call, started);
    return;
  }
  torii_request* request = nullptr;
  torii_status status = torii_prepare(team, &words, &request);
  for (int round = 0; round < 2 && status == TORII_OK; ++round) {
    status = torii_restart(request);
    if (status == TORII_OK) status = torii_wait(&request);
    if (status == TORII_OK) judge(call, status);
  }
  if (status != TORII_OK) judge(call, status);
  EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
}

void Player::refuse(std::size_t index) {
  const Step& step = history_.steps[index];
  const int way = static_cast<int>((step.call.seed + static_cast<std::uint64_t>(rank_)) % kRefusals);
  EXPECT_NE(make_refused_call(teams_[step.team], way), TORII_OK) << "way " << way << ", " << where(index, step.team);
}

void Player::wait_until(std::size_t step) {
  for (Call& call : calls_) {
    if (call.request == nullptr || call.due > step) continue;
    torii_request* request = call.request;
    call.request = nullptr;
    judge(call, torii_wait(&request));
  }
}

void Player::judge(const Call& call, torii_status status) {
  if (status != TORII_OK) return judge_failure(call.team, status, where(call.step, call.team));
  if (!call.is_checked) return;
  const int ranks = torii_team_ranks(teams_[call.team]);
  const std::vector<std::byte> expected = expected_result(call.spec, ranks, torii_team_rank(teams_[call.team]));
  // Unlike std::equal, memcmp is one access to a sanitizer.
  EXPECT_TRUE(expected.empty() || std::memcmp(expected.data(), call.result, expected.size()) == 0)
      << "wrong result although the call returned ok: " << where(call.step, call.team);
}

void Player::judge_failure(std::size_t team, torii_status status, const std::string& where) {
  const std::string cause = std::string(torii_status_name(status)) + ": " + torii_last_error();
  EXPECT_TRUE(history_.may_fail(team, rank_)) << cause << "\n" << where;
  if (status == TORII_POISONED) return;
  EXPECT_TRUE(status == TORII_MISMATCH || status == TORII_ABORTED) << cause << "\n" << where;
  const std::lock_guard lock(stage_.mutex);
  const auto first = stage_.causes.try_emplace({team, history_.members(team, rank_).front()}, cause);
  if (stage_.causes_agree) {
    EXPECT_EQ(first.first->second, cause) << where;
  }
}

/// A team on which ranks deviated has failed for all by now, and its survivors go on.
void Player::end(std::size_t team) {
  const torii_status status = torii_barrier(teams_[team]);
  const std::string at = where(history_.steps.size(), team);
  if (!history_.may_fail(team, rank_)) {
    EXPECT_EQ(status, TORII_OK) << torii_last_error() << "\n" << at;
    return;
  }
  EXPECT_NE(status, TORII_OK) << at;
  if (status == TORII_OK) return;
  judge_failure(team, status, at);
  make_survivors(team);
}

void Player::make_survivors(std::size_t team) {
  torii_team* survivors = nullptr;
  ASSERT_EQ(torii_team_survivors(teams_[team], nullptr, &survivors), TORII_OK) << torii_last_error();
  const int ranks = torii_team_ranks(survivors);
  EXPECT_EQ(ranks, torii_team_ranks(teams_[team]));
  const std::int64_t one = 1;
  std::int64_t sum = 0;
  EXPECT_EQ(torii_allreduce(survivors, &one, &sum, 1, TORII_I64, TORII_SUM), TORII_OK) << torii_last_error();
  EXPECT_EQ(sum, ranks);
  EXPECT_EQ(torii_team_destroy(survivors), TORII_OK) << torii_last_error();
}

}  // namespace torii::tests
