// SPDX-License-Identifier: Apache-2.0
// The loops of the vector kernels, compiled once per ISA. One block is two vectors (a, b): two neighbours of a plain
// type, the even and odd or low and high halves of 16-bit floats, real and imaginary part, or value and index. No
// vector is in an array or a structure, since vectors of unknown length (SVE) cannot be.

// The function of this name in the namespace of an ISA; nullptr if that ISA is not built.
#ifndef TORII_CHOOSE_ISA
#define TORII_CHOOSE_ISA(isa, function)               \
  ((isa) == Isa::sse4     ? HWY_CHOOSE_SSE4(function) \
   : (isa) == Isa::avx2   ? HWY_CHOOSE_AVX2(function) \
   : (isa) == Isa::avx512 ? HWY_CHOOSE_AVX3(function) \
   : (isa) == Isa::neon   ? HWY_CHOOSE_NEON(function) \
   : (isa) == Isa::sve    ? HWY_CHOOSE_SVE(function)  \
                          : nullptr)
#endif

// Included once per ISA, hence this toggled guard instead of #pragma once.
#if defined(TORII_SIMD_FOLD_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef TORII_SIMD_FOLD_TOGGLE
#undef TORII_SIMD_FOLD_TOGGLE
#else
#define TORII_SIMD_FOLD_TOGGLE
#endif

#include <hwy/highway.h>

#include "reduce_kernels/reference.hpp"
#include "reduce_kernels/simd.hpp"
#include "reduce_kernels/simd_lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace torii::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without a vector ISA the reference kernels serve; the SIMD library's scalar fallback would gain nothing.
#if HWY_TARGET != HWY_SCALAR

// Shorter targets are soon read again, and should stay in the caches.
inline constexpr size_t kNonTemporalBytesMin = 4096;

template <class Lanes>
using VecOf = hn::Vec<typename Lanes::D>;

/// Combines the block at `index` of one more source into (a, b).
template <class Lanes, class Operation>
HWY_INLINE void combine_from(typename Lanes::D d, const void* source, size_t index, bool wide, VecOf<Lanes>& a,
                             VecOf<Lanes>& b) {
  VecOf<Lanes> next_a = hn::Zero(d);
  VecOf<Lanes> next_b = hn::Zero(d);
  Lanes::load(d, source, index, wide, next_a, next_b);
  Operation::combine(d, a, b, next_a, next_b);
}

/// The sources of one fold. kCount is known at compile time, or 0: then it is read from the operands, and wide sources
/// are allowed.
template <class Lanes, class Operation, int kCount>
struct Sources {
  const Operands& operands;
  const uint8_t* wide;
  const void* s0;
  const void* s1;
  const void* s2;
  const void* s3;

  HWY_INLINE explicit Sources(const Operands& all)
      : operands(all),
        wide(all.wide_sources),
        s0(all.sources[0]),
        s1(kCount > 1 ? all.sources[1] : nullptr),
        s2(kCount > 2 ? all.sources[2] : nullptr),
        s3(kCount > 3 ? all.sources[3] : nullptr) {}

  HWY_INLINE void fold(typename Lanes::D d, size_t index, VecOf<Lanes>& a, VecOf<Lanes>& b) const {
    if constexpr (kCount == 0) {
      Lanes::load(d, s0, index, is_wide(wide, 0), a, b);
      for (int s = 1; s < operands.source_count; ++s) {
        combine_from<Lanes, Operation>(d, operands.sources[s], index, is_wide(wide, s), a, b);
      }
    } else {
      Lanes::load(d, s0, index, false, a, b);
      if constexpr (kCount > 1) combine_from<Lanes, Operation>(d, s1, index, false, a, b);
      if constexpr (kCount > 2) combine_from<Lanes, Operation>(d, s2, index, false, a, b);
      if constexpr (kCount > 3) combine_from<Lanes, Operation>(d, s3, index, false, a, b);
    }
  }
};

/// The targets of one fold, like Sources. `non-temporal` has the targets that are aligned for non-temporal stores.
template <class Lanes, int kCount>
struct Targets {
  const Operands& operands;
  void* t0;
  void* t1;
  uint32_t non_temporal;

