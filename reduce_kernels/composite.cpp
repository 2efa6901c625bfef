// SPDX-License-Identifier: Apache-2.0
// Folds made of other folds: strided pieces, the canonical expression, and user functions.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "reduce_kernels/kernels.hpp"
#include "reduce_kernels/table.hpp"

namespace torii::kernels {
namespace {

// One piece of every temporary of the canonical expression stays in the first-level cache with its sources.
constexpr size_t kPieceBytes = 2048;

void require(bool condition) noexcept {
  if (!condition) std::abort();
}

void require_counts(const Operands& operands) noexcept {
  require(operands.source_count >= 1 && operands.source_count <= kSourcesMax);
  require(operands.target_count >= 1 && operands.target_count <= kTargetsMax);
}

/// The addresses of operands some elements further on; the masks stay.
class Cursor {
 public:
  explicit Cursor(const Operands& operands) noexcept : view_(operands) {
    require_counts(operands);
    std::copy_n(operands.sources, operands.source_count, sources_);
    std::copy_n(operands.targets, operands.target_count, targets_);
    view_.sources = sources_;
    view_.targets = targets_;
  }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  const Operands& view() const noexcept { return view_; }

  void advance_source(int index, ptrdiff_t bytes) noexcept {
    sources_[index] = static_cast<const char*>(sources_[index]) + bytes;
  }
  void advance_target(int index, ptrdiff_t bytes) noexcept {
    targets_[index] = static_cast<char*>(targets_[index]) + bytes;
  }

 private:
  Operands view_;
  const void* sources_[kSourcesMax];
  void* targets_[kTargetsMax];
};

/// A fold by a kernel whose elements may be wide: temporaries are wide wherever the type has a wide form.
struct KernelFold {
  FoldFn fold;
  Type type;

  size_t source_bytes(const Operands& operands, int index) const noexcept {
    return wire_size(type, has_bit(operands.wide_sources, index));
  }
  size_t target_bytes(const Operands& operands, int index) const noexcept {
    return wire_size(type, has_bit(operands.wide_targets, index));
  }
  size_t temporary_bytes() const noexcept { return wire_size(type, true); }
  bool temporaries_are_wide() const noexcept { return is_float16(type); }
  void run(const Operands& operands, size_t count) const noexcept { fold(operands, count); }
};

struct UserFold {
  const UserFunction& user;

  size_t source_bytes(const Operands&, int) const noexcept { return user.element_bytes; }
  size_t target_bytes(const Operands&, int) const noexcept { return user.element_bytes; }
  size_t temporary_bytes() const noexcept { return user.element_bytes; }
  bool temporaries_are_wide() const noexcept { return false; }
  void run(const Operands& operands, size_t count) const noexcept { fold_user(user, operands, count); }
};

template <typename Fold, size_t kTemporaryBytes>
class Canonical {
 public:
  explicit Canonical(const Fold& fold) noexcept : fold_(fold) {}

  /// Evaluates E(low, high) over one piece into the targets of `out`, whose sources are ignored.
  void evaluate(const Operands& in, int low, int high, Operands out, size_t count) const noexcept {
    const int sources = high - low;
    if (sources <= 3) {  // up to three sources the expression is the left fold
      out.sources = in.sources + low;
      out.source_count = sources;
      out.wide_sources = low < 32 ? in.wide_sources >> low : 0;
      fold_.run(out, count);
      return;
    }
    const int middle = low + static_cast<int>(std::bit_floor(static_cast<unsigned>(sources - 1)));
    alignas(64) char left[kTemporaryBytes];
    alignas(64) char right[kTemporaryBytes];
    const bool left_wide = half(in, low, middle, left, count);
    const void* halves[2] = {left, right};
    bool right_wide = false;
    if (high - middle == 1) {
      halves[1] = in.sources[middle];
      right_wide = has_bit(in.wide_sources, middle);
    } else {
      right_wide = half(in, middle, high, right, count);
    }
    out.sources = halves;
    out.source_count = 2;
    out.wide_sources = (left_wide ? 1u : 0u) | (right_wide ? 2u : 0u);
    fold_.run(out, count);
  }

