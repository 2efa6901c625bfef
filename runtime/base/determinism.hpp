// SPDX-License-Identifier: Apache-2.0
// The setting and team option DETERMINISM.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace torii {

/// How much of a result's bits is promised. `run`: a function of inputs, team, call and settings. `canonical`: a
/// function of the inputs, the number of ranks and their order alone (docs/design.md, "Determinism").
enum class Determinism : std::uint8_t { run, canonical };

inline constexpr std::array<std::string_view, 2> kDeterminismNames = {"run", "canonical"};

constexpr std::string_view name(Determinism determinism) noexcept {
  return kDeterminismNames[static_cast<std::size_t>(determinism)];
}
constexpr std::optional<Determinism> parse_determinism(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kDeterminismNames.size(); ++i) {
    if (kDeterminismNames[i] == text) return static_cast<Determinism>(i);
  }
  return std::nullopt;
}

}  // namespace torii
