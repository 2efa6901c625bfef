// SPDX-License-Identifier: Apache-2.0
// Moves the data of steps: folds or copies operands into targets, through or past the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "runtime/execution/callback_mover.hpp"
#include "runtime/execution/step_places.hpp"

namespace torii {

/// Folds by the call's kernel, or by `user` if that is not nullptr.
void fold(const kernels::Operands& operands, std::size_t count, const CallShape& shape,
          const kernels::UserFunction* user, Fold order) noexcept;

class DataMover {
 public:
  /// The offers must be those of the same call.
  DataMover(RunningCall& call, const BufferOffers& offers) : call_(call), places_(call, offers) {}

  DataMover(const DataMover&) = delete;  // a part refers to another
  DataMover& operator=(const DataMover&) = delete;

  void begin() noexcept { places_.begin(); }
  /// Folds the step's operands into its targets. The status is bad if something could not be read.
  void run(const Step& step) noexcept;
  /// A step whose data is not touched.
  void skip() noexcept { places_.skip(); }
  /// The address from which the last step's message to a peer is sent; nullptr: its send slot.
  const std::byte* leaves_from(const InstalledOut& out) const noexcept { return places_.leaves_from(out); }

 private:
  void move_portions(const Step& step) noexcept;
  void combine(std::size_t count, Fold order) noexcept;
  std::size_t primary_target(bool wide) const noexcept;

  RunningCall& call_;
  StepPlaces places_;
  CallbackMover by_callbacks_{call_, places_};
  std::vector<std::uint8_t> wide_sources_;  ///< as kernels::Operands::wide_sources; empty: none is
};

}  // namespace torii
