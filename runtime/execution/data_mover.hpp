// SPDX-License-Identifier: Apache-2.0
// Moves the data of steps: finds operands and targets, and folds or copies through or past the caches, by kernels or
// the caller's functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "runtime/execution/buffer_offers.hpp"
#include "runtime/execution/running_call.hpp"

namespace torii {

/// Folds by the call's kernel, or its user function.
void fold(const CallShape& shape, const kernels::Operands& operands, std::size_t count, Fold order) noexcept;

class DataMover {
 public:
  /// The offers must be those of the same call.
  DataMover(RunningCall& call, const BufferOffers& offers) : call_(call), offers_(offers) {}

  void begin() noexcept;
  /// Folds the step's operands into its targets. The status is bad if something could not be read.
  void run(const Step& step) noexcept;
  /// A step whose data is not touched.
  void skip() noexcept { sendable_ = nullptr; }
  /// The address from which the last step's message to a peer is sent; nullptr: its send slot.
  const std::byte* leaves_from(const InstalledOut& out) const noexcept {
    return leaves_from_vector(out) ? sendable_ : nullptr;
  }

 private:
  /// An operand or a target of a step: a vector (pieces lie at their place in it) or a slot's payload (pieces are
  /// packed).
  struct Operand {
    std::uintptr_t base = 0;
    bool packed = false;
    bool wide = false;
    bool non_temporal = false;
    bool peers = false;    ///< in a peer's arena
    int reader_of = -1;    ///< the context rank in whose private memory it is; -1: it can be addressed
    bool callers = false;  ///< reached through the caller's functions only
  };
  bool leaves_from_vector(const InstalledOut& out) const noexcept {
    return sendable_ != nullptr && out.ring.remote() && out.stream.bundle == 1 &&
           !(out.stream.wide && call_.plan->is_wide());
  }
  const std::byte* sendable(const Step& step) const noexcept;
  Operand source_place(const StreamEnd& end, const Step& step) const noexcept;
  Operand target_place(const StreamEnd& end, const Step& step) noexcept;
  bool touches_slots_first(const Step& step) const noexcept;
  std::size_t find_places(const Step& step) noexcept;
  bool is_stored_already(const InstalledOut& out, std::size_t bytes) noexcept;
  void store_pieces(const Step& step, std::size_t peers_bytes) noexcept;
  void move_pieces(const Step& step) noexcept;
  void move_piece(const Piece& piece, std::size_t packed_offset_bytes, Fold order) noexcept;
  void read_source(std::size_t bytes) noexcept;
  void access_portion(std::size_t offset_bytes, std::size_t bytes) noexcept;
  void* first_slot() const noexcept;
  void combine(std::size_t count, Fold order) noexcept;
  std::size_t primary_target(bool wide) const noexcept;

  RunningCall& call_;
  const BufferOffers& offers_;
  const std::byte* sendable_ = nullptr;  ///< from here engines may send the value of the step that runs
  std::uint64_t step_count_ = 0;
  std::vector<std::uint64_t> stored_in_step_;  ///< per out-stream that leads a group: the last step that stored there
  // In a step of a vector that the caller's functions reach.
  bool functions_reach_slots_ = false;
  bool times_copies_ = false;
  std::int64_t copies_ns_ = 0;
  // Places of the step that runs, and the addresses of its current piece.
  std::vector<Operand> source_places_;
  std::vector<Operand> target_places_;
  std::vector<std::uint8_t> wide_sources_;  ///< as kernels::Operands::wide_sources; empty: none is
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
};

}  // namespace torii
