// SPDX-License-Identifier: Apache-2.0
// Operands by a hash of (seed, rank, index), so that two simulations fold the same.
#include "tools/torii-sim/data.hpp"

#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <string>

#include "runtime/status.hpp"
#include "transports/simulated/network.hpp"

namespace torii::tools {
namespace {

template <typename Element, typename Make>
void fill(std::byte* operand, std::size_t bytes, const Make& make) {
  for (std::size_t i = 0; i < bytes / sizeof(Element); ++i) {
    const Element element = make(i);
    std::memcpy(operand + i * sizeof(Element), &element, sizeof(Element));
  }
}

}  // namespace

void fill_operand(Type type, std::uint64_t seed, int rank, std::byte* operand, std::size_t bytes) {
  const std::uint64_t own_seed = seed * 1'000'003 + static_cast<std::uint64_t>(rank);
  const auto uniform = [=](std::size_t i) { return simulated::uniform(own_seed, i); };
  switch (type) {
    case Type::i32:
    case Type::u32:
      return fill<std::uint32_t>(operand, bytes,
                                 [&](std::size_t i) { return static_cast<std::uint32_t>(std::ldexp(uniform(i), 32)); });
    case Type::i64:
    case Type::u64:
      return fill<std::uint64_t>(operand, bytes, [&](std::size_t i) {
        return static_cast<std::uint64_t>(std::ldexp(uniform(i), 53)) * 0x9e3779b97f4a7c15U;
      });
    case Type::f32:
      return fill<float>(operand, bytes, [&](std::size_t i) { return static_cast<float>(2 * uniform(i) - 1); });
    case Type::f64:
      return fill<double>(operand, bytes, [&](std::size_t i) { return 2 * uniform(i) - 1; });
    default:
      throw Error(Status::invalid_argument,
                  "--type is '" + std::string(name(type)) + "'; with --data it must be i32, u32, i64, u64, f32 or f64");
  }
}

Compared compare(Collective collective, int root, const std::vector<std::vector<std::byte>>& results) {
  Compared compared;
  if (collective == Collective::reduce_scatter) {
    std::vector<std::byte> whole;
    const std::size_t block_bytes = results.front().size() / results.size();
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
      const auto own = results[rank].begin() + static_cast<std::ptrdiff_t>(rank * block_bytes);
      whole.insert(whole.end(), own, own + static_cast<std::ptrdiff_t>(block_bytes));
    }
    compared.hash = XXH3_64bits(whole.data(), whole.size());
    return compared;
  }
  if (is_prefix(collective)) {  // each rank has a result of its own
    std::vector<std::byte> whole;
    for (const std::vector<std::byte>& result : results) whole.insert(whole.end(), result.begin(), result.end());
    compared.hash = XXH3_64bits(whole.data(), whole.size());
    return compared;
  }
  const std::vector<std::byte>& first = results[static_cast<std::size_t>(root)];
  compared.hash = XXH3_64bits(first.data(), first.size());
  if (collective == Collective::reduce) return compared;
  for (const std::vector<std::byte>& result : results) compared.wrong += result != first ? 1 : 0;
  return compared;
}

}  // namespace torii::tools
