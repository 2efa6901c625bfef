// SPDX-License-Identifier: Apache-2.0
// Vectors in pieces through slots of shared memory: a rank copies a piece into its slot, others read it from there. The
// next piece is on its way while one is read.
#include <algorithm>
#include <cstring>

#include "perf/limits/loops.hpp"

namespace torii::perf {
namespace {

constexpr size_t kLineBytes = 64;

class SlotsLoop : public Loop {
 public:
  SlotsLoop(Area& area, const CallData& data, const Movement& movement, const char* name, size_t slot_bytes)
      : Loop(area, data, movement, name),
        piece_bytes_(slot_bytes / static_cast<size_t>(movement.lanes) / kLineBytes * kLineBytes),
        pieces_((movement.lane_bytes + piece_bytes_ - 1) / piece_bytes_) {}

  void make_call() override {
    const uint64_t before = area_.steps();
    area_.add_steps(pieces_);
    copy_own();
    put(before, 0);
    for (uint64_t piece = 0; piece < pieces_; ++piece) {
      if (piece + 1 < pieces_) put(before, piece + 1);
      if (movement_.is_reader(me()) || folds_parts()) take(before + 1 + piece, piece);
      area_.set_done(before + 1 + piece);
    }
  }

 protected:
  /// True where ranks that are no readers help too.
  virtual bool folds_parts() const { return false; }

  /// Reads what all sources put at `step`.
  virtual void take(uint64_t step, uint64_t piece) {
    const size_t offset = piece * piece_bytes_, bytes = bytes_of(piece);
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!movement_.is_source(rank)) continue;
      sources_[static_cast<size_t>(rank)] = data_.input() + movement_.lane_of(me()) * movement_.lane_bytes + offset;
      if (rank == me()) continue;
      area_.await_ready(rank, step);
      const std::byte* const lane = area_.slot(rank, step) + movement_.lane_of(me()) * piece_bytes_;
      sources_[static_cast<size_t>(rank)] = lane;
      if (!movement_.folds) copy(data_.result() + movement_.place_of(rank) + offset, lane, bytes);
    }
    if (movement_.folds) fold(sources_, data_.result() + offset, bytes);
  }

  size_t bytes_of(uint64_t piece) const { return std::min(piece_bytes_, movement_.lane_bytes - piece * piece_bytes_); }

  size_t piece_bytes_;  ///< of each lane
  uint64_t pieces_;

 private:
  void put(uint64_t before, uint64_t piece) {
    if (!movement_.is_source(me())) return;
    const uint64_t step = before + 1 + piece;
    // A slot is written again four steps later. Where all read from all, a rank that has put two steps later has read:
    // its puts are one ahead of what it reads, and so are ours of what we have seen of it.
    const bool waits = !movement_.is_symmetric() && step > kAreaSlots;
    bool is_needed = false;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == me() || (!movement_.is_reader(rank) && !folds_parts())) continue;
      is_needed = true;
      if (waits) area_.await_done(rank, step - kAreaSlots);
      if (movement_.lanes > 1) copy_lane(step, piece, rank);
    }
    if (is_needed && movement_.lanes == 1) copy_lane(step, piece, 0);
    area_.set_ready(step);
  }
  void copy_lane(uint64_t step, uint64_t piece, int lane) {
    const auto at = static_cast<size_t>(lane);
    std::memcpy(area_.slot(me(), step) + at * piece_bytes_,
                data_.input() + at * movement_.lane_bytes + piece * piece_bytes_, bytes_of(piece));
  }
};

/// Each rank folds a part of every piece for all; readers copy the others' parts.
class PartSlotsLoop : public SlotsLoop {
 public:
  using SlotsLoop::SlotsLoop;

 private:
  bool folds_parts() const override { return true; }

  void take(uint64_t step, uint64_t piece) override {
    const size_t offset = piece * piece_bytes_, bytes = bytes_of(piece);
    const Part mine = part_of(me(), bytes);
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank != me()) area_.await_ready(rank, step);
      sources_[static_cast<size_t>(rank)] =
          (rank == me() ? data_.input() + offset : area_.slot(rank, step)) + mine.first;
    }
    void* const target = area_.result_slot(me(), step) + mine.first;
    fold(sources_, std::span<void* const>(&target, 1), mine.bytes, false);
    area_.set_folded(step);
    if (!movement_.is_reader(me())) return;
    for (int i = 0; i < ranks(); ++i) {
      const int rank = (me() + i) % ranks();
      const Part part = part_of(rank, bytes);
      if (rank != me()) area_.await_folded(rank, step);
      copy(data_.result() + offset + part.first, area_.result_slot(rank, step) + part.first, part.bytes);
    }
  }
};

}  // namespace

void add_slots_loops(Area& area, const CallData& data, const Movement& movement, Loops& loops) {
  if (movement.lane_bytes == 0) return;
  struct Kind {
    size_t slot_bytes;
    const char *name, *parts_name;
  };
  for (const Kind& kind : {Kind{size_t{32} << 10, "slots 32K", "slots 32K, parts"},
                           Kind{size_t{128} << 10, "slots 128K", "slots 128K, parts"}}) {
    // With so many ranks no line of a slot is left for each.
    if (kind.slot_bytes / static_cast<size_t>(movement.lanes) < kLineBytes) continue;
    loops.push_back(std::make_unique<SlotsLoop>(area, data, movement, kind.name, kind.slot_bytes));
    if (movement.folds && movement.lanes == 1 && movement.ranks > 2)
      loops.push_back(std::make_unique<PartSlotsLoop>(area, data, movement, kind.parts_name, kind.slot_bytes));
    // The larger slots are no different where one piece of the smaller ones holds all.
    if (movement.lane_bytes * static_cast<size_t>(movement.lanes) <= kind.slot_bytes) break;
  }
}

}  // namespace torii::perf
