// SPDX-License-Identifier: Apache-2.0
// The vectors of one rank's calls: where they are, and whether anybody else has written there.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/torii-sim/faults/calls.hpp"
#include "tools/torii-sim/faults/history.hpp"
#include "tools/torii-sim/faults/simulated_job.hpp"

namespace torii::faults {

/// A vector and the guard behind it.
struct Vector {
  static constexpr std::size_t kGuardBytes = 64;
  std::byte* data = nullptr;
  std::size_t bytes = 0;  ///< without the guard
  bool is_guarded() const noexcept;
  /// The memory is kGuardBytes longer, and this writes the guard there.
  static Vector of(std::byte* memory, std::size_t bytes) noexcept;
};

/// The vectors of one call: one piece for both if the call is in place.
class CallVectors {
 public:
  CallVectors() = default;
  CallVectors(const DrawnCall& spec, Place place, Vector input, Vector result);
  /// `take` gives memory for a vector of so many bytes, which may be 0.
  static CallVectors make(const DrawnCall& spec, Place place, const std::function<Vector(std::size_t bytes)>& take);

  /// nullptr where the rank has none.
  std::byte* input() const noexcept { return input_; }
  std::byte* result() const noexcept { return result_; }
  /// Writes the input, where it is to be, as the call expects it.
  void fill();
  /// The same for the next call, which has other data.
  void fill_anew(std::uint64_t seed);
  /// Writes other bytes over all that the library must have read by the end of the call.
  void spoil() noexcept;
  /// Empty, or where the result is wrong.
  std::string difference() const;
  /// From now on nobody may write there.
  void seal() noexcept;
  bool is_sealed() const noexcept { return is_sealed_; }
  void unseal() noexcept { is_sealed_ = false; }
  bool has_changed() const noexcept { return is_sealed_ && hash() != seal_; }

 private:
  std::uint64_t hash() const noexcept;

  DrawnCall spec_;
  Place place_;
  Vector pieces_[2];
  std::byte* input_ = nullptr;
  std::byte* result_ = nullptr;
  std::uint64_t seal_ = 0;
  bool is_sealed_ = false;
};

/// Memory of one rank, of all kinds. It stays until the end of the history: a call that failed may still be read from.
class RankMemory {
 public:
  RankMemory(SimulatedJob& job, torii_context* context, int rank) : job_(job), context_(context), rank_(rank) {}
  /// Every team must be gone by then.
  ~RankMemory();
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;

  CallVectors make(const DrawnCall& spec, Place place, Memory where) {
    return CallVectors::make(spec, place, [&](std::size_t bytes) { return take(bytes, where); });
  }

 private:
  Vector take(std::size_t bytes, Memory where);
  std::byte* take_pages(std::size_t bytes, Memory where);
  void expect(torii_status status) const;

  SimulatedJob& job_;
  torii_context* context_;
  int rank_;
  std::deque<std::vector<std::byte>> private_memory_;
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::vector<std::unique_ptr<void, Free>> adopted_memory_;
  Vector adopted_;  ///< what is left of the last region
  std::vector<void*> arena_memory_;
  std::vector<torii_region*> regions_;
};

}  // namespace torii::faults
