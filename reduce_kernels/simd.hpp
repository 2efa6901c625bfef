// SPDX-License-Identifier: Apache-2.0
// What the vector kernels offer to the look-up. Private to reduce_kernels; the SIMD library is named only in the
// files that implement this.
#pragma once

#include "reduce_kernels/table.hpp"

namespace torii::kernels {

/// True when kernels for this vector ISA were built and this machine runs them.
bool simd_available(Isa isa) noexcept;

/// Bytes of one register, asked of the code built for that ISA. The ISA must be available.
size_t simd_vector_bytes(Isa isa) noexcept;

/// All kernels of an available ISA.
FoldTable simd_table(Isa isa) noexcept;

/// One fold of one source: copies `bytes` to every target, honouring the streaming hints.
void copy_to_targets(const Operands& operands, size_t bytes) noexcept;

/// Copies past the caches, by the best available ISA; the caller fences.
void simd_streaming_copy(void* target, const void* source, size_t bytes) noexcept;

/// The parts of an ISA's table, each compiled in a file of its own; nullptr when the ISA was not built.
using FillFn = void (*)(FoldTable& table);
FillFn simd_fill_arithmetic(Isa isa) noexcept;
FillFn simd_fill_bits(Isa isa) noexcept;
FillFn simd_fill_float(Isa isa) noexcept;
FillFn simd_fill_pairs(Isa isa) noexcept;

}  // namespace torii::kernels
