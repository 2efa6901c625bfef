// SPDX-License-Identifier: Apache-2.0
// A choice between two ways of doing one thing, found out by timing it now and then.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace torii {

/// A turn that is not timed costs a counter and a comparison. Starts with way 0.
class TimedChoice {
 public:
  /// `handicap` is added to every cost of way 1: the cost for other ranks. The first `cold_turns` use way 0 and
  /// are not timed: the kernel gives out memory on first touch, which costs thirty times what the turn does.
  explicit TimedChoice(float handicap = 0, std::uint32_t cold_turns = kColdTurns) noexcept
      : handicap_(handicap), cold_turns_(cold_turns) {}

  /// The way of the next turn, and whether to time it and call record() afterwards.
  struct Turn {
    int way;
    bool timed;
    bool cold = false;
  };
  Turn next() noexcept {
    if (forced_) return {best_, false};
    if (cold_turns_ > 0) {
      --cold_turns_;
      return {0, false, true};
    }
    const std::uint32_t turn = turn_++;
    if (turn < 2 * kSamples) return {turn < kSamples ? 0 : 1, true};
    if (turn % kOtherEvery == 0) return {1 - best_, true};
    return {best_, turn % kBestEvery == 0};
  }

  void record(int way, float cost) noexcept {
    Samples& samples = samples_[static_cast<std::size_t>(way)];
    samples.cost[samples.count++ % kSamples] = cost;
    if (samples_[0].count < kSamples || samples_[1].count < kSamples) return;
    const float first = samples_[0].least();
    const float second = samples_[1].least() + handicap_;
    // A new way has to be clearly better, lest noise sends it to and fro.
    if (best_ == 0 && second < 0.9F * first) best_ = 1;
    if (best_ == 1 && first < 0.9F * second) best_ = 0;
  }

  int best() const noexcept { return best_; }
  /// For tests: always this way, never timed.
  void force(int way) noexcept {
    best_ = way;
    forced_ = true;
  }

 private:
  /// The least of so many samples counts, so that a rank that lost its CPU in one of them is not misled.
  static constexpr std::uint32_t kSamples = 3;
  static constexpr std::uint32_t kBestEvery = 32;
  static constexpr std::uint32_t kOtherEvery = 512;
  static constexpr std::uint32_t kColdTurns = 8;

  struct Samples {
    std::array<float, kSamples> cost{};
    std::uint32_t count = 0;
    float least() const noexcept { return *std::min_element(cost.begin(), cost.end()); }
  };

  std::array<Samples, 2> samples_{};
  std::uint32_t turn_ = 0;
  int best_ = 0;
  bool forced_ = false;
  float handicap_;
  std::uint32_t cold_turns_;
};

}  // namespace torii
