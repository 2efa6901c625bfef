// SPDX-License-Identifier: Apache-2.0
// Vectors that all ranks map: nothing is copied but into results.
#include "perf/limits/loops.hpp"

namespace torii::perf {
namespace {

/// Readers read inputs where they are.
class PullLoop : public Loop {
 public:
  PullLoop(Area& area, const CallData& data, const Movement& movement) : Loop(area, data, movement, "mapped") {}

  void make_call() override {
    area_.add_steps(1);
    const uint64_t step = area_.steps();
    if (movement_.is_source(me())) area_.set_ready(step);
    if (movement_.is_reader(me())) read(step);
    area_.set_done(step);
    if (!movement_.is_source(me())) return;
    // The call ends when nobody reads this rank's input any more.
    for (int rank = 0; rank < ranks(); ++rank)
      if (is_other_reader(rank)) area_.await_done(rank, step);
  }

 private:
  void read(uint64_t step) {
    const size_t at = movement_.lane_of(me()) * movement_.lane_bytes;
    copy_own();
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!movement_.is_source(rank)) continue;
      sources_[static_cast<size_t>(rank)] = data_.input_of(rank) + at;
      if (rank == me()) continue;
      area_.await_ready(rank, step);
      if (!movement_.folds)
        copy(data_.result() + movement_.place_of(rank), data_.input_of(rank) + at, movement_.lane_bytes);
    }
    if (movement_.folds) fold(sources_, data_.result(), movement_.lane_bytes);
  }
};

/// Each rank folds a part of all inputs into all results.
class PushLoop : public Loop {
 public:
  PushLoop(Area& area, const CallData& data, const Movement& movement) : Loop(area, data, movement, "mapped, parts") {}

  void make_call() override {
    area_.add_steps(1);
    const uint64_t step = area_.steps();
    const Part mine = part_of(me(), movement_.lane_bytes);
    area_.set_ready(step);
    targets_.clear();
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank != me()) area_.await_ready(rank, step);
      sources_[static_cast<size_t>(rank)] = data_.input_of(rank) + mine.first;
      if (movement_.is_reader(rank)) targets_.push_back(data_.result_of(rank) + mine.first);
    }
    fold(sources_, targets_, mine.bytes, past_caches_);
    if (past_caches_) kernels::store_fence();
    area_.set_done(step);
    for (int rank = 0; rank < ranks(); ++rank)
      if (rank != me()) area_.await_done(rank, step);
  }

 private:
  std::vector<void*> targets_;
};

}  // namespace

void add_mapped_loops(Area& area, const CallData& data, const Movement& movement, Loops& loops) {
  if (movement.lane_bytes == 0) return;
  loops.push_back(std::make_unique<PullLoop>(area, data, movement));
  if (movement.folds && movement.lanes == 1 && movement.ranks <= kernels::kTargetsMax)
    loops.push_back(std::make_unique<PushLoop>(area, data, movement));
}

}  // namespace torii::perf
