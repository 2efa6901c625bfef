// SPDX-License-Identifier: Apache-2.0
// Sweep lists of three dimensions, and of two of which one wraps.
#include "collectives/sweep_parts.hpp"

namespace torii {

SweepOffsets box_offsets(const SweepShape& shape) { return counted_offsets(shape.extents, shape.wraps); }

}  // namespace torii
