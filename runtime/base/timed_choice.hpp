// SPDX-License-Identifier: Apache-2.0
// A choice between two ways of doing one thing, found out by timing it now and then.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/base/tuned_constants.hpp"

namespace torii {

/// A turn that is not timed costs a counter and a few comparisons. Starts with way 0.
class TimedChoice {
 public:
  /// Turns that may touch memory that the kernel has yet to give out, which costs thirty times what the turn does.
  static constexpr auto kColdTurns = tuned<std::uint32_t>("learning.cold_turns");
  static_assert(kColdTurns % 2 == 0);

  /// `handicap` is added to every cost of way 1: the cost for other ranks. The first `cold_turns` use way 0 and are not
  /// timed. Their number is even, so that trials have as many turns of one way as of the other.
  explicit TimedChoice(float handicap = 0, std::uint32_t cold_turns = kColdTurns) noexcept
      : handicap_(handicap), cold_turns_(cold_turns) {}

  /// The way of a turn, and whether to time it and call record() afterwards.
  struct Turn {
    int way = 0;
    bool timed = false;
  };
  Turn next() noexcept {
    const std::uint32_t turn = turn_++;
    if (forced_) return {best_, false};
    if (is_trial(turn, kTrialEvery)) return trial(turn);
    return {best_, turn > cold_turns_ && turn % kBestEvery == 0};
  }
  /// For several choosers whose turns have the same numbers, and whose costs depend on the ways of all. In a trial all
  /// use the same way, which depends on the number alone. Other turns are not timed. If one chooser's way moved costs
  /// to the others, each would find that way cheap as long as the others use the other one.
  Turn common(std::uint32_t turn) const noexcept {
    if (forced_ || !is_trial(turn, kCommonTrialEvery)) return {best_, false};
    return trial(turn);
  }

  void record(int way, float cost) noexcept {
    Samples& samples = samples_[static_cast<std::size_t>(way)];
    samples.cost[samples.count++ % kSamples] = cost;
    if (!is_known()) return;
    const float first = samples_[0].least();
    const float second = samples_[1].least() + handicap_;
    if (best_ == 0 && second < kClearlyBetter * first) best_ = 1;
    if (best_ == 1 && first < kClearlyBetter * second) best_ = 0;
  }

  int best() const noexcept { return best_; }
  /// Whether both ways have been timed.
  bool is_known() const noexcept { return forced_ || (samples_[0].count != 0 && samples_[1].count != 0); }
  /// For tests: always this way, never timed.
  void force(int way) noexcept {
    best_ = way;
    forced_ = true;
  }

 private:
  /// The least of so many samples counts, so that a rank that lost its CPU in one of them is not misled.
  static constexpr auto kSamples = tuned<std::uint32_t>("learning.samples");
  static constexpr auto kBestEvery = tuned<std::uint32_t>("learning.best_every");
  static constexpr auto kTrialEvery = tuned<std::uint32_t>("learning.trial_every");
  static constexpr auto kCommonTrialEvery = tuned<std::uint32_t>("learning.common_trial_every");
  /// So many turns later a second long trial corrects the first. Turns of one number may be of choices for several
  /// sizes, and of memory that some of them touched first.
  static constexpr auto kSecondTrial = tuned<std::uint32_t>("learning.second_trial");
  /// A new way has to be clearly better, lest noise sends it to and fro.
  static constexpr auto kClearlyBetter = tuned<float>("learning.clearly_better");

  /// In each trial as many turns try one way as the other. Their order, by the parity of the number's bits, has no
  /// short period, so calls that alternate try both ways each.
  static constexpr Turn trial(std::uint32_t turn) noexcept { return {std::popcount(turn) % 2, true}; }
  bool is_trial(std::uint32_t turn, std::uint32_t every) const noexcept {
    return turn - cold_turns_ < 2 * kSamples || turn - cold_turns_ - kSecondTrial < 2 * kSamples ||
           (turn >= every && turn % every < 2);
  }

  struct Samples {
    static constexpr float kNone = std::numeric_limits<float>::infinity();
    std::array<float, kSamples> cost;
    std::uint32_t count = 0;
    Samples() noexcept { cost.fill(kNone); }
    float least() const noexcept { return *std::min_element(cost.begin(), cost.end()); }
  };

  std::array<Samples, 2> samples_{};
  std::uint32_t turn_ = 0;
  int best_ = 0;
  bool forced_ = false;
  float handicap_;
  std::uint32_t cold_turns_;
};

/// One choice for each power of two of a number of bytes.
template <class Choice, std::size_t kBytesLeast>
class ChoicesBySize {
 public:
  explicit ChoicesBySize(const Choice& like = Choice()) noexcept { choices_.fill(like); }

  /// Larger numbers than those of the last choice share it, as smaller ones than `kBytesLeast` do the first.
  static std::size_t index(std::size_t bytes) noexcept {
    return std::min(static_cast<std::size_t>(std::bit_width(bytes / kBytesLeast)), kSizes - 1);
  }
  Choice& of(std::size_t bytes) noexcept { return choices_[index(bytes)]; }
  /// For tests: all of them.
  template <class Way>
  void force(Way way) noexcept {
    for (Choice& choice : choices_) choice.force(way);
  }

  static constexpr std::size_t kSizes = 16;

 private:
  std::array<Choice, kSizes> choices_;
};

}  // namespace torii
