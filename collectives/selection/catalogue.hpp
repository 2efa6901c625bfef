// SPDX-License-Identifier: Apache-2.0
// The catalogue: one row per algorithm. Every algorithm with a row is verified, simulated, drawn and measured.
#pragma once

#include <span>
#include <string_view>

#include "collectives/building/algorithm.hpp"

namespace torii {

/// The rows that catalogue.txt lists, in its order.
std::span<const Algorithm> catalogue() noexcept;
/// The row of that name, or nullptr.
const Algorithm* find_algorithm(std::string_view name) noexcept;
/// The names of all rows in the order of the catalogue, for Settings::load(). They are valid until the process has
/// ended, in destructors of static objects too.
std::span<const std::string_view> algorithm_names() noexcept;

}  // namespace torii
