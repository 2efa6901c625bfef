// SPDX-License-Identifier: Apache-2.0
// The vectors of one call: where they lie, how they get fresh data, whether the result is right.
#pragma once

#include <torii/torii.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "perf/common/job.hpp"
#include "perf/common/options.hpp"
#include "perf/common/shared_memory.hpp"

namespace torii::perf {

/// Which elements are checked: all of a short vector, ranges spread over a long one.
struct Range {
  size_t first;
  size_t count;
};
std::vector<Range> checked_ranges(size_t count, size_t element_bytes);

/// Memory of one kind, freed with the object. Throws Failure(kNotPossible) when there is not enough.
class Vector {
 public:
  Vector(const Job& job, Memory memory, size_t bytes);
  ~Vector();
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  std::byte* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }
  /// The vector of another rank, of Memory::shared only.
  std::byte* data_of(int rank) const { return data_ + (rank - job_.rank()) * static_cast<std::ptrdiff_t>(stride_); }

 private:
  const Job& job_;
  Memory memory_;
  size_t bytes_;
  std::byte* data_ = nullptr;
  torii_region* region_ = nullptr;  ///< of adopted memory
  size_t stride_ = 0;               ///< bytes from rank to rank in shared_
  std::unique_ptr<SharedMemory> shared_;
};

/// The leaves of this rank, as torii_split deals all of them.
class Leaves {
 public:
  Leaves(const Job& job, size_t all);
  ~Leaves();
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;
  const torii_leaves* handle() const { return handle_; }
  size_t first() const { return first_; }
  size_t count() const { return count_; }

 private:
  torii_leaves* handle_ = nullptr;
  size_t first_ = 0, count_ = 0;
};

/// One call of a collective with its data. Two patterns of input alternate from call to call, so that a result left
/// over from the call before is never right.
class CallData {
 public:
  /// `bytes` is the size as nccl-tests count it; it is rounded up to whole elements (of every rank's block).
  /// `leaves`: the rank's; nullptr where there are none.
  CallData(const Job& job, const Options& options, Memory memory, size_t bytes, torii_type type, torii_op op,
           const Leaves* leaves = nullptr);

  const torii_call& call() const { return call_; }
  size_t bytes() const { return bytes_; }        ///< the size that is reported
  size_t elements() const { return elements_; }  ///< of that size
  size_t result_elements() const { return result_elements_; }
  std::byte* input() const { return input_; }
  std::byte* result() const { return result_; }
  /// Input and result of another rank, of Memory::shared and out of place only; a broadcast's two are one.
  std::byte* input_of(int rank) const { return first_->data_of(rank); }
  std::byte* result_of(int rank) const { return (second_ ? second_ : first_)->data_of(rank); }

  /// Copies pattern i % 2 into the input: the lines are then in this rank's cache and nowhere else.
  void refresh(int i);
  /// Fills the result with a value that no check accepts (unless it is the input).
  void spoil_result();
  /// Elements of this rank's result that are not, bit for bit, what pattern i % 2 must give.
  size_t count_wrong(torii_team* team, int i) const;
  /// XXH3-64 of the result; of a reduce_scatter, scan, exscan, scatter or alltoall, of all ranks' results together.
  /// Collective.
  uint64_t hash_result() const;
  bool has_result() const;  ///< false on the ranks that a reduce, a gather or an exscan gives nothing

 private:
  uint64_t seed(int i) const { return seed_ + static_cast<uint64_t>(i % 2) * 0x5851f42d4c957f2du; }
  void place(bool in_place);

  const Job& job_;
  uint64_t seed_;
  size_t element_bytes_;
  size_t bytes_ = 0, elements_ = 0, input_elements_ = 0, result_elements_ = 0;
  std::array<std::vector<std::byte>, 2> patterns_;
  std::unique_ptr<Vector> first_, second_;
  std::byte* input_ = nullptr;
  std::byte* result_ = nullptr;
  torii_call call_{};
};

}  // namespace torii::perf
