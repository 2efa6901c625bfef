// SPDX-License-Identifier: Apache-2.0
// The steps of a history, and what may come of them.
#include "tests/histories/driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/conformance/thread_team.hpp"
#include "tools/torii-sim/faults/elements.hpp"

namespace torii::tests {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

}  // namespace

Driver::Driver(HistoryJob& job, torii_context* context, torii_team* base)
    : job_(job),
      history_(job.history),
      context_(context),
      base_(base),
      rank_(torii_context_rank(context)),
      teams_(history_.teams, nullptr) {}

Driver::~Driver() {
  for (torii_team* team : teams_) EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
  // Nobody reads a vector of this rank any more when all have destroyed their teams.
  EXPECT_EQ(torii_barrier(base_), TORII_OK) << torii_last_error();
  for (const Call& call : calls_) {
    EXPECT_FALSE(call.vectors.has_changed()) << "memory was written after its call: " << where(call.step, call.team);
  }
  for (void* address : arena_memory_) EXPECT_EQ(torii_free(context_, address), TORII_OK) << torii_last_error();
}

std::string Driver::where(std::size_t step, std::size_t team) const {
  return "rank " + std::to_string(rank_) + ", step " + std::to_string(step) + ", team " + std::to_string(team) +
         " of " + faults::text_of(history_);
}

