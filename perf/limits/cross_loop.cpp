// SPDX-License-Identifier: Apache-2.0
// Reads across processes (process_vm_readv): the kernel copies once, from one process's memory into another's.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "perf/common/failure.hpp"
#include "perf/limits/loops.hpp"

namespace torii::perf {
namespace {

struct Place {
  pid_t process;
  std::byte *input, *result;
};

/// False where the kernel refuses.
bool read_across(pid_t process, const std::byte* from, void* to, size_t bytes) {
  while (bytes > 0) {
    const iovec local{to, bytes};
    const iovec remote{const_cast<std::byte*>(from), bytes};
    const ssize_t got = process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (got <= 0) return false;
    to = static_cast<std::byte*>(to) + got;
    from += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

class CrossLoop : public Loop {
 public:
  CrossLoop(Area& area, const CallData& data, const Movement& movement, const char* name, std::vector<Place> places)
      : Loop(area, data, movement, name), places_(std::move(places)) {
    if (!movement.folds) return;
    for (int rank = 0; rank < ranks(); ++rank) bounces_.emplace_back(rank == me() ? 0 : kBounceBytes);
  }

  void make_call() override {
    area_.add_steps(1);
    const uint64_t step = area_.steps();
    if (movement_.is_source(me())) area_.set_ready(step);
    if (movement_.is_reader(me())) {
      copy_own();
      if (movement_.folds) {
        const size_t at = movement_.lane_of(me()) * movement_.lane_bytes;
        fold_from_all(step, at, data_.result(), movement_.lane_bytes);
      } else {
        copy_from_all(step);
      }
    }
    area_.set_done(step);
    if (!movement_.is_source(me())) return;
    for (int rank = 0; rank < ranks(); ++rank)
      if (is_other_reader(rank)) area_.await_done(rank, step);
  }

 protected:
  /// Through bounces that stay in the cache.
  void fold_from_all(uint64_t step, size_t at, std::byte* result, size_t bytes) {
    for (int rank = 0; rank < ranks(); ++rank)
      if (rank != me()) area_.await_ready(rank, step);
    for (size_t done = 0; done < bytes; done += kBounceBytes) {
      const size_t now = std::min(kBounceBytes, bytes - done);
      for (int rank = 0; rank < ranks(); ++rank) {
        const auto r = static_cast<size_t>(rank);
        sources_[r] = data_.input() + at + done;
        if (rank == me()) continue;
        read(rank, places_[r].input + at + done, bounces_[r].data(), now);
        sources_[r] = bounces_[r].data();
      }
      fold(sources_, result + done, now);
    }
  }
  void read(int rank, const std::byte* from, void* to, size_t bytes) const {
    if (!read_across(places_[static_cast<size_t>(rank)].process, from, to, bytes))
      throw Failure(kNotPossible, "a read across processes failed in the middle of a run");
  }

  std::vector<Place> places_;

 private:
  static constexpr size_t kBounceBytes = size_t{64} << 10;

  void copy_from_all(uint64_t step) {
    for (int i = 1; i < ranks(); ++i) {
      const int rank = (me() + i) % ranks();
      if (!movement_.is_source(rank)) continue;
      area_.await_ready(rank, step);
      read(rank, places_[static_cast<size_t>(rank)].input + movement_.lane_of(me()) * movement_.lane_bytes,
           data_.result() + movement_.place_of(rank), movement_.lane_bytes);
    }
  }

  std::vector<std::vector<std::byte>> bounces_;
};

/// An allreduce: each rank folds a part into its own result, where the others read it.
class PartCrossLoop : public CrossLoop {
 public:
  using CrossLoop::CrossLoop;

  void make_call() override {
    area_.add_steps(1);
    const uint64_t step = area_.steps();
    const Part mine = part_of(me(), movement_.lane_bytes);
    area_.set_ready(step);
    fold_from_all(step, mine.first, data_.result() + mine.first, mine.bytes);
    if (past_caches_) kernels::store_fence();
    area_.set_folded(step);
    for (int i = 1; i < ranks(); ++i) {
      const int rank = (me() + i) % ranks();
      const Part part = part_of(rank, movement_.lane_bytes);
      area_.await_folded(rank, step);
      read(rank, places_[static_cast<size_t>(rank)].result + part.first, data_.result() + part.first, part.bytes);
    }
    area_.set_done(step);
    for (int rank = 0; rank < ranks(); ++rank)
      if (rank != me()) area_.await_done(rank, step);
  }
};

/// Shorter vectors than this never gain by a call of the kernel.
constexpr size_t kLeastBytes = 2048;

}  // namespace

void add_cross_loops(Area& area, const CallData& data, const Movement& movement, Loops& loops) {
  if (movement.lane_bytes < kLeastBytes) return;
  const Place own{getpid(), data.input(), data.result()};
  std::vector<Place> places(static_cast<size_t>(movement.ranks));
  area.job().gather_bytes(&own, places.data(), sizeof(Place));
  std::byte seen{};
  const Place& next = places[static_cast<size_t>((area.rank() + 1) % movement.ranks)];
  if (area.job().sum(read_across(next.process, next.input, &seen, 1) ? 0 : 1) != 0) return;
  loops.push_back(std::make_unique<CrossLoop>(area, data, movement, "across", places));
  if (movement.folds && movement.lanes == 1 && movement.is_symmetric())
    loops.push_back(std::make_unique<PartCrossLoop>(area, data, movement, "across, parts", places));
}

}  // namespace torii::perf