 private:
  bool half(const Operands& in, int low, int high, void* temporary, size_t count) const noexcept {
    const bool wide = fold_.temporaries_are_wide();
    Operands out;
    out.targets = &temporary;
    out.target_count = 1;
    out.wide_targets = wide ? 1 : 0;
    evaluate(in, low, high, out, count);
    return wide;
  }

  const Fold& fold_;
};

template <size_t kTemporaryBytes, typename Fold>
void canonical(const Fold& fold, const Operands& operands, size_t count) noexcept {
  if (operands.source_count <= 3) return fold.run(operands, count);
  Cursor cursor(operands);
  const Canonical<Fold, kTemporaryBytes> expression(fold);
  const size_t piece_elements = std::max<size_t>(1, kPieceBytes / fold.temporary_bytes());
  for (size_t done = 0; done < count; done += piece_elements) {
    const size_t piece = std::min(piece_elements, count - done);
    expression.evaluate(cursor.view(), 0, operands.source_count, cursor.view(), piece);
    for (int s = 0; s < operands.source_count; ++s) {
      cursor.advance_source(s, static_cast<ptrdiff_t>(piece * fold.source_bytes(operands, s)));
    }
    for (int t = 0; t < operands.target_count; ++t) {
      cursor.advance_target(t, static_cast<ptrdiff_t>(piece * fold.target_bytes(operands, t)));
    }
  }
}

/// The fold of at least three sources, piece by piece: the partial results live in a temporary, since a target may be
/// one of the sources that are still to be read.
void fold_user_many(const UserFunction& user, const Operands& operands, size_t count) noexcept {
  alignas(64) char partial[kUserElementBytesMax];
  const size_t piece_elements = std::max<size_t>(1, std::min(kPieceBytes, sizeof partial) / user.element_bytes);
  for (size_t done = 0; done < count; done += piece_elements) {
    const size_t piece = std::min(piece_elements, count - done);
    const size_t offset = done * user.element_bytes;
    const auto source = [&](int s) { return static_cast<const char*>(operands.sources[s]) + offset; };
    const auto target = [&](int t) { return static_cast<char*>(operands.targets[t]) + offset; };
    const int last = operands.source_count - 1;
    user.call(source(0), source(1), partial, piece, user.data);
    for (int s = 2; s < last; ++s) user.call(partial, source(s), partial, piece, user.data);
    user.call(partial, source(last), target(0), piece, user.data);
    for (int t = 1; t < operands.target_count; ++t) {
      copy(target(t), target(0), piece * user.element_bytes, has_bit(operands.streaming_targets, t));
    }
  }
}

}  // namespace

void fold_pieces(FoldFn fold, const Operands& operands, const Pieces& pieces) noexcept {
  Cursor cursor(operands);
  for (size_t piece = 0; piece < pieces.piece_count; ++piece) {
    fold(cursor.view(), pieces.element_count);
    for (int s = 0; s < operands.source_count; ++s) cursor.advance_source(s, pieces.source_strides_bytes[s]);
    for (int t = 0; t < operands.target_count; ++t) cursor.advance_target(t, pieces.target_strides_bytes[t]);
  }
}

void fold_canonical(FoldFn fold, Type type, const Operands& operands, size_t count) noexcept {
  require_counts(operands);
  canonical<kPieceBytes>(KernelFold{fold, type}, operands, count);
}

void fold_user_canonical(const UserFunction& user, const Operands& operands, size_t count) noexcept {
  require_counts(operands);
  canonical<kUserElementBytesMax>(UserFold{user}, operands, count);
}

void fold_user(const UserFunction& user, const Operands& operands, size_t count) noexcept {
  require_counts(operands);
  require(user.element_bytes >= 1 && user.element_bytes <= kUserElementBytesMax);
  if (operands.source_count > 2) return fold_user_many(user, operands, count);
  const size_t bytes = count * user.element_bytes;
  int first_copy = 0;
  if (operands.source_count == 2) {
    user.call(operands.sources[0], operands.sources[1], operands.targets[0], count, user.data);
    first_copy = 1;
  }
  const void* result = operands.source_count == 2 ? operands.targets[0] : operands.sources[0];
  for (int t = first_copy; t < operands.target_count; ++t) {
    copy(operands.targets[t], result, bytes, has_bit(operands.streaming_targets, t));
  }
}

}  // namespace torii::kernels
