// SPDX-License-Identifier: Apache-2.0
// Every kernel of every ISA against the reference kernel, bit by bit: random numbers of sources and targets, wide
// operands, non-temporal hints, lengths, alignments, in place, beside pages that fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/reduce_kernels/fuzz_data.hpp"
#include "tests/support/test_run.hpp"

namespace torii::kernels::testing {
namespace {

constexpr size_t kLongBytes = 20480;
// Room for wide elements and for an odd start.
constexpr size_t kAreaBytes = 4 * kLongBytes + 4096;
constexpr int kManySources = 70;
constexpr unsigned char kUntouched = 0xa5;

size_t pick_count(Random& random, Type type) {
  // Non-temporal stores begin at 4 KiB: some vectors have to be longer.
  if (pick(random, 0, 7) == 0)
    return static_cast<size_t>(pick(random, 0, static_cast<int>(kLongBytes / size_of(type))));
  return static_cast<size_t>(pick(random, 0, pick(random, 0, 1) != 0 ? 600 : 40));
}

/// The memory of all operands, mapped once for all runs.
struct Areas {
  std::vector<std::unique_ptr<GuardedMemory>> sources;
  std::vector<std::unique_ptr<GuardedMemory>> targets;

  Areas() {
    for (int s = 0; s < kManySources; ++s) sources.push_back(std::make_unique<GuardedMemory>(kAreaBytes));
    for (int t = 0; t < 3; ++t) targets.push_back(std::make_unique<GuardedMemory>(kAreaBytes));
  }
};

char* place_randomly(GuardedMemory& memory, size_t bytes, Random& random) {
  const auto where = static_cast<GuardedMemory::Place>(pick(random, 0, 2));
  return memory.place(bytes, where, static_cast<size_t>(pick(random, 0, 130)));
}

/// The first byte is as it was, and each equals the one behind it: memcmp looks at the areas in no time.
bool is_untouched(const char* begin, const char* end) {
  if (begin == end) return true;
  return static_cast<unsigned char>(*begin) == kUntouched &&
         std::memcmp(begin, begin + 1, static_cast<size_t>(end - begin) - 1) == 0;
}

/// One random fold by the kernel and by the reference.
class RandomFold {
 public:
  RandomFold(Areas& areas, Type type, Random& random) : type_(type), random_(random), count_(pick_count(random, type)) {
    const int source_count = pick(random, 0, 30) == 0 ? kManySources : pick(random, 1, 9);
    const int target_count = pick(random, 1, 3);
    if (is_small_float(type) && pick(random, 0, 1) != 0) {
      for (int s = 0; s < source_count; ++s) wide_sources_.push_back(pick(random, 0, 1) != 0 ? 1 : 0);
      wide_targets_ = static_cast<uint32_t>(random());
    }
    if (pick(random, 0, 2) == 0) non_temporal_ = static_cast<uint32_t>(random());
    for (int s = 0; s < source_count; ++s) {
      const bool wide = is_wide_source(s);
      const size_t bytes = count_ * wire_size(type, wide);
      char* at = place_randomly(*areas.sources[static_cast<size_t>(s)], bytes, random);
      fill_random(type, wide, at, count_, random);
      sources_.push_back(at);
      originals_.emplace_back(at, at + bytes);
    }
    for (int t = 0; t < target_count; ++t) {
      GuardedMemory& area = *areas.targets[static_cast<size_t>(t)];
      targets_.push_back(place_randomly(area, count_ * target_bytes(t), random));
      std::memset(area.begin(), kUntouched, area.size());
      areas_.push_back(&area);
    }
    maybe_in_place();
  }

  void check(FoldFn kernel, FoldFn reference, const std::string& text) {
    std::vector<std::vector<char>> expected;
    std::vector<void*> expected_targets;
    for (size_t t = 0; t < targets_.size(); ++t) {
      expected.emplace_back(count_ * target_bytes(static_cast<int>(t)) + 1);
      expected_targets.push_back(expected.back().data());
    }
    Operands operands = operands_for(expected_targets);
    operands.non_temporal_targets = 0;
    reference(operands, count_);
    kernel(operands_for(targets_), count_);
    store_fence();
    for (size_t t = 0; t < targets_.size(); ++t) {
      const bool wide = (wide_targets_ >> t & 1u) != 0;
      const size_t i = first_difference(type_, wide, targets_[t], expected_targets[t], count_);
      ASSERT_EQ(i, count_) << text << describe() << ": target " << t << " element " << i << " is "
                           << element_text(type_, wide, targets_[t], i) << ", reference "
                           << element_text(type_, wide, expected_targets[t], i);
      if (static_cast<int>(t) != in_place_target_) expect_surroundings_untouched(t, text);
    }
    for (size_t s = 0; s < sources_.size(); ++s) {
      if (static_cast<int>(s) == in_place_source_) continue;
      const auto& original = originals_[s];
      ASSERT_TRUE(std::equal(original.begin(), original.end(), static_cast<const char*>(sources_[s])))
          << text << describe() << ": source " << s << " was written";
    }
  }