void Driver::play() {
  ASSERT_EQ(torii_team_split(base_, 0, rank_, nullptr, &teams_[0]), TORII_OK) << torii_last_error();
  // One rank in eight forks, by the history's seed. Not under a sanitizer: the lock of its allocator, which another
  // rank's thread may hold, stays locked in the child.
  const std::uint64_t drawn = faults::mixed(history_.seed + 11 + static_cast<std::uint64_t>(rank_));
  const std::size_t forks_at =
      drawn % 8 == 0 && !kIsSanitized ? drawn / 8 % history_.steps.size() : history_.steps.size();
  for (std::size_t index = 0; index < history_.steps.size(); ++index) {
    const Step& step = history_.steps[index];
    const int pause_us = step.pauses_us[static_cast<std::size_t>(rank_)];
    if (pause_us != 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    wait_until(index);
    if (forks_at == index && teams_[step.team] != nullptr) fork_child(step.team);
    if (step.splits) {
      split(step);
    } else if (teams_[step.team] != nullptr) {
      run(index);
    }
  }
  wait_until(SIZE_MAX);
  for (std::size_t team = history_.teams; team-- > 0;) {
    if (teams_[team] != nullptr) end(team);
  }
}

void Driver::fork_child(std::size_t team) {
  const ForkedChild& child = children_.emplace_back(context_, teams_[team], history_.seed % 2 == 0);
  EXPECT_TRUE(child.was_refused()) << "in a forked child of rank " << rank_ << " of " << faults::text_of(history_);
}

void Driver::abort(torii_team* team) const {
  EXPECT_EQ(torii_team_abort(team, "a history says so"), TORII_OK) << torii_last_error();
}

void Driver::split(const Step& step) {
  const int color = static_cast<int>(step.colors >> rank_ & 1);
  const torii_status status = torii_team_split(teams_[0], color, rank_, nullptr, &teams_[step.part]);
  if (status != TORII_OK) judge_failure(0, status, "split into part " + std::to_string(step.part));
  if (step.deviations[static_cast<std::size_t>(rank_)] == Deviation::aborts) abort(teams_[0]);
}

Vector Driver::memory(std::size_t bytes, bool in_arena) {
  if (bytes == 0) return {};
  const std::size_t guarded = bytes + Vector::kGuardBytes;
  if (!in_arena) return Vector::of(private_memory_.emplace_back(guarded).data(), bytes);
  void* address = nullptr;
  EXPECT_EQ(torii_allocate(context_, guarded, &address), TORII_OK) << torii_last_error();
  arena_memory_.push_back(address);
  return Vector::of(static_cast<std::byte*>(address), bytes);
}

Driver::Call& Driver::make(std::size_t index, const DrawnCall& spec, bool in_arena) {
  const Step& step = history_.steps[index];
  Call& call = calls_.emplace_back();
  call.step = index;
  call.team = step.team;
  call.spec = spec;
  call.place = {torii_team_ranks(teams_[step.team]), torii_team_rank(teams_[step.team])};
  call.vectors = CallVectors::make(spec, call.place, [&](std::size_t bytes) { return memory(bytes, in_arena); });
  call.vectors.fill();
  return call;
}

void Driver::run(std::size_t index) {
  const Step& step = history_.steps[index];
  torii_team* const team = teams_[step.team];
  const auto rank = static_cast<std::size_t>(rank_);
  const Deviation deviation = step.deviations[rank];
  if (deviation == Deviation::refused) return refuse(index);
  if (deviation == Deviation::aborts) abort(team);
  Call& call = make(index, deviation == Deviation::differs ? step.other : step.call,
                    step.memory[rank] == faults::Memory::allocated);
  call.is_checked = deviation != Deviation::differs;
  std::byte* const input = call.vectors.input();
  std::byte* const result = call.vectors.result();
  if (call.spec.kind != faults::CallKind::collective) {
    const auto make = call.spec.kind == faults::CallKind::sends ? faults::send_and_receive : faults::redistribute;
    return judge(call, make(team, call.spec, call.place, input, result));
  }
  Words words;
  faults::write_words(words, call.spec, call.place, input, result);
  // By the seed of the data and the rank, which chooses for itself.
  const std::uint64_t drawn = faults::mixed(call.spec.seed + 5 + rank);
  if (GappedCall::suits(words.call) && drawn % 2 == 0) {
    call.gaps = std::make_unique<GappedCall>(words.call, call.place.ranks, drawn / 2);
    call.gaps->fill();
  }
  const torii_call& made = call.gaps != nullptr ? call.gaps->call() : words.call;
  if (step.manner == Manner::blocking) return judge(call, torii_run(team, &made));
  if (step.manner == Manner::persistent) return run_persistent(call, made);
  const torii_status started = torii_start(team, &made, &call.request);
  call.due = index + 1 + call.spec.seed % 3;
  if (started != TORII_OK) judge(call, started);
}

void Driver::run_persistent(Call& call, const torii_call& made) {
  torii_request* request = nullptr;
  torii_status status = torii_prepare(teams_[call.team], &made, &request);
  for (int round = 0; round < 2 && status == TORII_OK; ++round) {
    call.vectors.unseal();
    call.vectors.fill();
    if (call.gaps != nullptr) call.gaps->fill();
    status = torii_restart(request);
    if (status == TORII_OK) status = torii_wait(&request);
    if (status == TORII_OK) judge(call, status);
  }
  if (status != TORII_OK) judge(call, status);
  EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
}

void Driver::refuse(std::size_t index) {
  const Step& step = history_.steps[index];
  const int first = static_cast<int>((step.call.seed + static_cast<std::uint64_t>(rank_)) % faults::kRefusals);
  for (int way = first; way < first + step.refused_calls(); ++way) {
    EXPECT_NE(faults::make_refused_call(teams_[step.team], way), TORII_OK)
        << "way " << way << ", " << where(index, step.team);
  }
}

void Driver::wait_until(std::size_t step) {
  for (Call& call : calls_) {
    if (call.request == nullptr || call.due > step) continue;
    torii_request* request = call.request;
    call.request = nullptr;
    judge(call, torii_wait(&request));
  }
}

void Driver::judge(Call& call, torii_status status) {
  if (status != TORII_OK) return judge_failure(call.team, status, where(call.step, call.team));
  if (call.gaps != nullptr) call.gaps->collect();
  if (call.is_checked) {
    EXPECT_EQ(call.vectors.difference(), "")
        << "wrong result although the call returned ok: " << where(call.step, call.team);
  }
  call.vectors.spoil();
  call.vectors.seal();
}

void Driver::judge_failure(std::size_t team, torii_status status, const std::string& where) {
  const std::string cause = std::string(torii_status_name(status)) + ": " + torii_last_error();
  EXPECT_TRUE(history_.may_fail(team, rank_)) << cause << "\n" << where;
  if (status == TORII_POISONED) return;
  EXPECT_TRUE(status == TORII_MISMATCH || status == TORII_ABORTED) << cause << "\n" << where;
  const std::lock_guard lock(job_.mutex);
  const auto first = job_.causes.try_emplace({team, history_.members(team, rank_).front()}, cause);
  if (job_.causes_agree) {
    EXPECT_EQ(first.first->second, cause) << where;
  }
}

/// A team on which ranks deviated has failed for all by now, and its survivors go on.
void Driver::end(std::size_t team) {
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

/// By half of the seeds one rank's first call makes no sense, or leaves out a rank for which the others wait. Then who
/// was there learns so, and asks again; who comes later may find all others in their second call.
torii_status Driver::ask_for_survivors(std::size_t team, bool is_first, torii_team*& survivors) {
  const std::uint64_t drawn = faults::mixed(history_.seed + 7 + team);
  const int ranks = torii_team_ranks(teams_[team]);
  const int odd = static_cast<int>(drawn / 4 % static_cast<std::uint64_t>(ranks));
  const int next = (odd + 1) % ranks;
  const bool is_odd = is_first && drawn % 2 == 0 && torii_team_rank(teams_[team]) == odd;
  const bool leaves_out = is_odd && ranks > 2 && drawn / 2 % 2 == 0;
  torii_team_options options = {};
  options.size = sizeof(options);
  options.without = &next;
  options.without_count = leaves_out ? 1 : 0;
  const torii_status status =
      torii_team_survivors(teams_[team], &options, is_odd && !leaves_out ? nullptr : &survivors);
  const bool may_fail = is_first && drawn % 2 == 0 && survivors == nullptr;
  EXPECT_TRUE(status == TORII_OK || (may_fail && (status == TORII_INVALID_ARGUMENT || status == TORII_MISMATCH)))
      << torii_status_name(status) << ": " << torii_last_error() << "\n"
      << where(history_.steps.size(), team);
  return status;
}

void Driver::make_survivors(std::size_t team) {
  torii_team* survivors = nullptr;
  if (ask_for_survivors(team, true, survivors) != TORII_OK) {
    ASSERT_EQ(ask_for_survivors(team, false, survivors), TORII_OK) << torii_last_error();
  }
  const int ranks = torii_team_ranks(survivors);
  EXPECT_EQ(ranks, torii_team_ranks(teams_[team]));
  const std::int64_t one = 1;
  std::int64_t sum = 0;
  EXPECT_EQ(torii_allreduce(survivors, &one, &sum, 1, TORII_I64, TORII_SUM), TORII_OK) << torii_last_error();
  EXPECT_EQ(sum, ranks);
  EXPECT_EQ(torii_team_destroy(survivors), TORII_OK) << torii_last_error();
}

}  // namespace torii::tests
