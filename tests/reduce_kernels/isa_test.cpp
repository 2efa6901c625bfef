// SPDX-License-Identifier: Apache-2.0
// Proof of which ISA runs. On x86 the processor single-steps through a kernel while a trap handler looks at every
// instruction; on aarch64 the predicate registers, which only SVE code writes, are cleared before and read after.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "reduce_kernels/kernels.hpp"

#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>
#endif

namespace torii::kernels {
namespace {

// Stepping costs microseconds per instruction: enough for 25 of the widest vectors.
constexpr size_t kBytes = 1600;

/// One small fold of two sources that every type can do.
struct SmallFold {
  std::vector<char> left = std::vector<char>(kBytes);
  std::vector<char> right = left;
  std::vector<char> result = left;
  const void* sources[2] = {left.data(), right.data()};
  void* targets[1] = {result.data()};

  Operands operands() const { return {sources, 2, targets, 1}; }
};

#if defined(__x86_64__)

/// Instructions seen, by encoding and register width. Where an instruction set ends is told by its first bytes alone:
/// 62 is AVX-512, C4 and C5 are AVX in 64-bit mode.
struct Trace {
  long evex_512;
  long evex_narrower;
  long vex_256;
  long vex_128;
  long all;
};
Trace trace;

void look_at(const unsigned char* code) {
  ++trace.all;
  while (*code == 0x66 || *code == 0xf2 || *code == 0xf3 || *code == 0x2e || *code == 0x3e) ++code;
  if (*code == 0x62) {
    ++((code[3] >> 5 & 3) == 2 ? trace.evex_512 : trace.evex_narrower);
  } else if (*code == 0xc5 || *code == 0xc4) {
    const bool vzeroupper = *code == 0xc5 && code[2] == 0x77;
    const int wide = *code == 0xc5 ? code[1] >> 2 & 1 : code[2] >> 2 & 1;
    if (!vzeroupper) ++(wide != 0 ? trace.vex_256 : trace.vex_128);
  }
}

void on_step(int, siginfo_t*, void* context) {
  const auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  look_at(reinterpret_cast<const unsigned char*>(registers[REG_RIP]));
}

// The trap flag makes the processor stop after every instruction. The stack pointer keeps clear of the red zone.
inline void start_stepping() {
  asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                   : "cc", "memory");
}
inline void stop_stepping() {
  asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                   : "cc", "memory");
}

Trace trace_of(Op op, Type type, Isa isa) {
  const SmallFold small;
  const Operands operands = small.operands();
  const size_t count = kBytes / size_of(type);
  const FoldFn fold = find(op, type, isa);
  fold(operands, count);  // resolves whatever the linker left open
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  trace = {};
  start_stepping();
  fold(operands, count);
  stop_stepping();
  sigaction(SIGTRAP, &before, nullptr);
  return trace;
}

class IsaProof : public ::testing::TestWithParam<Isa> {
 protected:
  static void check(Op op, Type type) {
    const std::string text = std::string(name(op)) + " " + torii::name(type) + " " + name(GetParam());
    const Trace seen = trace_of(op, type, GetParam());
    EXPECT_GT(seen.all, 50) << text;
    if (GetParam() == Isa::avx512) {
      EXPECT_GE(seen.evex_512, 25) << text;
      return;
    }
    EXPECT_EQ(seen.evex_512 + seen.evex_narrower, 0) << text;
    if (GetParam() == Isa::avx2) {
      EXPECT_GE(seen.vex_256, 50) << text;
      return;
    }
    EXPECT_EQ(seen.vex_256 + seen.vex_128, 0) << text;
  }
};

