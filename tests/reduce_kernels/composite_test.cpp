// SPDX-License-Identifier: Apache-2.0
// Folds made of folds: the canonical expression, strided pieces, user functions, copies. The expected values come from
// recursion over single elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "reduce_kernels/float16.hpp"
#include "tests/reduce_kernels/fuzz_data.hpp"
#include "tests/support/test_run.hpp"

namespace torii::kernels::testing {
namespace {

template <typename T>
using Vectors = std::vector<std::vector<T>>;

template <typename T>
Vectors<T> random_vectors(Type type, bool wide, int vector_count, size_t count, Random& random) {
  Vectors<T> vectors;
  for (int s = 0; s < vector_count; ++s) {
    vectors.emplace_back(count + 1);
    fill_random(type, wide, vectors.back().data(), count, random);
  }
  return vectors;
}

template <typename T>
std::vector<void*> addresses(Vectors<T>& vectors) {
  std::vector<void*> all;
  for (auto& vector : vectors) all.push_back(vector.data());
  return all;
}

Operands operands_of(const std::vector<void*>& sources, const std::vector<void*>& targets) {
  Operands operands;
  operands.sources = sources.data();
  operands.source_count = static_cast<int>(sources.size());
  operands.targets = targets.data();
  operands.target_count = static_cast<int>(targets.size());
  return operands;
}

/// E(low, high) of one element, straight from its definition.
template <typename T>
T expression(const std::function<T(int)>& source, const std::function<T(T, T)>& op, int low, int high) {
  if (high - low == 1) return source(low);
  int half = 1;
  while (half * 2 < high - low) half *= 2;
  return op(expression(source, op, low, low + half), expression(source, op, low + half, high));
}

TEST(Canonical, IsTheDeclaredExpressionInFloat) {
  for (const tests::Seed& seed : tests::seeds_of("kernels/composite", 1)) {
    SCOPED_TRACE(seed);
    Random random(seed.value);
    for (const int source_count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 31, 33, 64, 100, 257, 1023}) {
      const auto count = static_cast<size_t>(pick(random, 0, 1500));
      auto sources = random_vectors<float>(Type::f32, false, source_count, count, random);
      Vectors<float> targets(2, std::vector<float>(count + 1));
      fold_canonical(find(Op::sum, Type::f32), Type::f32, operands_of(addresses(sources), addresses(targets)), count);
      std::vector<float> expected(count + 1);
      for (size_t i = 0; i < count; ++i) {
        expected[i] = expression<float>([&](int s) { return sources[static_cast<size_t>(s)][i]; },
                                        [](float a, float b) { return a + b; }, 0, source_count);
      }
      for (const auto& target : targets) {
        ASSERT_EQ(first_difference(Type::f32, false, target.data(), expected.data(), count), count) << source_count;
      }
    }
  }
}

TEST(Canonical, RoundsSixteenBitFloatsOnceAndTakesWideOperands) {
  for (const tests::Seed& seed : tests::seeds_of("kernels/composite", 1)) {
    SCOPED_TRACE(seed);
    Random random(seed.value);
    for (const Type type : {Type::f16, Type::bf16}) {
      for (const int source_count : {2, 3, 4, 5, 7, 8, 11, 34, 66, 300}) {
        const auto count = static_cast<size_t>(pick(random, 1, 3000));
        auto sources = random_vectors<uint16_t>(type, false, source_count, count, random);
        auto wide_sources = random_vectors<float>(type, true, source_count, count, random);
        std::vector<void*> source_addresses = addresses(sources);
        // The second one, and others as often as not.
        std::vector<uint8_t> is_wide(static_cast<size_t>(source_count));
        for (size_t s = 0; s < is_wide.size(); ++s) {
          is_wide[s] = s == 1 || pick(random, 0, 1) != 0 ? 1 : 0;
          if (is_wide[s] != 0) source_addresses[s] = wide_sources[s].data();
        }
        std::vector<uint16_t> narrow(count);
        std::vector<float> wide(count);
        const std::vector<void*> targets = {narrow.data(), wide.data()};
        Operands operands = operands_of(source_addresses, targets);
        operands.wide_sources = is_wide.data();
        operands.wide_targets = 2;
        fold_canonical(find(Op::sum, type), type, operands, count);
        std::vector<float> expected(count);
        std::vector<uint16_t> rounded(count);
        for (size_t i = 0; i < count; ++i) {
          const auto source = [&](int s) {
            const auto number = static_cast<size_t>(s);
            const uint16_t bits = sources[number][i];
            return is_wide[number] != 0 ? wide_sources[number][i]
                   : type == Type::f16  ? f16_to_f32(bits)
                                        : bf16_to_f32(bits);
          };
          expected[i] = expression<float>(
              source, [](float a, float b) { return a + b; }, 0, source_count);
          rounded[i] = type == Type::f16 ? f32_to_f16(expected[i]) : f32_to_bf16(expected[i]);
        }
        ASSERT_EQ(first_difference(type, true, wide.data(), expected.data(), count), count) << source_count;
        ASSERT_EQ(first_difference(type, false, narrow.data(), rounded.data(), count), count) << source_count;
      }
    }
  }
}

TEST(Canonical, WorksInPlaceOfAnySource) {
  for (const tests::Seed& seed : tests::seeds_of("kernels/composite", 1)) {
    SCOPED_TRACE(seed);
    Random random(seed.value);
    constexpr size_t kCount = 1111;
    for (const int source_count : {2, 3, 4, 5, 8, 13}) {
      for (int in_place = 0; in_place < source_count; ++in_place) {
        auto sources = random_vectors<double>(Type::f64, false, source_count, kCount, random);
        Vectors<double> target(1, std::vector<double>(kCount));
        const FoldFn fold = find(Op::sum, Type::f64);
        fold_canonical(fold, Type::f64, operands_of(addresses(sources), addresses(target)), kCount);
        const std::vector<void*> same = {sources[static_cast<size_t>(in_place)].data()};
        fold_canonical(fold, Type::f64, operands_of(addresses(sources), same), kCount);
        ASSERT_EQ(first_difference(Type::f64, false, same[0], target[0].data(), kCount), kCount)
            << source_count << " " << in_place;
      }
    }
  }
}

TEST(Pieces, AreFoldedAtTheirStrides) {
  for (const tests::Seed& seed : tests::seeds_of("kernels/composite", 1)) {
    SCOPED_TRACE(seed);
    Random random(seed.value);
    constexpr size_t kPieceElements = 37;
    constexpr size_t kPieceCount = 11;
    constexpr size_t kSourceStrides[] = {kPieceElements, 50, 61};
    constexpr size_t kTargetStride = 45;
    auto sources = random_vectors<int32_t>(Type::i32, false, 3, 61 * kPieceCount, random);
    Vectors<int32_t> target(1, std::vector<int32_t>(kTargetStride * kPieceCount, 12345));
    std::vector<int32_t> expected = target[0];
    for (size_t piece = 0; piece < kPieceCount; ++piece) {
      for (size_t i = 0; i < kPieceElements; ++i) {
        uint32_t sum = 0;
        for (size_t s = 0; s < 3; ++s) sum += static_cast<uint32_t>(sources[s][piece * kSourceStrides[s] + i]);
        expected[piece * kTargetStride + i] = static_cast<int32_t>(sum);
      }
    }
    const ptrdiff_t source_strides_bytes[] = {kSourceStrides[0] * 4, kSourceStrides[1] * 4, kSourceStrides[2] * 4};
    const ptrdiff_t target_strides_bytes[] = {kTargetStride * 4};
    fold_pieces(find(Op::sum, Type::i32), operands_of(addresses(sources), addresses(target)),
                {kPieceElements, kPieceCount, source_strides_bytes, target_strides_bytes});
    EXPECT_EQ(target[0], expected);
  }
}

/// Neither commutative nor associative: only the right order and the right grouping give the right number.
struct Element {
  uint64_t value;
  uint64_t check;
  bool operator==(const Element&) const = default;
};
Element combine(const Element& left, const Element& right) {
  return {3 * left.value + 7 * right.value + 1, left.check ^ (right.check * 5)};
}
void combine_many(const void* left, const void* right, void* out, size_t count, void* data) {
  for (size_t i = 0; i < count; ++i) {
    static_cast<Element*>(out)[i] =
        combine(static_cast<const Element*>(left)[i], static_cast<const Element*>(right)[i]);
  }
  *static_cast<size_t*>(data) += count;
}

Vectors<Element> numbered(int vector_count, size_t count) {
  Vectors<Element> vectors;
  for (int s = 0; s < vector_count; ++s) {
    vectors.emplace_back(count);
    for (size_t i = 0; i < count; ++i)
      vectors.back()[i] = {i * 31 + static_cast<uint64_t>(s), i ^ static_cast<uint64_t>(s)};
  }
  return vectors;
}

class UserFolds : public ::testing::TestWithParam<bool> {
 protected:
  static void run(const UserFunction& user, const Operands& operands, size_t count) {
    GetParam() ? fold_user_canonical(user, operands, count) : fold_user(user, operands, count);
  }
  static std::vector<Element> expected(const Vectors<Element>& sources) {
    std::vector<Element> result(sources[0].size());
    for (size_t i = 0; i < result.size(); ++i) {
      const auto source = [&](int s) { return sources[static_cast<size_t>(s)][i]; };
      if (GetParam()) {
        result[i] = expression<Element>(source, combine, 0, static_cast<int>(sources.size()));
      } else {
        result[i] = source(0);
        for (int s = 1; s < static_cast<int>(sources.size()); ++s) result[i] = combine(result[i], source(s));
      }
    }
    return result;
  }
};

TEST_P(UserFolds, GetLeftAndRightInOrder) {
  for (const int source_count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 257, 1023}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{1000}}) {
      auto sources = numbered(source_count, count);
      Vectors<Element> targets(3, std::vector<Element>(count));
      size_t calls = 0;
      const UserFunction user{combine_many, &calls, sizeof(Element)};
      run(user, operands_of(addresses(sources), addresses(targets)), count);
      for (const auto& target : targets) ASSERT_TRUE(target == expected(sources)) << source_count << " " << count;
      EXPECT_EQ(calls, count * static_cast<size_t>(source_count - 1)) << "each pair is combined once";
    }
  }
}

