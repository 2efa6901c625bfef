// SPDX-License-Identifier: Apache-2.0
// Ranks, blocks and places are of type int and never negative where they select an element.
#pragma once

#include <cstddef>

namespace torii {

/// The number as an index of an array.
constexpr std::size_t index(int value) noexcept { return static_cast<std::size_t>(value); }

}  // namespace torii
