// SPDX-License-Identifier: Apache-2.0
// How tests look at an arena.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>

#include "runtime/base/status.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::shared_memory {

inline constexpr std::size_t kLeastBytes = kArenaBytesMin;

/// Memory that the arena's file holds now.
inline std::size_t resident_bytes(const Arena& arena) {
  struct stat info {};
  EXPECT_EQ(fstat(arena.fd(), &info), 0);
  return static_cast<std::size_t>(info.st_blocks) * 512;
}

template <class Step>
Status status_of(Step&& step) {
  try {
    step();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.status();
  }
  return Status::ok;
}

inline bool is_zero(const std::byte* from, std::size_t bytes) {
  return std::all_of(from, from + bytes, [](std::byte one) { return one == std::byte{0}; });
}

}  // namespace torii::shared_memory
