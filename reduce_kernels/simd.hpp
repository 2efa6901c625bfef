// SPDX-License-Identifier: Apache-2.0
// The interface of the vector kernels for the look-up. Private to reduce_kernels; only the files that implement it name
// the SIMD library.
#pragma once

#include "reduce_kernels/table.hpp"

namespace torii::kernels {

/// True if kernels for this vector ISA were built and this machine runs them.
bool simd_available(Isa isa) noexcept;

/// Bytes of one register for the code built for that ISA. The ISA must be available.
size_t simd_vector_bytes(Isa isa) noexcept;

/// All kernels of an available ISA.
FoldTable simd_table(Isa isa) noexcept;

/// One fold of one source: copies `bytes` to every target, honouring the non-temporal hints.
void copy_to_targets(const Operands& operands, size_t bytes) noexcept;

/// Copies past the caches with the best available ISA; the caller fences.
void simd_non_temporal_copy(void* target, const void* source, size_t bytes) noexcept;

/// The parts of an ISA's table, each compiled in its own file; nullptr if the ISA was not built.
using FillFn = void (*)(FoldTable& table);
FillFn simd_fill_arithmetic(Isa isa) noexcept;
FillFn simd_fill_bits(Isa isa) noexcept;
FillFn simd_fill_float(Isa isa) noexcept;
FillFn simd_fill_pairs(Isa isa) noexcept;
FillFn simd_fill_small(Isa isa) noexcept;

}  // namespace torii::kernels
