// SPDX-License-Identifier: Apache-2.0
// The catalogue: one row per algorithm. Whatever has a row is verified, simulated, drawn and measured.
#pragma once

#include <span>
#include <string_view>

#include "collectives/building/algorithm.hpp"

namespace torii {

/// The rows that catalogue.txt lists, in its order.
std::span<const Algorithm> catalogue() noexcept;
/// The row of that name, or nullptr.
const Algorithm* find_algorithm(std::string_view name) noexcept;
/// The names of all rows in the order of the catalogue, for Settings::load(). They live as long as the process.
std::span<const std::string_view> algorithm_names();

}  // namespace torii
