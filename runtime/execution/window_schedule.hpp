// SPDX-License-Identifier: Apache-2.0
// Runs plans of lanes: of the steps that can run, the one of the lowest segment, ties to the earlier lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/execution/buffer_offers.hpp"
#include "runtime/execution/data_mover.hpp"
#include "runtime/execution/running_call.hpp"

namespace torii {

class WindowSchedule {
 public:
  WindowSchedule(RunningCall& call, BufferOffers& offers, DataMover& mover)
      : call_(call), offers_(offers), mover_(mover) {}

  void begin() noexcept;
  Progress advance() noexcept;
  Stall stall() const;

  // With a StepModel (window_schedule_model.cpp) advance() looks only at lanes for which something may have changed.
  /// The simulation calls this after writing a word at `offset` of this rank's arena: lanes that wait for that word are
  /// looked at again.
  void changed(std::uint64_t offset) noexcept;
  /// Asks for the memory that changed() will touch shortly.
  void fetch_ahead() const noexcept {
    __builtin_prefetch(&lanes_to_look_at_);
    __builtin_prefetch(&readers_of_out_);
  }
  /// Whether a lane waits for nothing but a credit.
  bool waits_for_credit() const noexcept { return lanes_without_credit_ != 0; }
  /// Whether all steps of the call have run, so that it waits for the transport alone.
  bool has_run_all() const noexcept { return call_.plan == nullptr || lanes_done_ == lanes_.size(); }

 private:
  /// A segment of a lane in flight: the next step is (flow, visit).
  struct Instance {
    std::uint32_t flow = 0;
    std::uint32_t visit = 0;
    std::uint32_t sources_seen = 0;  ///< the first sources of the step, known to have arrived
    bool done = false;
  };
  struct LaneState {
    const Lane* lane = nullptr;
    std::int64_t lowest = 0;  ///< the lowest segment not done
    std::size_t first_instance = 0;
    std::size_t first_flow = 0;  ///< index into InstalledPlan::stores
    std::size_t window = 1;
  };
  void place_rings() noexcept;
  bool arrived(const StreamEnd& end, const Step& step) noexcept;
  bool may_send(const StreamEnd& end, const Step& step) noexcept;
  bool is_ready(Instance& instance, const Step& step) noexcept;
  bool find_ready(LaneState& lane, std::int64_t below, Step& step, Instance*& instance) noexcept;
  void run(const Step& step) noexcept;
  void send(const StreamEnd& end, const Step& step) noexcept;
  void release(const StreamEnd& end, const Step& step) noexcept;
  void finish_lane_segments(LaneState& lane) noexcept;
  bool lent_operands_are_free() const noexcept;
  Step step_at(const LaneState& lane, const Instance& instance, std::int64_t segment) const noexcept;
  Instance& instance_at(const LaneState& lane, std::int64_t segment) noexcept {
    return instances_[lane.first_instance + static_cast<std::size_t>(segment) % lane.window];
  }
  /// Whether the step fills, or empties, the slot: it has the last message of the bundle.
  static bool ends_bundle(const Stream& stream, const StreamEnd& end, const Step& step) noexcept {
    return stream.ends_bundle(end.position + step.visit);
  }

  // window_schedule_model.cpp
  bool is_modelled(const Step& step) noexcept;
  void find_readers() noexcept;
  bool is_looked_at(std::size_t lane) const noexcept {
    return (lanes_to_look_at_ >> std::min(lane, kLaneBits) & 1) != 0;
  }
  void has_not_moved(std::size_t lane, std::int64_t below) noexcept;
  /// Words of one kind that lie in staging stream after stream, and by stream the lanes that wait for them. Beside the
  /// bits below, for changed() finds nothing of a rank in a cache.
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

  RunningCall& call_;
  BufferOffers& offers_;
  DataMover& mover_;
  std::size_t lanes_done_ = 0;
  std::vector<LaneState> lanes_;
  std::vector<Instance> instances_;
  // Bits of lanes, the last one of all lanes from there on.
  static constexpr std::size_t kLaneBits = 63;
  std::uint64_t lanes_to_look_at_ = ~std::uint64_t{0};
  std::uint64_t lanes_without_credit_ = 0;
  bool lacks_credit_ = false;  ///< the step that was looked at last waits for a credit alone
  Readers readers_of_in_;      ///< lanes that take from a stream
  Readers readers_of_out_;     ///< lanes that put into one
};

}  // namespace torii
