// SPDX-License-Identifier: Apache-2.0
// Puts the words of a split, and waits for them.
#include "api/agreement/split_decision.hpp"

#include <algorithm>

#include "api/agreement/patience.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {
namespace {

/// How long a member that lives may not look, as a member does that is stopped.
constexpr std::int64_t kPatienceNs = 2'000'000'000;
/// Calls of Transport::progress() in which each engine is looked at, also those that have been quiet.
constexpr int kRoundsPerEngine = 4;

}  // namespace

SplitDecision::SplitDecision(Transport& transport, AgreementMessages& messages, int rank, int ranks,
                             std::int64_t timeout_ns) noexcept
    : transport_(transport),
      messages_(messages),
      rank_(rank),
      ranks_(ranks),
      patience_ns_(std::min(kPatienceNs, timeout_ns / 4)),
      pass_on_ns_(pass_on_ns(timeout_ns)) {}

/// True when a member knows that the split under way is made.
bool SplitDecision::is_made() const noexcept {
  for (int member = 0; member < ranks_; ++member) {
    if (messages_.splits(member).made > made_) return true;
  }
  return false;
}

/// True when a member has waited in vain and ended its wait.
bool SplitDecision::is_given_up() const noexcept {
  for (int member = 0; member < ranks_; ++member) {
    if (messages_.splits(member).gives_up) return true;
  }
  return false;
}

bool SplitDecision::has_answered(int member) const noexcept {
  const AgreementMessages::Splits told = messages_.splits(member);
  return told.has_heard || told.made > made_;
}

bool SplitDecision::pause(Waiting& waiting) const noexcept {
  (void)transport_.progress();
  return waiting.pause(stays_idle, nullptr);
}

/// False when a member has died, or has not looked for long, without its answer.
bool SplitDecision::await_answers(Waiting& waiting, const std::function<bool(int member)>& lives) const noexcept {
  bool have_all_answered = true;
  for (int member = 0; member < ranks_; ++member) {
    while (member != rank_ && !has_answered(member) && !is_made()) {
      if (!pause(waiting)) continue;
      if (lives(member) && waiting.quiet_ns() < patience_ns_) continue;
      (void)transport_.progress();  // what the member has put before it died
      have_all_answered = have_all_answered && has_answered(member);
      break;
    }
  }
  return have_all_answered;
}

/// The member that did not answer may have told another one, which passes it on.
void SplitDecision::await_passed_on(Waiting& waiting) const noexcept {
  const std::int64_t begun_ns = waiting.quiet_ns();
  while (!is_made() && waiting.quiet_ns() - begun_ns < pass_on_ns_) (void)pause(waiting);
}

std::optional<bool> SplitDecision::decide(bool agreed, Waiting waiting,
                                          const std::function<bool(int member)>& lives) noexcept {
  bool is_sure = true;
  bool made = agreed;
  if (agreed && !messages_.splits(rank_).has_heard) {
    // A rank that was stopped may have the messages long after the others have given it up. Their words have come then,
    // but by other engines than the messages, or behind them.
    for (int round = 0; round < kRoundsPerEngine * transport_.capabilities().engines; ++round)
      (void)transport_.progress();
    if (is_given_up()) made = is_made();
  } else {
    is_sure = await_answers(waiting, lives);
    if (!is_sure) await_passed_on(waiting);
    made = is_made();
  }
  if (made) ++made_;
  messages_.put_splits(made_, !made);
  if (!made && !is_sure && !agreed) return {};
  return made;
}

}  // namespace torii
