// SPDX-License-Identifier: Apache-2.0
// Whether a flow's stores into peers' memory go through the caches or past them: found out by timing, message by
// message.
//
// A store through the caches first has to take the line from the peer that read its last content. Where both run on one
// cache that costs a few cycles a line, across caches 50 and more, and a virtual machine's CPUs move between the two in
// the middle of a job. A store past the caches takes nothing from anybody, but the reader then finds the line in
// memory. The choice is the sender's own, for each message: it changes neither the plan nor a bit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace torii {

/// One flow's choice. Cheap where it stands still: a counter and a comparison per message.
class StoreChoice {
 public:
  enum class Way : std::uint8_t { cached = 0, streaming = 1 };
  /// Messages below this are stored through the caches: a line that arrives from memory costs its reader more than the
  /// sender can save.
  static constexpr std::size_t kBytesMin = 4096;

  /// What to do with the next message: the way to store it, and whether to time it and call record() afterwards.
  struct Turn {
    Way way;
    bool timed;
  };
  Turn next() noexcept {
    if (forced_) return {best_, false};
    const std::uint32_t turn = turn_++;
    if (turn < 2 * kSamples) return {turn < kSamples ? Way::cached : Way::streaming, true};
    if (turn % kOtherEvery == 0) return {best_ == Way::cached ? Way::streaming : Way::cached, true};
    return {best_, turn % kBestEvery == 0};
  }

  /// The time of a message of `bytes` that was stored this way; everything that the step did counts alike in both.
  void record(Way way, std::int64_t time_ns, std::size_t bytes) noexcept {
    Samples& samples = samples_[static_cast<std::size_t>(way)];
    const double line_ns = static_cast<double>(time_ns) * 64.0 / static_cast<double>(bytes);
    samples.line_ns[samples.count++ % kSamples] = static_cast<float>(line_ns);
    if (samples_[0].count < kSamples || samples_[1].count < kSamples) return;
    const float cached_ns = samples_[0].least();
    const float streaming_ns = samples_[1].least() + kReaderLineNs;
    // A new way has to be clearly better, lest noise sends it to and fro.
    if (best_ == Way::cached && streaming_ns < 0.9F * cached_ns) best_ = Way::streaming;
    if (best_ == Way::streaming && cached_ns < 0.9F * streaming_ns) best_ = Way::cached;
  }

  Way best() const noexcept { return best_; }
  /// For tests: always this way, never timed.
  void force(Way way) noexcept {
    best_ = way;
    forced_ = true;
  }

 private:
  /// The least of so many samples counts, so that a rank that lost its CPU in one of them is not misled.
  static constexpr std::uint32_t kSamples = 3;
  static constexpr std::uint32_t kBestEvery = 32;
  static constexpr std::uint32_t kOtherEvery = 128;
  /// What a line costs its reader more when it comes from memory and not from a cache: about 8 cycles at 2.6 GHz on the
  /// machine of the first results. slot_copy_perf, with and without --streaming, shows the sum of both sides' costs.
  static constexpr float kReaderLineNs = 3.0F;

  struct Samples {
    std::array<float, kSamples> line_ns{};
    std::uint32_t count = 0;
    float least() const noexcept { return *std::min_element(line_ns.begin(), line_ns.end()); }
  };

  std::array<Samples, 2> samples_{};
  std::uint32_t turn_ = 0;
  Way best_ = Way::cached;
  bool forced_ = false;
};

}  // namespace torii
