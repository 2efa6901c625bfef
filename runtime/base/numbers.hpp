// SPDX-License-Identifier: Apache-2.0
// Reads numbers and sizes from text.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace torii {

/// Takes the number that `text` begins with off its front. Returns nothing, with `text` as it was, if there is none or
/// T cannot hold it. Blanks and a plus sign are no part of a number; `base` is for integers.
template <class T>
std::optional<T> take_number(std::string_view& text, [[maybe_unused]] int base = 10) noexcept {
  T value{};
  const char* const end = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::floating_point<T>) {
    result = std::from_chars(text.data(), end, value);
  } else {
    result = std::from_chars(text.data(), end, value, base);
  }
  if (result.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return value;
}

/// The number that the whole text is.
template <class T>
std::optional<T> parse_number(std::string_view text, int base = 10) noexcept {
  const std::optional<T> value = take_number<T>(text, base);
  return text.empty() ? value : std::nullopt;
}

/// "64", "16K", "4M" or "2G" (1024-based) to bytes.
std::optional<std::size_t> parse_bytes(std::string_view text) noexcept;
/// The shortest text that parse_bytes() reads back.
std::string bytes_text(std::size_t bytes);

}  // namespace torii
