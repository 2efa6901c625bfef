// SPDX-License-Identifier: Apache-2.0
// Which instruction sets exist here, and the look-up of a kernel by (operation, type, instruction set).
#include "reduce_kernels/kernels.hpp"

#include <array>

#include "reduce_kernels/reference.hpp"
#include "reduce_kernels/simd.hpp"

namespace torii::kernels {
namespace {

constexpr std::array<const char*, kIsaCount> kIsaNames = {"auto", "reference", "sse4", "avx2", "avx512", "neon", "sve"};

// Ordered from worst to best; a machine has either the first three or the last two.
constexpr std::array<Isa, 5> kVectorIsas = {Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon, Isa::sve};

Isa detect_best() noexcept {
  Isa best = Isa::reference;
  for (Isa isa : kVectorIsas) {
    if (simd_available(isa)) best = isa;
  }
  return best;
}

/// The choice of `automatic` for one kernel. 512-bit floating additions lower the core's clock for all code that runs
/// near them, and gain nothing if memory is the limit: these kernels use AVX2.
Isa choose(Op op, Type type) noexcept {
  const Isa best = best_isa();
  const bool adds = (op == Op::sum || op == Op::prod) && type >= Type::f32 && type <= Type::cf64;
  return best == Isa::avx512 && adds ? Isa::avx2 : best;
}

const FoldTable& table_of(Isa isa) noexcept {
  // Filled once, on first use: the tables never change.
  static const std::array<FoldTable, kIsaCount> tables = [] {
    std::array<FoldTable, kIsaCount> filled{};
    filled[static_cast<size_t>(Isa::reference)] = kReferenceTable;
    for (Isa each : kVectorIsas) {
      if (simd_available(each)) filled[static_cast<size_t>(each)] = simd_table(each);
    }
    FoldTable& automatic = filled[static_cast<size_t>(Isa::automatic)];
    for (int i = 0; i < kOpCount * kTypeCount; ++i) {
      const Op op = static_cast<Op>(i / kTypeCount);
      const Type type = static_cast<Type>(i % kTypeCount);
      automatic.set(op, type, filled[static_cast<size_t>(choose(op, type))].get(op, type));
    }
    return filled;
  }();
  return tables[static_cast<size_t>(isa)];
}

}  // namespace

const char* name(Isa isa) noexcept { return kIsaNames[static_cast<size_t>(isa)]; }

std::optional<Isa> parse_isa(std::string_view text) noexcept {
  for (size_t i = 0; i < kIsaNames.size(); ++i) {
    if (text == kIsaNames[i]) return static_cast<Isa>(i);
  }
  return std::nullopt;
}

Isa best_isa() noexcept {
  static const Isa best = detect_best();
  return best;
}

Isa resolve(Isa isa, Op op, Type type) noexcept { return isa == Isa::automatic ? choose(op, type) : isa; }

std::vector<Isa> available_isas() {
  std::vector<Isa> isas = {Isa::reference};
  for (Isa isa : kVectorIsas) {
    if (simd_available(isa)) isas.push_back(isa);
  }
  return isas;
}

size_t vector_bytes(Isa isa) noexcept {
  if (isa == Isa::automatic) isa = best_isa();
  if (isa == Isa::reference) return sizeof(uint64_t);
  return simd_available(isa) ? simd_vector_bytes(isa) : 0;
}

FoldFn find(Op op, Type type, Isa isa) noexcept { return table_of(isa).get(op, type); }

const char* why_not(Op op, Type type) noexcept {
  if (kReferenceTable.get(op, type) != nullptr) return nullptr;
  switch (op) {
    case Op::user:
      return "a user operation has no kernel of its own: it runs the function that was given with it";
    case Op::minloc:
    case Op::maxloc:
      return "minloc and maxloc are defined for pairs of value and index only: "
             "i16_i32, i32_i32, i64_i32, f32_i32, f64_i32";
    default:
      break;
  }
  if (is_pair(type)) return "pairs of value and index can be reduced by minloc and maxloc only";
  if (type == Type::cf32 || type == Type::cf64) return "complex numbers can be reduced by sum and prod only";
  return "bitwise and logical operations are defined for integers and bool only";
}

}  // namespace torii::kernels
