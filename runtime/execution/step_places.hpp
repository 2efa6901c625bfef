// SPDX-License-Identifier: Apache-2.0
// Where the operands and targets of the step that runs are, and the portions in which its data moves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/execution/buffer_offers.hpp"
#include "runtime/execution/running_call.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {

class StepPlaces {
 public:
  /// An operand or a target of a step: a vector (pieces lie at their place in it) or a slot's payload (pieces are
  /// packed).
  struct Place {
    std::uintptr_t base = 0;
    bool packed = false;
    bool wide = false;
    bool non_temporal = false;
    bool peers = false;  ///< in a peer's arena
    int reader_of = -1;  ///< the context rank in whose private memory it is; -1: it can be addressed

    bool in_own_vector() const noexcept { return !packed && !peers && reader_of < 0; }
  };

  /// A value that goes to several places is computed and copied on in pieces of this size, which stay in the
  /// first-level cache between the two.
  static constexpr auto kHotBytes = tuned<std::size_t>("stores.hot_bytes");
  /// Memory of this thread for such a piece. Wide elements need twice the bytes.
  static std::byte* hot_memory() noexcept;

  /// The offers must be those of the same call.
  StepPlaces(RunningCall& call, const BufferOffers& offers) : call_(call), offers_(offers) {}

  void begin() noexcept;
  /// Finds the places of a step. Without targets nothing is to be moved.
  void find(const Step& step) noexcept;
  /// A step whose data is not touched.
  void skip() noexcept { sendable_ = nullptr; }
  /// The address from which the last step's message to a peer is sent; nullptr: its send slot.
  const std::byte* leaves_from(const InstalledOut& out) const noexcept {
    return leaves_from_vector(out) ? sendable_ : nullptr;
  }
  /// Whether a target is a slot in which no message has been.
  bool touches_slots_first(const Step& step) const noexcept;

  std::span<const Place> sources() const noexcept { return source_places_; }
  std::span<const Place> targets() const noexcept { return target_places_; }
  // Addresses of the current portion.
  std::span<const void* const> source_addresses() const noexcept { return sources_; }
  std::span<void* const> target_addresses() const noexcept { return targets_; }

  /// Calls `move(is_timed)`, which moves all portions, with targets through the caches or past them, whichever is
  /// faster now. It returns how much of its time is not the time of stores, if that is asked for.
  template <class Move>
  void store(const Step& step, Move&& move) noexcept {
    if (peers_bytes_ < StoreChoice::kBytesMin) {
      (void)move(false);
      if (call_.shape->non_temporal) kernels::store_fence();
      return;
    }
    StoreChoice& stores = stores_of(step);
    if (!stores.is_known()) Counters::add(call_.transport.counters().cold_messages);
    const StoreChoice::Turn turn = stores.next(touches_slots_first(step));
    if (turn.way == StoreChoice::Way::non_temporal) {
      for (Place& place : target_places_) place.non_temporal = place.non_temporal || place.peers;
    }
    const std::int64_t begun_ns = turn.timed ? now_ns() : 0;
    const std::int64_t apart_ns = move(turn.timed);
    // Non-temporal stores are weakly ordered: they must be visible before any signal of this step.
    if (call_.shape->non_temporal || turn.way == StoreChoice::Way::non_temporal) kernels::store_fence();
    if (turn.timed) stores.record(turn.way, now_ns() - begun_ns - apart_ns, peers_bytes_);
  }

  /// Calls `move(offset in the vector, bytes)` for each portion of the step, with its addresses, until it returns
  /// false. A portion is one piece if `at_once`, otherwise a part of one that stays hot.
  template <class Move>
  void for_each_portion(const Step& step, bool at_once, Move&& move) noexcept {
    const std::size_t portion_bytes = portion_most(at_once);
    call_.shape->layout.for_each_piece(step.block, step.segment,
                                       [&](const Piece& piece, std::size_t packed_offset_bytes) {
                                         const std::size_t offset_bytes = call_.memory_bytes(piece.offset_bytes);
                                         const std::size_t length_bytes = call_.memory_bytes(piece.length_bytes);
                                         const std::size_t packed_bytes = call_.memory_bytes(packed_offset_bytes);
                                         for (std::size_t done = 0; done < length_bytes; done += portion_bytes) {
                                           set_addresses(offset_bytes + done, packed_bytes + done);
                                           if (!move(offset_bytes + done, std::min(portion_bytes, length_bytes - done)))
                                             return;
                                         }
                                       });
  }
  /// Whether the operand is in a peer's private memory. It is then the step's only one, and has to be read first.
  bool reads_private_memory() const noexcept { return source_places_[0].reader_of >= 0; }
  /// Reads the current portion of such an operand: into the first own target, or else into memory from which it is
  /// forwarded. `into_vector`: the own vector can be such a target. False if it could not be read.
  bool read_source(std::size_t bytes, bool into_vector) noexcept;

 private:
  bool leaves_from_vector(const InstalledOut& out) const noexcept {
    return sendable_ != nullptr && out.ring.remote() && out.stream.bundle == 1 &&
           !(out.stream.wide && call_.plan->is_wide());
  }
  const std::byte* sendable(const Step& step) const noexcept;
  Place source_place(const StreamEnd& end, const Step& step) const noexcept;
  Place target_place(const StreamEnd& end, const Step& step) noexcept;
  bool is_stored_already(const InstalledOut& out, std::size_t bytes) noexcept;
  StoreChoice& stores_of(const Step& step) const noexcept;
  std::size_t portion_most(bool at_once) const noexcept {
    const std::size_t element_bytes = call_.shape->element_bytes;
    if (reads_private_memory()) return PrivateReadChoice::kReadBytes / element_bytes * element_bytes;
    return at_once ? SIZE_MAX : std::max(kHotBytes / element_bytes, std::size_t{1}) * element_bytes;
  }
  void set_addresses(std::size_t offset_bytes, std::size_t packed_bytes) noexcept {
    const auto at = [&](const Place& place) {
      if (!place.packed) return place.base + offset_bytes;
      return place.base + (place.wide ? widened(packed_bytes, call_.plan->widening) : packed_bytes);
    };
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      sources_[i] = reinterpret_cast<const void*>(at(source_places_[i]));
    }
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      targets_[i] = reinterpret_cast<void*>(at(target_places_[i]));
    }
  }

  RunningCall& call_;
  const BufferOffers& offers_;
  const std::byte* sendable_ = nullptr;  ///< from here engines may send the value of the step that runs
  std::uint64_t step_count_ = 0;
  std::size_t peers_bytes_ = 0;                ///< what the step stores into peers' arenas
  std::vector<std::uint64_t> stored_in_step_;  ///< per out-stream that leads a group: the last step that stored there
  std::vector<Place> source_places_;
  std::vector<Place> target_places_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
};

}  // namespace torii