  HWY_INLINE Targets(const Operands& all, uint32_t non_temporal_mask)
      : operands(all), t0(all.targets[0]), t1(kCount > 1 ? all.targets[1] : nullptr), non_temporal(non_temporal_mask) {}

  HWY_INLINE void store(typename Lanes::D d, size_t index, VecOf<Lanes> a, VecOf<Lanes> b) const {
    if constexpr (kCount == 0) {
      for (int t = 0; t < operands.target_count; ++t) {
        Lanes::store(d, operands.targets[t], index, has_bit(operands.wide_targets, t), a, b);
      }
    } else {
      Lanes::store(d, t0, index, false, a, b);
      keep_order();
      if constexpr (kCount > 1) Lanes::store(d, t1, index, false, a, b);
    }
  }

  HWY_INLINE void stream(typename Lanes::D d, size_t index, VecOf<Lanes> a, VecOf<Lanes> b) const {
    if constexpr (kCount == 0) {
      for (int t = 0; t < operands.target_count; ++t) {
        if (has_bit(non_temporal, t)) {
          Lanes::stream(d, operands.targets[t], index, a, b);
        } else {
          Lanes::store(d, operands.targets[t], index, has_bit(operands.wide_targets, t), a, b);
        }
      }
    } else {
      Lanes::stream(d, t0, index, a, b);
      keep_order();
      if constexpr (kCount > 1) Lanes::stream(d, t1, index, a, b);
    }
  }
};

/// Folds the elements begin..end, at least one block. If they are not whole blocks, the last block overlaps the one
/// before it. It is computed first, while no target that is also a source has been written, and stored last.
template <class Lanes, class Operation, int kSources, int kTargets, bool kNonTemporal>
HWY_NOINLINE void fold_blocks(const Operands& operands, size_t begin, size_t end, uint32_t non_temporal) {
  const typename Lanes::D d;
  const Sources<Lanes, Operation, kSources> sources(operands);
  const Targets<Lanes, kTargets> targets(operands, non_temporal);
  const size_t block = Lanes::elements(d);
  VecOf<Lanes> last_a = hn::Zero(d);
  VecOf<Lanes> last_b = hn::Zero(d);
  if ((end - begin) % block != 0) sources.fold(d, end - block, last_a, last_b);
  size_t i = begin;
  if constexpr (kNonTemporal) {
    // One line at a time: loading several lines and then storing them past the caches was up to a tenth slower.
    for (; i + block <= end; i += block) {
      VecOf<Lanes> a = hn::Zero(d);
      VecOf<Lanes> b = hn::Zero(d);
      sources.fold(d, i, a, b);
      targets.stream(d, i, a, b);
      keep_order();
    }
  }
  for (; i + 2 * block <= end; i += 2 * block) {
    VecOf<Lanes> a0 = hn::Zero(d);
    VecOf<Lanes> b0 = hn::Zero(d);
    VecOf<Lanes> a1 = hn::Zero(d);
    VecOf<Lanes> b1 = hn::Zero(d);
    sources.fold(d, i, a0, b0);
    sources.fold(d, i + block, a1, b1);
    targets.store(d, i, a0, b0);
    keep_order();
    targets.store(d, i + block, a1, b1);
  }
  if (i + block <= end) {
    VecOf<Lanes> a = hn::Zero(d);
    VecOf<Lanes> b = hn::Zero(d);
    sources.fold(d, i, a, b);
    targets.store(d, i, a, b);
    i += block;
  }
  if (i < end) targets.store(d, end - block, last_a, last_b);
}

/// For fewer elements than one block: vectors of 16 bytes if the elements fill two, else the reference loop.
template <class Lanes, class Operation, Op kOp, Type kType>
HWY_NOINLINE void fold_short(const Operands& operands, size_t count) {
  using Short = typename Lanes::Short;
  const typename Short::D d;
  if (count >= Short::elements(d)) {
    fold_blocks<Short, Operation, 0, 0, false>(operands, 0, count, 0);
  } else {
    kReferenceTable.get(kOp, kType)(operands, count);
  }
}

/// The numbers of sources and targets that have their own loops; all others share one that reads the numbers at run
/// time.
enum class Loops { shared, few, many };

