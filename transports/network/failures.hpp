// SPDX-License-Identifier: Apache-2.0
// Texts of engines' failures.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

namespace torii::transports {

/// The result of `make`; empty if memory is short.
template <class Make>
std::string text_or_none(const Make& make) noexcept {
  try {
    return make();
  } catch (const std::exception&) {
    return {};
  }
}

inline std::string failed_write(const std::string& engine, std::size_t bytes, int peer, const std::string& cause) {
  return engine + ": a write of " + std::to_string(bytes) + " bytes to rank " + std::to_string(peer) +
         " failed: " + cause;
}

}  // namespace torii::transports
