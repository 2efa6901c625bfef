// SPDX-License-Identifier: Apache-2.0
// The catalogue: one row per algorithm. Whatever has a row is verified, simulated, drawn and measured.
#pragma once

#include <span>
#include <string_view>

#include "collectives/building/algorithm.hpp"

namespace torii {

std::span<const Algorithm> catalogue() noexcept;
/// The row of that name, or nullptr.
const Algorithm* find_algorithm(std::string_view name) noexcept;

}  // namespace torii
