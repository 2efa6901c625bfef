// SPDX-License-Identifier: Apache-2.0
// The beginning of a value for a message: a file may hold megabytes where a word was expected.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace torii {

/// The whole text where it is short, or else its beginning and its length.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t kBytesMax = 500;
  if (text.size() <= kBytesMax) return std::string(text);
  std::size_t bytes = kBytesMax;
  // Not within a character of UTF-8, whose further bytes are 10xxxxxx.
  for (int back = 0; back < 3 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80; ++back) --bytes;
  return std::string(text.substr(0, bytes)) + "... (" + std::to_string(text.size()) + " bytes)";
}

}  // namespace torii
