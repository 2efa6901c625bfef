// SPDX-License-Identifier: Apache-2.0
// Which lanes of a call the window schedule looks at: all of them, or in a simulation only those for which something
// may have changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/execution/installed_plan.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// All lanes, each time.
struct AllLanes {
  static void begin(const InstalledPlan&) noexcept {}
  static void add(std::size_t, const Lane&) noexcept {}
  static constexpr bool is_at_rest() noexcept { return false; }
  static constexpr bool is_looked_at(std::size_t) noexcept { return true; }
  static void lacks_credit() noexcept {}
  static void has_not_moved(std::size_t, bool) noexcept {}
  static void changed_within() noexcept {}
  static constexpr bool waits_for_credit() noexcept { return false; }
};

/// Where the words of a rank's streams with other ranks are in its arena: from the beginning on the entries of the
/// in-streams, one after the other, and further on the credits of the out-streams.
struct StreamWords {
  std::uint64_t in_bytes = 1;  ///< from one stream's entries to the next one's
  std::uint64_t credits_begin = 0;
  std::uint64_t credit_bytes = 1;
};

/// The lanes that may be able to move because a word has changed.
class LaneWatch {
 public:
  /// Before the first call: where words change.
  void watch(const StreamWords& words) noexcept { words_ = words; }
  /// A call begins; add() follows for each lane.
  void begin(const InstalledPlan& plan);
  void add(std::size_t number, const Lane& lane) noexcept;
  /// Whether no lane can move before something changes.
  bool is_at_rest() const noexcept { return lanes_to_look_at_ == 0; }
  bool is_looked_at(std::size_t lane) const noexcept {
    return (lanes_to_look_at_ >> std::min(lane, kLaneBits) & 1) != 0;
  }
  /// The step that was looked at last waits for a credit alone.
  void lacks_credit() noexcept { lacks_credit_ = true; }
  /// No step of the lane can run, among those of all its segments in flight or of some.
  void has_not_moved(std::size_t lane, bool all_segments) noexcept;
  /// A word at `offset` of this rank's arena has changed: lanes that wait for that word are looked at again.
  void changed(std::uint64_t offset) noexcept;
  /// A ring from the rank to itself has changed. Its lanes may be any: all are looked at again.
  void changed_within() noexcept { lanes_to_look_at_ = kAllLanes; }
  /// Whether a lane waits for nothing but a credit.
  bool waits_for_credit() const noexcept { return lanes_without_credit_ != 0; }

 private:
  // Bits of lanes, the last one of all lanes from there on.
  static constexpr std::size_t kLaneBits = 63;
  static constexpr std::uint64_t kAllLanes = ~std::uint64_t{0};

  /// All lanes where there is no such stream.
  static std::uint64_t readers_of(std::uint64_t stream, const std::vector<std::uint64_t>& lanes) noexcept {
    return stream < lanes.size() ? lanes[stream] : kAllLanes;
  }

  // Close to each other, because changed() finds none of a rank's memory in a cache.
  std::uint64_t lanes_to_look_at_ = kAllLanes;
  std::uint64_t lanes_without_credit_ = 0;
  bool lacks_credit_ = false;
  StreamWords words_;
  std::vector<std::uint64_t> readers_of_in_;   ///< by in-stream, lanes that take from it
  std::vector<std::uint64_t> readers_of_out_;  ///< by out-stream, lanes that put into it
};

}  // namespace torii
