// SPDX-License-Identifier: Apache-2.0
// A few bytes in the cache line of their counter: one transfer of a line from each rank to each other.
#include "perf/limits/loops.hpp"

namespace torii::perf {
namespace {

class LineLoop : public Loop {
 public:
  LineLoop(Area& area, const CallData& data, const Movement& movement) : Loop(area, data, movement, "line") {}

  void make_call() override {
    area_.add_steps(1);
    const uint64_t step = area_.steps();
    if (movement_.is_source(me())) write(step);
    if (movement_.is_reader(me())) read(step);
    area_.set_done(step);
  }

 private:
  /// Where all read from all, others' lines of the step before say that they have read ours of the one before that.
  void write(uint64_t step) {
    if (!movement_.is_symmetric() && step > kAreaSlots) {
      for (int rank = 0; rank < ranks(); ++rank)
        if (is_other_reader(rank)) area_.await_done(rank, step - kAreaSlots);
    }
    area_.write_line(step, data_.input(), movement_.lane_bytes * static_cast<size_t>(movement_.lanes));
  }

  void read(uint64_t step) {
    const size_t at = movement_.lane_of(me()) * movement_.lane_bytes;
    copy_own();
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!movement_.is_source(rank)) continue;
      const std::byte* const lane = (rank == me() ? data_.input() : area_.await_line(rank, step)) + at;
      sources_[static_cast<size_t>(rank)] = lane;
      if (!movement_.folds && rank != me() && movement_.lane_bytes > 0)
        copy(data_.result() + movement_.place_of(rank), lane, movement_.lane_bytes);
    }
    if (movement_.folds) fold(sources_, data_.result(), movement_.lane_bytes);
  }
};

}  // namespace

void add_line_loop(Area& area, const CallData& data, const Movement& movement, Loops& loops) {
  if (movement.lane_bytes * static_cast<size_t>(movement.lanes) > kAreaLineBytes) return;
  loops.push_back(std::make_unique<LineLoop>(area, data, movement));
}

}  // namespace torii::perf
