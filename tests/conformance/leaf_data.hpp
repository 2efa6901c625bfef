// SPDX-License-Identifier: Apache-2.0
// Leaves with data that depends on their number alone, what their sum must be, and the handle of a team's intervals.
#pragma once

#include <gtest/gtest.h>
#include <torii/torii.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "tools/operands.hpp"

namespace torii::tests {

using Bytes = std::vector<std::byte>;
using Counts = std::vector<std::size_t>;

inline void fill_leaf(torii_type type, std::size_t leaf, std::size_t first, std::size_t count, void* out) {
  fill_operand(static_cast<Type>(type), 7, static_cast<int>(leaf), first, count, out);
}

/// E over `leaves` leaves, by the reference kernel.
inline Bytes make_sum_of_leaves(torii_type type, torii_op op, std::size_t leaves, std::size_t count) {
  const std::size_t bytes = count * torii_type_bytes(type);
  std::vector<Bytes> vectors(leaves, Bytes(bytes));
  std::vector<const void*> sources;
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    fill_leaf(type, leaf, 0, count, vectors[leaf].data());
    sources.push_back(vectors[leaf].data());
  }
  Bytes sum(bytes);
  void* const target = sum.data();
  kernels::fold_canonical(
      kernels::find(static_cast<Op>(op), static_cast<Type>(type), kernels::Isa::reference), static_cast<Type>(type),
      {.sources = sources.data(), .source_count = static_cast<int>(leaves), .targets = &target, .target_count = 1},
      count);
  return sum;
}

/// The same, made once: ranks and intervals ask for the same sums again and again.
inline Bytes sum_of_leaves(torii_type type, torii_op op, std::size_t leaves, std::size_t count) {
  static std::mutex mutex;
  static std::map<std::tuple<int, int, std::size_t, std::size_t>, Bytes> known;
  const std::lock_guard lock(mutex);
  Bytes& sum = known[{type, op, leaves, count}];
  if (sum.empty()) sum = make_sum_of_leaves(type, op, leaves, count);
  return sum;
}

inline std::string text_of(const Counts& counts) {
  std::string text = "intervals";
  for (const std::size_t count : counts) text += ' ' + std::to_string(count);
  return text;
}

/// `leaves` leaves on `ranks` ranks, divided at random places; some ranks may have none.
inline Counts random_counts(std::mt19937_64& random, int ranks, std::size_t leaves) {
  std::vector<std::size_t> cuts = {0, leaves};
  for (int cut = 1; cut < ranks; ++cut) cuts.push_back(random() % (leaves + 1));
  std::sort(cuts.begin(), cuts.end());
  Counts counts;
  for (std::size_t i = 1; i < cuts.size(); ++i) counts.push_back(cuts[i] - cuts[i - 1]);
  return counts;
}

/// The intervals of a team, of which this rank has its own.
class Leaves {
 public:
  Leaves(torii_team* team, const Counts& counts) : rank_(static_cast<std::size_t>(torii_team_rank(team))) {
    std::size_t all = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      if (rank == rank_) first_ = all;
      all += counts[rank];
    }
    count_ = counts[rank_];
    EXPECT_EQ(torii_leaves_create(team, all, first_, count_, &handle_), TORII_OK) << torii_last_error();
  }
  ~Leaves() { EXPECT_EQ(torii_leaves_destroy(handle_), TORII_OK); }
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;

  const torii_leaves* get() const { return handle_; }
  std::size_t first() const { return first_; }
  std::size_t count() const { return count_; }

  /// The vectors of this rank's leaves, one every `stride` elements.
  Bytes vectors(torii_type type, std::size_t elements, std::size_t stride) const {
    const std::size_t bytes = torii_type_bytes(type);
    Bytes all(count_ * stride * bytes);
    for (std::size_t i = 0; i < count_; ++i) {
      fill_leaf(type, first_ + i, 0, elements, all.data() + i * stride * bytes);
    }
    return all;
  }

 private:
  std::size_t rank_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  torii_leaves* handle_ = nullptr;
};

}  // namespace torii::tests
