// SPDX-License-Identifier: Apache-2.0
// Blocks of a vector that have pages between them which nobody may touch: a copy of a gap ends the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace torii::tests {

class GuardedBlocks {
 public:
  static constexpr std::size_t kPage = 4096;

  /// Block i has `lengths[i]` bytes, whole elements. The seed says in which order the blocks lie, and which of them
  /// begin behind a missing page and which end before one. Not even the vector's first byte need be there.
  GuardedBlocks(std::vector<std::size_t> lengths, std::size_t element_bytes, std::uint64_t seed,
                std::size_t gap_pages = 1)
      : lengths_(std::move(lengths)), places_(lengths_.size()), displacements_(lengths_.size()) {
    std::mt19937_64 random(seed);
    std::vector<std::size_t> order(lengths_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    std::size_t next = 0;
    for (const std::size_t block : order) {
      next += gap_pages * kPage;
      const std::size_t bytes = lengths_[block];
      const std::size_t pages = bytes == 0 ? 0 : (bytes + element_bytes - 1) / kPage + 1;
      const bool is_at_end = random() % 2 == 0;
      const std::size_t first = is_at_end ? next + pages * kPage - bytes : next + element_bytes - 1;
      displacements_[block] = first / element_bytes;
      places_[block] = {next, pages * kPage};
      next += pages * kPage;
    }
    bytes_ = next + gap_pages * kPage;
    void* const base = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(base, MAP_FAILED);
    data_ = static_cast<std::byte*>(base);
    element_bytes_ = element_bytes;
    for (const Place& place : places_) {
      EXPECT_TRUE(place.bytes == 0 || mprotect(data_ + place.first, place.bytes, PROT_READ | PROT_WRITE) == 0);
    }
  }
  ~GuardedBlocks() { munmap(data_, bytes_); }
  GuardedBlocks(const GuardedBlocks&) = delete;
  GuardedBlocks& operator=(const GuardedBlocks&) = delete;

  std::byte* data() const { return data_; }
  const std::size_t* displacements() const { return displacements_.data(); }
  std::size_t blocks() const { return lengths_.size(); }
  std::size_t bytes(std::size_t block) const { return lengths_[block]; }
  std::byte* block(std::size_t block) const { return data_ + displacements_[block] * element_bytes_; }
  /// The pages of a block, all that may be touched.
  std::byte* pages(std::size_t block) const { return data_ + places_[block].first; }
  std::size_t pages_bytes(std::size_t block) const { return places_[block].bytes; }

 private:
  struct Place {
    std::size_t first = 0;
    std::size_t bytes = 0;
  };
  std::vector<std::size_t> lengths_;
  std::vector<Place> places_;
  std::vector<std::size_t> displacements_;
  std::size_t element_bytes_ = 1;
  std::size_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace torii::tests
