// SPDX-License-Identifier: Apache-2.0
// Reduction kernels: fold several vectors into one or more in a single pass. Every (operation, type) has a plain
// reference and vector versions with the same bits; which one runs is chosen at run time and can be forced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reduce_kernels/types.hpp"

namespace torii::kernels {

/// Instruction sets. `automatic` is the fastest one on this machine for the operation and type, `reference` the plain
/// C++ loops.
enum class Isa : uint8_t { automatic, reference, sse4, avx2, avx512, neon, sve };
inline constexpr int kIsaCount = 7;

const char* name(Isa isa) noexcept;
std::optional<Isa> parse_isa(std::string_view text) noexcept;

/// The widest one that was built and that this machine runs.
Isa best_isa() noexcept;

/// The instruction set that `isa` selects for this operation and type: itself unless it is `automatic`.
Isa resolve(Isa isa, Op op, Type type) noexcept;

/// All that were built and that this machine runs, `reference` first, the best last. Never contains `automatic`.
std::vector<Isa> available_isas();

/// Bytes of one vector register for the code built for `isa`; 0 if it is not available here. 8 for reference.
size_t vector_bytes(Isa isa) noexcept;

/// The most targets of one fold: the masks have a bit for each. The number of sources is not limited.
inline constexpr int kTargetsMax = 32;

/// The vectors of one fold. A target may be one of the sources (same address and element size, in place); otherwise no
/// target may overlap a source or another target. Addresses need no alignment.
struct Operands {
  const void* const* sources = nullptr;
  int source_count = 0;  ///< at least 1
  void* const* targets = nullptr;
  int target_count = 0;  ///< 1..kTargetsMax
  /// For each source, whether it holds float although the type is a small float. nullptr means that none does, as for
  /// all other types.
  const uint8_t* wide_sources = nullptr;
  /// Bit i: the same for target i. Must be 0 for all other types. Bits past the count are ignored in both masks.
  uint32_t wide_targets = 0;
  /// Bit i: store to target i past the caches where possible. A hint: bits of the result never depend on it. Such
  /// stores are weakly ordered: the CALLER must run store_fence() before it signals that the target is complete.
  uint32_t non_temporal_targets = 0;
};

/// Writes ((s0 op s1) op s2) ... of `count` elements to every target; one source is copied (converted).
/// - f16, bf16, f8e4m3, f8e5m2: all operands are widened, folded in float and rounded once, to nearest even, at each
///   target that is not wide; a wide target gets the float. What overflows becomes infinity, or NaN in f8e4m3.
/// - boolean: all operands are taken as 0 or 1, one source alone too. sum, max and bor are lor; prod, min and band are
///   land; bxor is lxor.
/// - min, max: a NaN wins, -0 < +0. Any NaN equals any other: which NaN comes out is not specified.
/// - integers wrap. land, lor, lxor give 0 or 1 (one source alone is copied as it is).
/// - complex prod is (ar*br - ai*bi, ar*bi + ai*br), each operation rounded, in that order.
/// - minloc, maxloc: the result is one whole operand, padding included. The better value wins in the order of min and
///   max; of equal values the smaller index; a NaN beats every number and of two NaNs the smaller index wins.
/// Reads nothing outside the vectors. count may be 0.
using FoldFn = void (*)(const Operands& operands, size_t count) noexcept;

/// The kernel, or nullptr if op is not defined for the type (why_not() says why) or the ISA is not available. Op::user
/// has no kernel: see fold_user().
FoldFn find(Op op, Type type, Isa isa = Isa::automatic) noexcept;

/// Why op is not defined for the type, as a sentence for the user; nullptr if it is defined.
const char* why_not(Op op, Type type) noexcept;

/// Copies `bytes` in the fastest way for that size; the areas must not overlap unless they are equal. `non-temporal`
/// stores past the caches (see Operands::non_temporal_targets: the caller fences).
void copy(void* target, const void* source, size_t bytes, bool non_temporal) noexcept;

/// Orders non-temporal stores before all later stores.
void store_fence() noexcept;

/// The most sources of fold_pieces().
inline constexpr int kPieceSourcesMax = 256;

/// Many equal pieces at constant distances. Strides are in bytes, one per source and one per target.
struct Pieces {
  size_t element_count = 0;  ///< elements in each piece
  size_t piece_count = 0;
  const ptrdiff_t* source_strides_bytes = nullptr;
  const ptrdiff_t* target_strides_bytes = nullptr;
};

/// Runs `fold` on every piece; operands contain the addresses of the first piece.
void fold_pieces(FoldFn fold, const Operands& operands, const Pieces& pieces) noexcept;

/// The expression of the determinism level `canonical` over the sources in order: E(lo,hi) = E(lo,m) op E(m,hi) with m
/// = lo + the largest power of two below hi-lo. Small floats stay float inside and are rounded once per target.
void fold_canonical(FoldFn fold, Type type, const Operands& operands, size_t count) noexcept;

/// An embedder's operation. call() writes count elements left op right to out, which may be the same address as left
/// or as right; it must not throw.
struct UserFunction {
  void (*call)(const void* left, const void* right, void* out, size_t count, void* data) = nullptr;
  void* data = nullptr;
  size_t element_bytes = 0;  ///< 1..kUserElementBytesMax
};
inline constexpr size_t kUserElementBytesMax = 4096;

/// Like FoldFn, for a user function, in the same order: call() always gets the partial result of the earlier sources as
/// left. There are no wide operands; the non-temporal hint applies only where a result is copied.
void fold_user(const UserFunction& user, const Operands& operands, size_t count) noexcept;

/// Like fold_canonical, for a user function.
void fold_user_canonical(const UserFunction& user, const Operands& operands, size_t count) noexcept;

}  // namespace torii::kernels
