// SPDX-License-Identifier: Apache-2.0
// Types, operations and buffers of the differential fuzzer.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace torii::clients {

using Random = std::mt19937_64;

/// A whole number from `least` to `most`, the same for the same state on every machine.
inline int draw(Random& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
}

/// What a predefined type holds, which says how values are written and which operations MPI defines for it.
enum class Holds : std::uint8_t { integer, real, complex, truth, bytes, pair };

struct Basic {
  const char* name;
  MPI_Datatype type;
  Holds holds;
  std::size_t bytes;        ///< from one element to the next
  std::size_t value_bytes;  ///< of an integer, a real, a part of a complex number, the value of a pair
};

const std::vector<Basic>& basics();

/// Writes the number `value` as an element. The bytes that belong to no value stay as they are.
void write_value(const Basic& basic, int value, unsigned char* element);
/// Sets the bytes of an element that MPI does not define (holes of pairs, padding of long double) to zero.
void clear_holes(const Basic& basic, unsigned char* element);

/// An element of a derived type: where its basic elements lie, and the type handle. Owns the handle.
class Layout {
 public:
  /// The shapes: 0 the basic type itself, 1 contiguous, 2 a vector with gaps, 3 with an extent of three basic elements,
  /// 4 scattered with a true lower bound above 0. Shapes 0 and 3 hold one basic element, 1 and 4 three, 2 four.
  static constexpr int kShapes = 5;
  /// Every shape holds a divisor of this many basic elements.
  static constexpr int kUnit = 12;
  /// Two basic elements: contiguous, or with gaps.
  static Layout pair_of(const Basic& basic, bool gaps);
  Layout(const Basic& basic, int shape);
  ~Layout();
  Layout(Layout&& other) noexcept;
  Layout& operator=(Layout&&) = delete;

  MPI_Datatype type() const { return type_; }
  const Basic& basic() const { return basic_; }
  std::size_t extent() const { return extent_; }
  /// Those in front of the element's address wrap, as the sums in which they are used.
  const std::vector<std::size_t>& places() const { return places_; }
  int per_element() const { return static_cast<int>(places_.size()); }

 private:
  Layout(const Basic& basic, MPI_Datatype type, std::vector<std::size_t> places, bool owned);
  void adopt(MPI_Datatype type, std::vector<std::size_t> places);

  Basic basic_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool owned_ = false;
  std::size_t extent_ = 0;
  std::vector<std::size_t> places_;
};

/// Memory of `elements` elements between margins, all of it filled with a pattern.
class Buffer {
 public:
  Buffer(const Layout& layout, std::size_t elements);
  void* data() { return bytes_.data() + kMargin; }
  /// Writes value(i) for the i-th basic element counted from element `first`, `count` elements.
  template <typename Value>
  void fill(const Layout& layout, std::size_t first, std::size_t count, const Value& value) {
    std::size_t index = 0;
    for (std::size_t element = first; element < first + count; ++element) {
      for (const std::size_t place : layout.places()) {
        write_value(layout.basic(), value(index++), bytes_.data() + (kMargin + element * layout.extent() + place));
      }
    }
  }
  /// The first byte in which the first `elements` elements differ, holes of values not included but gaps between
  /// elements are, and the margins where all elements are looked at; -1 when they are equal.
  static std::ptrdiff_t first_difference(const Layout& layout, Buffer a, Buffer b, std::size_t elements);

 private:
  static constexpr std::size_t kMargin = 64;
  std::size_t elements_;
  std::vector<unsigned char> bytes_;
};

/// An operation, and whether torii's kernels know it; made once.
struct Operation {
  std::string name;
  MPI_Op op;
};

/// The predefined operations that MPI defines for the type.
std::vector<Operation> operations_of(const Basic& basic);
/// User operations on elements of `layout`, whose basic type is MPI_UINT32_T: a sum that commutes, and for elements of
/// two the composition of affine maps x -> a x + b, which does not. The layout must outlive their use.
void use_layout(const Layout& layout);
MPI_Op user_sum();
MPI_Op user_affine();
void make_user_operations();
void free_user_operations();

}  // namespace torii::clients