TEST_P(UserFolds, WorkInPlaceOfAnySource) {
  for (int source_count = 1; source_count <= 9; ++source_count) {
    for (int in_place = 0; in_place < source_count; ++in_place) {
      auto sources = numbered(source_count, 500);
      const std::vector<Element> right = expected(sources);
      std::vector<Element> other(500);
      size_t calls = 0;
      const UserFunction user{combine_many, &calls, sizeof(Element)};
      const std::vector<void*> targets = {other.data(), sources[static_cast<size_t>(in_place)].data()};
      run(user, operands_of(addresses(sources), targets), 500);
      ASSERT_TRUE(other == right) << source_count << " " << in_place;
      ASSERT_TRUE(sources[static_cast<size_t>(in_place)] == right) << source_count << " " << in_place;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Expressions, UserFolds, ::testing::Bool(),
                         [](const auto& canonical) { return canonical.param ? "Canonical" : "LeftFold"; });

void add_large(const void* left, const void* right, void* out, size_t count, void*) {
  for (size_t i = 0; i < count * kUserElementBytesMax; ++i) {
    static_cast<uint8_t*>(out)[i] =
        static_cast<uint8_t>(static_cast<const uint8_t*>(left)[i] + static_cast<const uint8_t*>(right)[i]);
  }
}

TEST(UserFold, ElementsMayBeAsLargeAsPromised) {
  Vectors<uint8_t> sources;
  for (int s = 0; s < 6; ++s) sources.emplace_back(3 * kUserElementBytesMax, static_cast<uint8_t>(60 + s));
  Vectors<uint8_t> targets(2, std::vector<uint8_t>(3 * kUserElementBytesMax));
  const UserFunction user{add_large, nullptr, kUserElementBytesMax};
  fold_user(user, operands_of(addresses(sources), {targets[0].data()}), 3);
  fold_user_canonical(user, operands_of(addresses(sources), {targets[1].data()}), 3);
  const std::vector<uint8_t> expected(3 * kUserElementBytesMax, static_cast<uint8_t>(6 * 60 + 15));
  EXPECT_EQ(targets[0], expected);
  EXPECT_EQ(targets[1], expected);
}

TEST(CompositeDeathTest, BrokenOperandsCrash) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  float number = 1;
  const std::vector<void*> one = {&number};
  const FoldFn fold = find(Op::sum, Type::f32);
  EXPECT_DEATH(fold_canonical(fold, Type::f32, operands_of({}, one), 1), "");
  EXPECT_DEATH(fold_canonical(fold, Type::f32, operands_of(one, std::vector<void*>(kTargetsMax + 1, &number)), 1), "");
  EXPECT_DEATH(
      fold_pieces(fold, operands_of(std::vector<void*>(kPieceSourcesMax + 1, &number), one), {1, 1, nullptr, nullptr}),
      "");
  EXPECT_DEATH(fold_pieces(fold, operands_of(one, {}), {1, 1, nullptr, nullptr}), "");
  for (const size_t element_bytes : {size_t{0}, kUserElementBytesMax + 1}) {
    EXPECT_DEATH(fold_user({add_large, nullptr, element_bytes}, operands_of(one, one), 1), "");
    EXPECT_DEATH(fold_user_canonical({add_large, nullptr, element_bytes}, operands_of(one, one), 1), "");
  }
}

TEST(Copy, CopiesAnySizeFromAnyToAnyAlignment) {
  GuardedMemory from(1 << 17);
  GuardedMemory to(1 << 17);
  for (const tests::Seed& seed : tests::seeds_of("kernels/copy", 400)) {
    SCOPED_TRACE(seed);
    Random random(seed.value);
    const auto bytes = static_cast<size_t>(pick(random, 0, pick(random, 0, 3) == 0 ? 100000 : 9000));
    const bool at_end = pick(random, 0, 3) == 0;
    const auto where = at_end ? GuardedMemory::Place::end : GuardedMemory::Place::offset;
    char* source = from.place(bytes, where, static_cast<size_t>(pick(random, 0, 200)));
    char* target = to.place(bytes, where, static_cast<size_t>(pick(random, 0, 200)));
    std::generate_n(source, bytes, [&] { return static_cast<char>(random()); });
    std::memset(to.begin(), 0x5a, to.size());
    copy(target, source, bytes, pick(random, 0, 1) != 0);
    store_fence();
    ASSERT_EQ(std::memcmp(target, source, bytes), 0) << bytes;
    const auto touched = [](char c) { return c != 0x5a; };
    ASSERT_EQ(std::find_if(to.begin(), target, touched), target) << bytes;
    ASSERT_EQ(std::find_if(target + bytes, to.begin() + to.size(), touched), to.begin() + to.size()) << bytes;
  }
}

TEST(Copy, OntoItselfIsAllowed) {
  std::vector<int> numbers(5000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::vector<int> before = numbers;
  for (const bool non_temporal : {false, true})
    copy(numbers.data(), numbers.data(), numbers.size() * sizeof(int), non_temporal);
  EXPECT_EQ(numbers, before);
}

}  // namespace
}  // namespace torii::kernels::testing
