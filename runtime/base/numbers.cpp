// SPDX-License-Identifier: Apache-2.0
// Sizes with units.
#include "runtime/base/numbers.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace torii {
namespace {

constexpr std::string_view kUnits[] = {"", "K", "M", "G"};

}  // namespace

std::optional<std::size_t> parse_bytes(std::string_view text) noexcept {
  const auto value = take_number<std::size_t>(text);
  const auto* const unit = std::ranges::find(kUnits, text);
  const auto shift = 10 * (unit - std::begin(kUnits));
  if (!value || unit == std::end(kUnits) || *value > (SIZE_MAX >> shift)) return std::nullopt;
  return *value << shift;
}

std::string bytes_text(std::size_t bytes) {
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + std::string(kUnits[unit]);
}

}  // namespace torii
