// SPDX-License-Identifier: Apache-2.0
// Whether messages are stored into peers' memory through the caches or past them (non-temporal stores): the choice is
// made by timing, for each message.
//
// A store through the caches first has to take the line from the peer that read its last content. If both ranks run on
// one cache, that costs a few cycles a line; across caches it costs 50 and more. A virtual machine's CPUs move between
// the two in the middle of a job. A store past the caches takes nothing from anybody, but the reader then finds the
// line in memory. The choice is the sender's own, for each message: it changes neither the plan nor a bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/timed_choice.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {

/// The choice for messages of like size and work to one kind of target.
class StoreChoice {
 public:
  enum class Way : std::uint8_t { cached = 0, non_temporal = 1 };
  /// Messages below this are stored through the caches: a line that arrives from memory costs its reader more than the
  /// sender can save.
  static constexpr auto kBytesMin = tuned<std::size_t>("stores.timed_bytes_min");

  /// `receives`: streams come in to this rank, too, in the same plan.
  /// `cold_messages`: so many at first are stored through the caches and not timed.
  explicit StoreChoice(bool receives = false, std::uint32_t cold_messages = kColdMessages) noexcept
      : choice_(receives ? kExchangerLineNs : kSenderLineNs, cold_messages) {}

  /// How to store the next message, and whether to time it and call record() afterwards.
  struct Turn {
    Way way;
    bool timed;
  };
  /// `is_first_touch`: no message has been in that slot before. The kernel then gives out memory, which takes thirty
  /// times as long as the message, so its time says nothing.
  Turn next(bool is_first_touch) noexcept {
    if (is_first_touch) return {best(), false};
    const TimedChoice::Turn turn = choice_.next();
    return {static_cast<Way>(turn.way), turn.timed};
  }
  /// Whether both ways have been timed.
  bool is_known() const noexcept { return choice_.is_known(); }

  /// The time of a message of `bytes` that was stored this way; everything that the step did counts alike in both.
  void record(Way way, std::int64_t time_ns, std::size_t bytes) noexcept {
    choice_.record(static_cast<int>(way),
                   static_cast<float>(static_cast<double>(time_ns) * 64.0 / static_cast<double>(bytes)));
  }

  Way best() const noexcept { return static_cast<Way>(choice_.best()); }
  /// For tests: always this way, never timed.
  void force(Way way) noexcept { choice_.force(static_cast<int>(way)); }

 private:
  /// The price of a line that its reader finds in memory and not in a cache. In a row of messages the reader of one
  /// waits while the sender stores the next, so only a part of the wait counts. All of the wait counts if ranks send
  /// and receive in turn. slot_copy_perf, with and without --non-temporal, shows the sum of both sides' costs.
  static constexpr auto kSenderLineNs = tuned<float>("stores.sender_line");
  static constexpr auto kExchangerLineNs = tuned<float>("stores.exchanger_line");

  /// The first messages to slots are told apart (`is_first_touch`).
  static constexpr auto kColdMessages = tuned<std::uint32_t>("stores.cold_messages");

  TimedChoice choice_;
};

/// The choices of flows that do like work. A slot is read soon and filled again; a result in a peer's memory is
/// neither. The way that is quicker for one is up to three times slower for the other, and calls of one plan may do
/// both.
struct StoreChoices {
  /// Nobody knows which message is the first in its place in a peer's vector.
  static constexpr auto kColdInPlace = tuned<std::uint32_t>("stores.cold_messages_in_place");

  explicit StoreChoices(bool receives) noexcept
      : slots(StoreChoice(receives)), in_place(StoreChoice(receives, kColdInPlace)) {}

  ChoicesBySize<StoreChoice, StoreChoice::kBytesMin> slots;     ///< by the bytes that the step stores
  ChoicesBySize<StoreChoice, StoreChoice::kBytesMin> in_place;  ///< by the bytes of the peer's vector, or its block
  /// For a vector that functions of the caller access, by the bytes of the step. Way 0 gives them hot memory, and
  /// kernels copy between that memory and the slots; way 1 gives them the slots. If the lines of a slot are far away, a
  /// function would wait for each of them; if they are near, the copy is wasted.
  ChoicesBySize<TimedChoice, 64> functions;

  void force(StoreChoice::Way way) noexcept {
    slots.force(way);
    in_place.force(way);
  }
};

}  // namespace torii
