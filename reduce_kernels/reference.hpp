// SPDX-License-Identifier: Apache-2.0
// The plain reference: one scalar loop per (operation, type), which defines the bits of all others.
// The vector kernels use it for the few elements that fill no vector.
#pragma once

#include "reduce_kernels/table.hpp"

namespace torii::kernels {

/// Initialised at compile time, so that a look-up is one load.
extern const FoldTable kReferenceTable;

}  // namespace torii::kernels
