// SPDX-License-Identifier: Apache-2.0
// The executor: the one thing that runs plans. Nothing else posts puts or calls kernels for a collective.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/execution/buffer_offers.hpp"
#include "runtime/execution/data_mover.hpp"
#include "runtime/execution/host.hpp"
#include "runtime/execution/linear_schedule.hpp"
#include "runtime/execution/pairwise_schedule.hpp"
#include "runtime/execution/running_call.hpp"
#include "runtime/execution/window_schedule.hpp"

namespace torii {

/// Runs one call at a time, by the schedule that fits its plan and shape. Not thread-safe; other threads may read the
/// counters.
template <class Host>
class BasicExecution {
 public:
  using Progress = torii::Progress;

  /// Does not keep `transport` alive.
  explicit BasicExecution(Transport& transport, Host host = {})
      : call_(transport), linear_(host), lanes_(host, call_, offers_, mover_), pairwise_(host, call_, offers_) {}
  BasicExecution(const BasicExecution&) = delete;
  BasicExecution& operator=(const BasicExecution&) = delete;

  /// `program` is the plan's linear program for this shape's layout, or nullptr. All arguments but `buffers` must live
  /// until the call is done.
  void begin(InstalledPlan& plan, const CallShape& shape, const CallBuffers& buffers,
             const LinearProgram* program = nullptr) noexcept;
  /// begin() of a linear program, which needs nothing of the buffers but the addresses of byte 0. For calls without a
  /// user function.
  void begin_linear(InstalledPlan& plan, const CallShape& shape, const LinearProgram& program, std::uintptr_t input,
                    std::uintptr_t result, std::uint32_t salt) noexcept {
    call_.take_up(plan, shape, salt);
    call_.count_turn();
    call_.buffers.input = input;
    call_.buffers.result = result;
    call_.buffers.user = nullptr;
    linear_.begin(program);
  }
  /// Runs every step that can run now. After `done` the next begin() may follow.
  Progress advance() noexcept;
  bool running() const noexcept { return call_.plan != nullptr; }
  /// For a simulation, which need not ask a rank to go on before something has changed for it. Not for pairwise
  /// exchanges.
  WindowSchedule<Host>& lanes() noexcept { return lanes_; }
  const WindowSchedule<Host>& lanes() const noexcept { return lanes_; }
  /// Whether the call waits for credits, not for messages alone.
  bool waits_for_credit() const noexcept {
    return linear_.runs() ? linear_.waits_for_credit() : lanes_.watch().waits_for_credit();
  }
  /// Whether all steps of the call have run, so that it waits for the transport alone.
  bool has_run_all() const noexcept {
    return call_.plan == nullptr || (linear_.runs() ? linear_.has_run_all() : lanes_.has_run_all());
  }
  /// Not ok when a put failed: the call cannot end any more.
  Status status() const noexcept { return call_.status; }
  /// With a bad status: the context rank towards which something failed, or -1.
  int failed_peer() const noexcept { return call_.failed_peer; }
  /// Forgets a call that cannot end. The plan's numbers are void afterwards: its team is poisoned.
  void abandon() noexcept {
    call_.plan = nullptr;
    call_.on_rings.lacks_room = false;
  }
  /// Hands over the owner of the puts of an abandoned call. Afterwards nothing may run here.
  PutOwner take_puts() noexcept { return std::move(call_.puts); }
  /// With status `transport`: the impossible buffer offer of failed_peer() as text, or nothing.
  std::string refusal() const { return offers_.refusal(); }
  /// With status `mismatch`: the block on whose length two ranks differ.
  const LengthFault& length_fault() const noexcept { return pairwise_.length_fault(); }
  /// A slow check. True, with status `mismatch`, if the call waits for a block that is known to have another length at
  /// its other end, or for a message on a ring whose numbers differ between its ends.
  bool finds_other_length(const LengthEvidence& evidence) noexcept {
    if (call_.plan == nullptr) return false;
    if (pairwise_.finds_ring_fault(evidence)) return true;
    return !linear_.runs() && call_.plan->plan.exchange.exists() && pairwise_.finds_other_length(evidence);
  }
  Stall stall() const;
  /// Whether a step that is next in the call needs a message from that context rank, or sends one there that has not
  /// left. The answer is what advance() found when it last moved nothing.
  bool awaits(int peer) const noexcept;
  std::uint64_t engine_bytes(int engine) const noexcept { return call_.engines.bytes(engine); }
  /// The most transfers of a pairwise exchange that have been in flight at once.
  int transfers_in_flight_most() const noexcept { return pairwise_.transfers_in_flight_most(); }

 private:
  RunningCall call_;
  LinearSchedule<Host> linear_;
  BufferOffers offers_{call_};
  DataMover mover_{call_, offers_};
  WindowSchedule<Host> lanes_;
  PairwiseSchedule<Host> pairwise_;
};

extern template class BasicExecution<RealHost>;
extern template class BasicExecution<ModelledHost>;

/// On this machine, and in a simulation.
using Execution = BasicExecution<RealHost>;
using ModelledExecution = BasicExecution<ModelledHost>;

}  // namespace torii