/// Streams to the targets that ask for it and have the alignment of the first one that does.
template <class Lanes, class Operation, Op kOp, Type kType, Loops kLoops>
HWY_NOINLINE void fold_non_temporal(const Operands& operands, size_t count) {
  using Line = typename Lanes::NonTemporal;
  constexpr size_t kElementBytes = Line::kElementBytes;
  const size_t alignment = Line::elements(typename Line::D()) * kElementBytes;
  size_t head = 0;
  uint32_t aligned = 0;
  for (int t = 0; t < operands.target_count; ++t) {
    if (!has_bit(operands.non_temporal_targets & ~operands.wide_targets, t)) continue;
    const auto address = reinterpret_cast<uintptr_t>(operands.targets[t]);
    if (aligned == 0) {
      const size_t gap = (alignment - address % alignment) % alignment;
      if (gap % kElementBytes != 0) continue;
      head = gap / kElementBytes;
    }
    if ((address + head * kElementBytes) % alignment == 0) aligned |= 1u << t;
  }
  // The elements before `head` are folded once on their own and must not be read again in place. They are not: the
  // blocks begin at `head`, and the last block cannot reach back that far.
  if (head != 0) fold_short<Lanes, Operation, kOp, kType>(operands, head);
  [[maybe_unused]] const bool narrow = !Lanes::kHasWide || !has_wide(operands);
  if constexpr (kLoops == Loops::many) {
    if (narrow && operands.source_count == 2 && operands.target_count == 1 && aligned == 1) {
      return fold_blocks<Line, Operation, 2, 1, true>(operands, head, count, aligned);
    }
    if (narrow && operands.source_count == 3 && operands.target_count == 1 && aligned == 1) {
      return fold_blocks<Line, Operation, 3, 1, true>(operands, head, count, aligned);
    }
    if (narrow && operands.source_count == 2 && operands.target_count == 2 && aligned == 3) {
      return fold_blocks<Line, Operation, 2, 2, true>(operands, head, count, aligned);
    }
  }
  fold_blocks<Line, Operation, 0, 0, true>(operands, head, count, aligned);
}

/// The kernel behind FoldFn: selects the loop for these numbers of sources and targets.
template <class Lanes, class Operation, Op kOp, Type kType, Loops kLoops>
void fold(const Operands& operands, size_t count) noexcept {
  const bool wide = Lanes::kHasWide && has_wide(operands);
  if (Lanes::kLoadsAsIs && operands.source_count == 1 && !wide)
    return copy_to_targets(operands, count * Lanes::kElementBytes);
  const typename Lanes::D d;
  if (count < Lanes::elements(d)) return fold_short<Lanes, Operation, kOp, kType>(operands, count);
  if constexpr (Lanes::kCanStream) {
    if (operands.non_temporal_targets != 0 && count * Lanes::kElementBytes >= kNonTemporalBytesMin) {
      return fold_non_temporal<Lanes, Operation, kOp, kType, kLoops>(operands, count);
    }
  }
  if constexpr (kLoops != Loops::shared) {
    if (!wide && operands.target_count == 1 && operands.source_count == 2) {
      return fold_blocks<Lanes, Operation, 2, 1, false>(operands, 0, count, 0);
    }
  }
  if constexpr (kLoops == Loops::many) {
    if (!wide && operands.target_count == 1) {
      if (operands.source_count == 3) return fold_blocks<Lanes, Operation, 3, 1, false>(operands, 0, count, 0);
      if (operands.source_count == 4) return fold_blocks<Lanes, Operation, 4, 1, false>(operands, 0, count, 0);
    }
    if (!wide && operands.target_count == 2) {
      if (operands.source_count == 2) return fold_blocks<Lanes, Operation, 2, 2, false>(operands, 0, count, 0);
      if (operands.source_count == 3) return fold_blocks<Lanes, Operation, 3, 2, false>(operands, 0, count, 0);
    }
  }
  fold_blocks<Lanes, Operation, 0, 0, false>(operands, 0, count, 0);
}

/// A type whose elements consist of `kParts` elements of the kernel's type.
template <class Lanes, class Operation, Op kOp, Type kType, Loops kLoops, size_t kParts>
void fold_parts(const Operands& operands, size_t count) noexcept {
  fold<Lanes, Operation, kOp, kType, kLoops>(operands, count * kParts);
}

#endif  // HWY_TARGET != HWY_SCALAR
}  // namespace torii::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TORII_SIMD_FOLD_TOGGLE
