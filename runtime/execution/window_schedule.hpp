// SPDX-License-Identifier: Apache-2.0
// Runs plans of lanes: of the steps that can run, the one of the lowest segment, ties to the earlier lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/execution/buffer_offers.hpp"
#include "runtime/execution/data_mover.hpp"
#include "runtime/execution/host.hpp"
#include "runtime/execution/running_call.hpp"

namespace torii {

template <class Host>
class WindowSchedule {
 public:
  WindowSchedule(Host host, RunningCall& call, BufferOffers& offers, DataMover& mover)
      : host_(host), call_(call), offers_(offers), mover_(mover) {}

  void begin() noexcept;
  Progress advance() noexcept;
  Stall stall() const;
  bool awaits(int peer) const noexcept;

  typename Host::Watch& watch() noexcept { return watch_; }
  const typename Host::Watch& watch() const noexcept { return watch_; }
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
  class Operation;

  void place_rings() noexcept;
  bool arrived(const StreamEnd& end, const Step& step) noexcept;
  bool finds_payload(const InstalledIn& in, std::uint64_t message, const Step& step) noexcept;
  bool may_send(const StreamEnd& end, const Step& step) noexcept;
  bool find_ready(LaneState& lane, std::int64_t below, Step& step, Instance*& instance) noexcept;
  void send(const StreamEnd& end, const Step& step) noexcept;
  void release(const StreamEnd& end, const Step& step) noexcept;
  void finish_lane_segments(LaneState& lane) noexcept;
  bool operands_are_free() const noexcept;
  bool is_read(const InstalledOut& out) const noexcept;
  Step step_at(const LaneState& lane, const Instance& instance, std::int64_t segment) const noexcept;
  Instance& instance_at(const LaneState& lane, std::int64_t segment) noexcept {
    return instances_[lane.first_instance + static_cast<std::size_t>(segment) % lane.window];
  }
  /// Whether the step fills, or empties, the slot: it has the last message of the bundle.
  static bool ends_bundle(const Stream& stream, const StreamEnd& end, const Step& step) noexcept {
    return stream.ends_bundle(end.position + step.visit);
  }

  [[no_unique_address]] Host host_;
  RunningCall& call_;
  BufferOffers& offers_;
  DataMover& mover_;
  std::size_t lanes_done_ = 0;
  std::vector<LaneState> lanes_;
  std::vector<Instance> instances_;
  [[no_unique_address]] typename Host::Watch watch_;
};

extern template class WindowSchedule<RealHost>;
extern template class WindowSchedule<ModelledHost>;

}  // namespace torii
