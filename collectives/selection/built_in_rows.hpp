// SPDX-License-Identifier: Apache-2.0
// The committed tune tables as data. cmake/torii_tune_rows.cmake makes the definitions from the JSON files beside this
// one when the build is configured, so that no program reads them as text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/selection/tune_table.hpp"

namespace torii {

inline constexpr std::size_t kBuiltInTables = 3;
/// The rows of tune_table_torus.json, tune_table_switch.json and tune_table.json.
std::array<std::span<const TuneRow>, kBuiltInTables> built_in_rows() noexcept;
/// The machine on which those for nodes were measured.
extern const MachineShape kBuiltInMachine;
/// A digest of the three texts, which all ranks compare.
extern const std::uint64_t kBuiltInDigest;

}  // namespace torii