 private:
  bool is_wide_source(int s) const { return !wide_sources_.empty() && wide_sources_[static_cast<size_t>(s)] != 0; }
  size_t target_bytes(int t) const { return wire_size(type_, (wide_targets_ >> t & 1u) != 0); }

  void maybe_in_place() {
    if (pick(random_, 0, 2) != 0) return;
    const int s = pick(random_, 0, static_cast<int>(sources_.size()) - 1);
    const int t = pick(random_, 0, static_cast<int>(targets_.size()) - 1);
    if (is_wide_source(s) != ((wide_targets_ >> t & 1u) != 0)) return;
    in_place_source_ = s;
    in_place_target_ = t;
    targets_[static_cast<size_t>(t)] = const_cast<void*>(sources_[static_cast<size_t>(s)]);
  }

  Operands operands_for(const std::vector<void*>& targets) const {
    Operands operands;
    operands.sources = sources_.data();
    operands.source_count = static_cast<int>(sources_.size());
    operands.targets = targets.data();
    operands.target_count = static_cast<int>(targets.size());
    operands.wide_sources = wide_sources_.empty() ? nullptr : wide_sources_.data();
    operands.wide_targets = wide_targets_;
    operands.non_temporal_targets = non_temporal_;
    return operands;
  }

  void expect_surroundings_untouched(size_t t, const std::string& text) const {
    const char* begin = static_cast<const char*>(targets_[t]);
    const char* end = begin + count_ * target_bytes(static_cast<int>(t));
    const GuardedMemory& area = *areas_[t];
    EXPECT_TRUE(is_untouched(area.begin(), begin)) << "before: " << text << describe();
    EXPECT_TRUE(is_untouched(end, area.begin() + area.size())) << "behind: " << text << describe();
  }

  std::string describe() const {
    std::string wide;
    for (const uint8_t is_wide : wide_sources_) wide += is_wide != 0 ? '1' : '0';
    return ", count " + std::to_string(count_) + ", sources " + std::to_string(sources_.size()) + ", targets " +
           std::to_string(targets_.size()) + ", wide " + wide + "/" + std::to_string(wide_targets_) +
           ", non-temporal " + std::to_string(non_temporal_) + ", in place " + std::to_string(in_place_source_) + "->" +
           std::to_string(in_place_target_);
  }

  Type type_;
  Random& random_;
  size_t count_;
  std::vector<uint8_t> wide_sources_;  ///< empty: none is
  uint32_t wide_targets_ = 0;
  uint32_t non_temporal_ = 0;
  int in_place_source_ = -1;
  int in_place_target_ = -1;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  std::vector<std::vector<char>> originals_;
  std::vector<GuardedMemory*> areas_;
};

class KernelsFuzz : public ::testing::TestWithParam<Isa> {};

/// Folds of every kind, drawn by `random`, until one differs.
void compare_folds(Isa isa, Random random) {
  Areas areas;
  const int runs = tests::is_full() ? 1000 : 60;
  for (const Defined& defined : all_defined()) {
    const FoldFn kernel = find(defined.op, defined.type, isa);
    const FoldFn reference = find(defined.op, defined.type, Isa::reference);
    ASSERT_NE(kernel, nullptr) << label(defined.op, defined.type, isa);
    ASSERT_NE(kernel, reference) << label(defined.op, defined.type, isa);
    for (int run = 0; run < runs; ++run) {
      RandomFold(areas, defined.type, random).check(kernel, reference, label(defined.op, defined.type, isa));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(KernelsFuzz, BitsEqualTheReference) {
  for (const tests::Seed& seed : tests::seeds_of("kernels/fuzz", 1)) {
    SCOPED_TRACE(seed);
    compare_folds(GetParam(), Random(seed.value));
    if (HasFatalFailure()) return;
  }
}

std::vector<Isa> vector_isas() {
  std::vector<Isa> isas = available_isas();
  isas.erase(isas.begin());
  return isas;
}

INSTANTIATE_TEST_SUITE_P(Isas, KernelsFuzz, ::testing::ValuesIn(vector_isas()),
                         [](const auto& isa) { return std::string(name(isa.param)); });
// A machine without any vector ISA has only the reference, which the other tests check.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelsFuzz);

}  // namespace
}  // namespace torii::kernels::testing
