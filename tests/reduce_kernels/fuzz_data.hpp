// SPDX-License-Identifier: Apache-2.0
// Vectors for the kernel tests: random elements of every type with the awkward ones among them, in memory whose both
// ends are guarded, and a comparison that takes any NaN for any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "reduce_kernels/kernels.hpp"

namespace torii::kernels::testing {

using Random = std::mt19937_64;

/// A number in low..high.
inline int pick(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

/// Pages between two pages that fault: what reads or writes past either end dies.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  /// Where a vector of `bytes` may lie: at the very start, at the very end, or `offset` into the area.
  enum class Place { start, end, offset };
  char* place(size_t bytes, Place where, size_t offset_bytes);

  char* begin() const { return usable_; }
  size_t size() const { return usable_bytes_; }

 private:
  char* mapping_;
  size_t mapping_bytes_;
  char* usable_;
  size_t usable_bytes_;
};

/// Fills `count` elements. Floats get random bits, moderate values, zeros of both signs, infinities, NaNs and
/// subnormals; integers and pairs get many equal and zero elements.
void fill_random(Type type, bool wide, void* to, size_t count, Random& random);

/// The index of the first element whose bits differ (any NaN equals any NaN), or count.
size_t first_difference(Type type, bool wide, const void* left, const void* right, size_t count);

/// The bytes of one element in hexadecimal.
std::string element_text(Type type, bool wide, const void* vector, size_t index);

/// Every (op, type) that has a kernel.
struct Defined {
  Op op;
  Type type;
};
std::vector<Defined> all_defined();

/// "sum f32 avx512", for messages.
std::string label(Op op, Type type, Isa isa);

}  // namespace torii::kernels::testing
