// SPDX-License-Identifier: Apache-2.0
// Truth values: all pairs of bytes under all operations, in every ISA and length; one operand becomes 0 or 1 too.
#include <gtest/gtest.h>

#include <vector>

#include "reduce_kernels/kernels.hpp"

namespace torii::kernels {
namespace {

bool truth_of(Op op, bool a, bool b) {
  switch (op) {
    case Op::sum:
    case Op::max:
    case Op::bor:
    case Op::lor:
      return a || b;
    case Op::bxor:
    case Op::lxor:
      return a != b;
    default:
      return a && b;
  }
}

class TruthKernels : public ::testing::TestWithParam<Isa> {};

TEST_P(TruthKernels, GiveZeroOrOneForAllPairsOfBytes) {
  std::vector<uint8_t> left(65536), right(65536), out(65536);
  for (size_t i = 0; i < left.size(); ++i) {
    left[i] = static_cast<uint8_t>(i >> 8);
    right[i] = static_cast<uint8_t>(i);
  }
  for (int number = 0; number <= static_cast<int>(Op::lxor); ++number) {
    const Op op = static_cast<Op>(number);
    const FoldFn fold = find(op, Type::boolean, GetParam());
    ASSERT_NE(fold, nullptr) << name(op);
    const void* sources[] = {left.data(), right.data()};
    void* target = out.data();
    fold({sources, 2, &target, 1}, out.size());
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], truth_of(op, left[i] != 0, right[i] != 0) ? 1 : 0) << name(op) << " " << i;
    }
  }
}

TEST_P(TruthKernels, MakeOneOperandZeroOrOne) {
  for (size_t count = 0; count <= 300; ++count) {
    std::vector<uint8_t> bytes(count + 1, 0xee);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 37);
    const void* source = bytes.data();
    void* target = bytes.data();
    find(Op::lor, Type::boolean, GetParam())({&source, 1, &target, 1}, count);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(bytes[i], static_cast<uint8_t>(i * 37) != 0 ? 1 : 0) << count;
    ASSERT_EQ(bytes[count], 0xee) << "written behind the end of " << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, TruthKernels, ::testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(name(isa.param)); });

}  // namespace
}  // namespace torii::kernels
