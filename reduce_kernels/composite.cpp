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

// One piece of every temporary of the canonical expression fits into the first-level cache with its sources.
constexpr size_t kPieceBytes = 2048;

/// Up to this many sources the canonical expression is the left fold.
constexpr int kLeftFoldMax = 3;

void require(bool condition) noexcept {
  if (!condition) std::abort();
}

void require_counts(const Operands& operands) noexcept {
  require(operands.source_count >= 1);
  require(operands.target_count >= 1 && operands.target_count <= kTargetsMax);
}

/// A fold by a kernel whose elements may be wide: temporaries are wide wherever the type has a wide form.
struct KernelFold {
  FoldFn fold;
  Type type;

  size_t source_bytes(const Operands& operands, int index) const noexcept {
    return wire_size(type, is_wide(operands.wide_sources, index));
  }
  size_t target_bytes(const Operands& operands, int index) const noexcept {
    return wire_size(type, has_bit(operands.wide_targets, index));
  }
  size_t temporary_bytes() const noexcept { return wire_size(type, true); }
  bool temporaries_are_wide() const noexcept { return is_small_float(type); }
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
  Canonical(const Fold& fold, const Operands& in) noexcept : fold_(fold), in_(in) {}

  /// Evaluates E(0, all sources) of `count` elements, from element `first` on, into the targets of `out`.
  void evaluate(size_t first, Operands out, size_t count) noexcept {
    first_ = first;
    evaluate(0, in_.source_count, out, count);
  }

 private:
  void evaluate(int low, int high, Operands out, size_t count) const noexcept {
    const int sources = high - low;
    if (sources <= kLeftFoldMax) {
      const void* few[kLeftFoldMax];
      for (int s = 0; s < sources; ++s) few[s] = source(low + s);
      out.sources = few;
      out.source_count = sources;
      out.wide_sources = in_.wide_sources == nullptr ? nullptr : in_.wide_sources + low;
      fold_.run(out, count);
      return;
    }
    const int middle = low + static_cast<int>(std::bit_floor(static_cast<unsigned>(sources - 1)));
    alignas(64) char left[kTemporaryBytes];
    alignas(64) char right[kTemporaryBytes];
    half(low, middle, left, count);
    const void* halves[2] = {left, right};
    uint8_t wide[2] = {fold_.temporaries_are_wide(), fold_.temporaries_are_wide()};
    if (high - middle == 1) {
      halves[1] = source(middle);
      wide[1] = is_wide(in_.wide_sources, middle);
    } else {
      half(middle, high, right, count);
    }
    out.sources = halves;
    out.source_count = 2;
    out.wide_sources = fold_.temporaries_are_wide() ? wide : nullptr;
    fold_.run(out, count);
  }

  void half(int low, int high, void* temporary, size_t count) const noexcept {
    Operands out;
    out.targets = &temporary;
    out.target_count = 1;
    out.wide_targets = fold_.temporaries_are_wide() ? 1 : 0;
    evaluate(low, high, out, count);
  }

  const void* source(int index) const noexcept {
    return static_cast<const char*>(in_.sources[index]) + first_ * fold_.source_bytes(in_, index);
  }

  const Fold& fold_;
  const Operands& in_;
  size_t first_ = 0;
};

template <size_t kTemporaryBytes, typename Fold>
void canonical(const Fold& fold, const Operands& operands, size_t count) noexcept {
  if (operands.source_count <= kLeftFoldMax) return fold.run(operands, count);
  Canonical<Fold, kTemporaryBytes> expression(fold, operands);
  void* targets[kTargetsMax];
  Operands out = operands;
  out.targets = targets;
  const size_t piece_elements = std::max<size_t>(1, kPieceBytes / fold.temporary_bytes());
  for (size_t done = 0; done < count; done += piece_elements) {
    for (int t = 0; t < operands.target_count; ++t) {
      targets[t] = static_cast<char*>(operands.targets[t]) + done * fold.target_bytes(operands, t);
    }
    expression.evaluate(done, out, std::min(piece_elements, count - done));
  }
}

/// The fold of at least three sources, piece by piece. Partial results are in a temporary, since a target may be a
/// source that is still to be read.
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
      copy(target(t), target(0), piece * user.element_bytes, has_bit(operands.non_temporal_targets, t));
    }
  }
}

}  // namespace

void fold_pieces(FoldFn fold, const Operands& operands, const Pieces& pieces) noexcept {
  require_counts(operands);
  require(operands.source_count <= kPieceSourcesMax);
  const void* sources[kPieceSourcesMax];
  void* targets[kTargetsMax];
  std::copy_n(operands.sources, operands.source_count, sources);
  std::copy_n(operands.targets, operands.target_count, targets);
  Operands piece_operands = operands;
  piece_operands.sources = sources;
  piece_operands.targets = targets;
  for (size_t piece = 0; piece < pieces.piece_count; ++piece) {
    fold(piece_operands, pieces.element_count);
    for (int s = 0; s < operands.source_count; ++s) {
      sources[s] = static_cast<const char*>(sources[s]) + pieces.source_strides_bytes[s];
    }
    for (int t = 0; t < operands.target_count; ++t) {
      targets[t] = static_cast<char*>(targets[t]) + pieces.target_strides_bytes[t];
    }
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
    copy(operands.targets[t], result, bytes, has_bit(operands.non_temporal_targets, t));
  }
}

}  // namespace torii::kernels
