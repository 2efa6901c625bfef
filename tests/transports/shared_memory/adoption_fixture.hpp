// SPDX-License-Identifier: Apache-2.0
// What the tests of adopted memory share: pages of their own, and an arena with its adoption.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "transports/shared_memory/adoption.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii::shared_memory {

inline constexpr std::size_t kPage = 4096;

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kUnderAddressSanitizer = true;
#else
inline constexpr bool kUnderAddressSanitizer = false;
#endif

/// Private anonymous pages between two that cannot be touched.
class OwnPages {
 public:
  explicit OwnPages(std::size_t pages) : bytes_(pages * kPage) {
    void* const at = mmap(nullptr, bytes_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    data_ = static_cast<std::byte*>(at) + kPage;
    EXPECT_EQ(mprotect(data_, bytes_, PROT_READ | PROT_WRITE), 0);
  }
  ~OwnPages() { munmap(data_ - kPage, bytes_ + 2 * kPage); }
  OwnPages(const OwnPages&) = delete;
  OwnPages& operator=(const OwnPages&) = delete;
  std::byte* data() const { return data_; }
  std::byte* page(std::size_t index) const { return data_ + index * kPage; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

/// Bytes that differ from place to place.
inline void fill(std::byte* from, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>((i * 31 + i / 251 + seed) & 255);
}
inline bool holds(const std::byte* from, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (from[i] != static_cast<std::byte>((i * 31 + i / 251 + seed) & 255)) return false;
  }
  return true;
}

class AdoptionTest : public ::testing::Test {
 protected:
  template <class Step>
  Status status_of(Step&& step) {
    message_.clear();
    try {
      step();
    } catch (const Error& error) {
      message_ = error.what();
      return error.status();
    }
    return Status::ok;
  }
  Status adopt(const void* address, std::size_t bytes) {
    return status_of([&] { adoption_.adopt(address, bytes); });
  }
  Status give_back(const void* address, std::size_t bytes) {
    return status_of([&] { adoption_.give_back(address, bytes); });
  }
  bool says(const char* words) const { return message_.find(words) != std::string::npos; }
  /// The bytes as a peer would see them; nullptr when it cannot.
  std::byte* as_peer(const std::byte* address, std::size_t bytes) const {
    const auto offset = adoption_.find(address, bytes);
    return offset ? arena_.base() + *offset : nullptr;
  }
  /// True when this address and the peers' show the same memory.
  bool is_one_memory(std::byte* address) {
    std::byte* const there = as_peer(address, 1);
    if (there == nullptr) return false;
    const std::byte before = *address;
    *there = before ^ std::byte{0xff};
    const bool same = *address == (before ^ std::byte{0xff});
    *address = before;
    return same && *there == before;
  }

  Arena arena_{kArenaBytesMin};
  Adoption adoption_{arena_};
  std::string message_;
};

}  // namespace torii::shared_memory
