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
  static void changed(std::uint64_t) noexcept {}
  static constexpr bool waits_for_credit() noexcept { return false; }
};

/// The lanes that may be able to move because a word has changed.
class LaneWatch {
 public:
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
  /// Whether a lane waits for nothing but a credit.
  bool waits_for_credit() const noexcept { return lanes_without_credit_ != 0; }

 private:
  /// Words of one kind, in staging one stream after another, and for each stream the lanes that wait for them. Close to
  /// the bits below, because changed() finds none of a rank's memory in a cache.
  struct Readers {
    std::uint64_t begin = 0;         ///< offset of the first stream's
    std::uint64_t stream_bytes = 1;  ///< from one stream's to the next one's
    std::vector<std::uint64_t> lanes;

    /// All lanes where the offset is none of these words'.
    std::uint64_t of(std::uint64_t offset) const noexcept {
      const std::uint64_t stream = (offset - begin) / stream_bytes;
      return offset >= begin && stream < lanes.size() ? lanes[stream] : ~std::uint64_t{0};
    }
  };
  // Bits of lanes, the last one of all lanes from there on.
  static constexpr std::size_t kLaneBits = 63;

  std::uint64_t lanes_to_look_at_ = ~std::uint64_t{0};
  std::uint64_t lanes_without_credit_ = 0;
  bool lacks_credit_ = false;
  Readers readers_of_in_;   ///< lanes that take from a stream
  Readers readers_of_out_;  ///< lanes that put into one
};

}  // namespace torii