TEST_P(IsaProof, TheForcedIsaIsTheOneThatRuns) {
  if (GetParam() == Isa::reference) {  // one element at a time is long to step through
    check(Op::sum, Type::f64);
    check(Op::min, Type::i64);
    return;
  }
  for (const Type type : {Type::i8, Type::u16, Type::i32, Type::u64, Type::f16, Type::bf16, Type::f32, Type::f64,
                          Type::f8e4m3, Type::f8e5m2, Type::boolean}) {
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max}) check(op, type);
  }
  for (const Op op : {Op::band, Op::bor, Op::bxor, Op::land, Op::lor, Op::lxor}) check(op, Type::i32);
  for (const Type type : {Type::cf32, Type::cf64}) check(Op::prod, type);
  for (const Type type : {Type::i16_i32, Type::f32_i32, Type::f64_i32}) check(Op::minloc, type);
}

TEST_P(IsaProof, RegistersHaveTheWidthOfTheIsa) {
  const size_t expected = GetParam() == Isa::avx512 ? 64 : GetParam() == Isa::avx2 ? 32 : 16;
  EXPECT_EQ(vector_bytes(GetParam()), GetParam() == Isa::reference ? 8 : expected);
}

INSTANTIATE_TEST_SUITE_P(Isas, IsaProof, ::testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(name(isa.param)); });

TEST(IsaProof, FloatingSumsAvoidThe512BitUnitsUnlessForced) {
  if (best_isa() != Isa::avx512) GTEST_SKIP() << "this machine has no AVX-512";
  EXPECT_EQ(trace_of(Op::sum, Type::f32, Isa::automatic).evex_512, 0);
  EXPECT_GT(trace_of(Op::sum, Type::i32, Isa::automatic).evex_512, 0);
}

#elif defined(__aarch64__)

/// True when any of the predicate registers p0 .. p7 is not empty after all have been cleared and the kernel has run.
bool kernel_writes_predicates(Op op, Type type, Isa isa) {
  const SmallFold small;
  const Operands operands = small.operands();
  const FoldFn fold = find(op, type, isa);
  alignas(16) unsigned char predicates[8][32] = {};
  asm volatile(
      ".arch_extension sve\n pfalse p0.b\n pfalse p1.b\n pfalse p2.b\n pfalse p3.b\n"
      "pfalse p4.b\n pfalse p5.b\n pfalse p6.b\n pfalse p7.b" ::
          : "memory");
  fold(operands, kBytes / size_of(type));
  asm volatile(
      ".arch_extension sve\n"
      "str p0, [%0]\n add x9, %0, #32\n str p1, [x9]\n add x9, x9, #32\n str p2, [x9]\n add x9, x9, #32\n"
      "str p3, [x9]\n add x9, x9, #32\n str p4, [x9]\n add x9, x9, #32\n str p5, [x9]\n add x9, x9, #32\n"
      "str p6, [x9]\n add x9, x9, #32\n str p7, [x9]"
      :
      : "r"(&predicates[0][0])
      : "x9", "memory");
  for (const auto& predicate : predicates) {
    for (const unsigned char byte : predicate) {
      if (byte != 0) return true;
    }
  }
  return false;
}

TEST(IsaProof, OnlySveKernelsUsePredicates) {
  if (best_isa() != Isa::sve) GTEST_SKIP() << "this machine has no SVE";
  for (const Type type : {Type::i8, Type::u16, Type::i32, Type::u64, Type::f16, Type::bf16, Type::f32, Type::f64,
                          Type::f8e4m3, Type::f8e5m2, Type::boolean}) {
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max}) {
      EXPECT_TRUE(kernel_writes_predicates(op, type, Isa::sve)) << name(op) << " " << torii::name(type);
      EXPECT_FALSE(kernel_writes_predicates(op, type, Isa::neon)) << name(op) << " " << torii::name(type);
    }
  }
}

TEST(IsaProof, RegistersHaveTheWidthOfTheIsa) {
  EXPECT_EQ(vector_bytes(Isa::neon), 16u);
  if (best_isa() != Isa::sve) GTEST_SKIP() << "this machine has no SVE";
  unsigned long bytes = 0;
  asm(".arch_extension sve\n rdvl %0, #1" : "=r"(bytes));
  EXPECT_EQ(vector_bytes(Isa::sve), bytes);
  std::printf("SVE registers here have %lu bytes\n", bytes);
}

#endif

}  // namespace
}  // namespace torii::kernels
