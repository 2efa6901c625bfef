// SPDX-License-Identifier: Apache-2.0
// The smallest hand-written loops that move what a collective must move, between processes of one machine or of
// several: no choice, no settings, no failure of a peer but a deadline, one type (f32) and one operation (sum). How
// fast the best of them is says what this machine allows.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "perf/common/buffers.hpp"
#include "perf/limits/area.hpp"
#include "perf/limits/movement.hpp"
#include "perf/limits/sockets.hpp"
#include "reduce_kernels/kernels.hpp"

namespace torii::perf {

class Loop {
 public:
  Loop(Area& area, const CallData& data, const Movement& movement, const char* name);
  virtual ~Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  const char* name() const { return name_; }
  /// The collective, once. All ranks call it.
  void run() {
    make_call();
    // Stores past the caches are weakly ordered; a loop whose results others read orders them itself.
    if (past_caches_) kernels::store_fence();
  }

 protected:
  virtual void make_call() = 0;

  int me() const { return area_.rank(); }
  int ranks() const { return movement_.ranks; }
  /// True for a rank other than this one that takes this rank's data.
  bool is_other_reader(int rank) const { return rank != me() && movement_.is_reader(rank); }
  /// The sum of `bytes` from every rank's address, in the order of ranks, to all targets, past the caches or not.
  void fold(const std::vector<const void*>& sources, std::span<void* const> targets, size_t bytes,
            bool past_caches) const;
  /// To a place in the result.
  void fold(const std::vector<const void*>& sources, void* target, size_t bytes) const {
    fold(sources, std::span<void* const>(&target, 1), bytes, past_caches_);
  }
  /// Into the result.
  void copy(void* target, const void* source, size_t bytes) const {
    kernels::copy(target, source, bytes, past_caches_);
  }
  /// This rank's own block goes to its own result, where nothing is folded.
  void copy_own() const;
  /// The part of `bytes` that a rank folds when all fold a part each.
  struct Part {
    size_t first, bytes;
  };
  Part part_of(int rank, size_t bytes) const;

  Area& area_;
  const CallData& data_;
  Movement movement_;
  std::vector<const void*> sources_;  ///< scratch, one for each rank
  bool past_caches_;                  ///< the result is so long that it is stored past the caches

 private:
  const char* name_;
  kernels::FoldFn fold_;
};

using Loops = std::vector<std::unique_ptr<Loop>>;

/// The loops that can run this call on memory that is this process's alone: a line, slots, reads across processes.
Loops private_loops(Area& area, const CallData& data, const Movement& movement);
/// The loops for vectors that all ranks map: `data` lies in Memory::shared, out of place. A line too, since it is
/// faster for some bytes.
Loops mapped_loops(Area& area, const CallData& data, const Movement& movement);
/// The loops for ranks on several hosts.
Loops network_loops(Area& area, Sockets& sockets, const CallData& data, const Movement& movement);

/// Adds them to `loops` where they can run the call.
void add_line_loop(Area& area, const CallData& data, const Movement& movement, Loops& loops);
void add_slots_loops(Area& area, const CallData& data, const Movement& movement, Loops& loops);
void add_cross_loops(Area& area, const CallData& data, const Movement& movement, Loops& loops);
void add_mapped_loops(Area& area, const CallData& data, const Movement& movement, Loops& loops);

}  // namespace torii::perf
