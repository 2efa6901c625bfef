// SPDX-License-Identifier: Apache-2.0
// Two sides on two CPUs that move a vector each way with nothing around it, beside which an allreduce of two ranks on
// one machine can be held.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace torii::perf {

/// How the vectors go over.
enum class Move {
  /// Each side copies its vector into slots of the other, segment by segment, and copies what has come into its own
  /// slots out into its result. As many bytes cross as in an allreduce between buffers that peers cannot address, half
  /// a vector of operands and half a vector of results each way; an allreduce that folds out of one slot into the next
  /// saves a pass and can be a little faster.
  slots,
  /// Each side folds its half straight from both vectors and stores it into both results: the bound of an allreduce
  /// between buffers that peers map.
  mapped,
};

struct MoveOptions {
  size_t bytes = 0;           ///< of a vector of floats; a multiple of 8
  size_t slot_bytes = 0;      ///< of one slot, a multiple of 64; in `mapped` the piece folded at once
  int slots = 0;              ///< in each direction
  bool non_temporal = false;  ///< store into the other side's memory past the caches
};

/// What both sides share; each constructs its Side from it. Memory is zeroed and touched by the constructor.
///
/// Memory order. A signal says which message stands in its slot, a credit which message was last taken out of it, both
/// counted from 1 and never reset. A writer stores the payload first, then the word with release; stores past the
/// caches are weakly ordered, so after those it runs a store fence in between. A reader loads the word with acquire and
/// then touches the payload. So payloads happen before their use, and, by the credit, uses before the next payload in
/// that slot. Each word has one writer. `arrived` counts both sides at every meeting; adding to it is an acquire and a
/// release, so what a side did before a meeting happens before what the other does after it.
class Exchange {
 public:
  explicit Exchange(const MoveOptions& options);

  const MoveOptions& options() const { return options_; }
  float* input(int side) { return inputs_[side].get(); }
  float* result(int side) { return results_[side].get(); }

 private:
  friend class Side;
  struct alignas(64) Word {
    std::atomic<uint64_t> value{0};
  };
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  using Floats = std::unique_ptr<float[], Free>;
  /// Zeroed, on whole pages. Throws std::bad_alloc.
  static Floats make_floats(size_t bytes);
  /// From one side to the other.
  struct Direction {
    Floats memory;
    std::unique_ptr<Word[]> signals, credits;
  };

  MoveOptions options_;
  std::array<Floats, 2> inputs_, results_;
  std::array<Direction, 2> to_;  ///< to_[s] leads to side s
  Word arrived_;
};

/// One of the two threads.
class Side {
 public:
  Side(Exchange& exchange, int side) : exchange_(exchange), side_(side) {}
  /// Both sides call it; each returns when both have come. Ends the process after 10 s alone.
  void meet();
  /// Both sides call it, with equal `move`. `slots`: the result is the other's input. `mapped`: the sum of both inputs.
  void run(Move move);

 private:
  void run_slots();
  void run_mapped();

  Exchange& exchange_;
  int side_;
  uint64_t meetings_ = 0;
  uint64_t messages_ = 0;  ///< of all calls so far, the same in both directions
};

}  // namespace torii::perf
