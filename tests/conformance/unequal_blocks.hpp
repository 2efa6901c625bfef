// SPDX-License-Identifier: Apache-2.0
// Blocks of unequal lengths for tests: how long each is, where it lies, what stands in it.
#pragma once

#include <gtest/gtest.h>
#include <torii/torii.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace torii::tests {

using Counts = std::vector<std::size_t>;

/// Elements from `sender` to `receiver`: from none to many segments, most to rank 1; equal on all ranks.
inline std::size_t count_of(std::uint64_t seed, int sender, int receiver) {
  std::mt19937_64 random(seed * 10007 + static_cast<std::uint64_t>(sender * 101 + receiver));
  constexpr std::size_t kMost[] = {0, 3, 40, 700, 5000};
  const std::size_t most = kMost[random() % 5];
  return (most == 0 ? 0 : random() % most) + (receiver == 1 ? 6000 : 0);
}

inline std::int64_t element(int sender, int receiver, std::size_t index) {
  return (std::int64_t{sender} * 100 + receiver) * 1'000'000 + static_cast<std::int64_t>(index);
}

/// Where blocks lie in a vector: in order, or last block first with a gap after each.
struct Blocks {
  Counts counts;
  Counts places;
  std::size_t reach = 0;
  Blocks(Counts of, bool scattered) : counts(std::move(of)), places(counts.size()) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::size_t at = scattered ? counts.size() - 1 - i : i;
      places[at] = reach;
      reach += counts[at] + (scattered ? 3 : 0);
    }
  }
  const std::size_t* displacements(bool scattered) const { return scattered ? places.data() : nullptr; }
};

template <typename Count>
Counts counts_by_peer(int ranks, const Count& count) {
  Counts counts;
  for (int peer = 0; peer < ranks; ++peer) counts.push_back(count(peer));
  return counts;
}

/// Memory that peers reach on every other rank.
class Memory {
 public:
  Memory(torii_context* context, std::size_t count, bool allocated) : context_(allocated ? context : nullptr) {
    own_.assign(count + 1, -1);
    if (context_ == nullptr) return;
    EXPECT_EQ(torii_allocate(context, own_.size() * sizeof(std::int64_t), &address_), TORII_OK);
    std::fill(data(), data() + own_.size(), -1);
  }
  ~Memory() {
    if (context_ == nullptr) return;
    EXPECT_EQ(torii_free(context_, address_), TORII_OK);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::int64_t* data() { return context_ != nullptr ? static_cast<std::int64_t*>(address_) : own_.data(); }

 private:
  torii_context* context_;
  void* address_ = nullptr;
  std::vector<std::int64_t> own_;
};

inline void fill_blocks(std::int64_t* data, const Blocks& blocks, int sender) {
  for (std::size_t peer = 0; peer < blocks.counts.size(); ++peer) {
    for (std::size_t i = 0; i < blocks.counts[peer]; ++i) {
      data[blocks.places[peer] + i] = element(sender, static_cast<int>(peer), i);
    }
  }
}

inline int wrong_elements(const std::int64_t* data, const Blocks& blocks, int receiver) {
  int wrong = 0;
  for (std::size_t peer = 0; peer < blocks.counts.size(); ++peer) {
    for (std::size_t i = 0; i < blocks.counts[peer]; ++i) {
      if (data[blocks.places[peer] + i] != element(static_cast<int>(peer), receiver, i)) ++wrong;
    }
  }
  return wrong;
}

}  // namespace torii::tests
