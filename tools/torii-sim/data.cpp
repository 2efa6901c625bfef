// SPDX-License-Identifier: Apache-2.0
// Compares the results of all ranks.
#include "tools/torii-sim/data.hpp"

#include <xxhash.h>

#include <cstring>
#include <string>

#include "tools/operands.hpp"

namespace torii::tools {
namespace {

/// The number of ranks whose block differs from the one that `sender` had for them, and the hash of all blocks.
Compared compare_blocks(const Comparison& call, const std::vector<std::vector<std::byte>>& results) {
  Compared compared;
  const std::size_t ranks = results.size();
  const std::size_t bytes = results.front().size();
  const std::size_t block_bytes = bytes / ranks;
  std::vector<std::byte> operand(bytes);
  std::vector<bool> is_wrong(ranks, false);
  for (std::size_t sender = 0; sender < ranks; ++sender) {
    const bool is_root = static_cast<int>(sender) == call.root;
    if (call.collective == Collective::scatter && !is_root) continue;
    fill_operand(call.type, call.seed, static_cast<int>(sender), 0, bytes / size_of(call.type), operand.data());
    for (std::size_t receiver = 0; receiver < ranks; ++receiver) {
      if (call.collective == Collective::gather && static_cast<int>(receiver) != call.root) continue;
      // In a scatter or gather, a rank's own block is at its own place.
      const std::size_t from = call.collective == Collective::gather ? sender : receiver;
      const std::size_t to = call.collective == Collective::scatter ? receiver : sender;
      const std::byte* const got = results[receiver].data() + to * block_bytes;
      if (std::memcmp(got, operand.data() + from * block_bytes, block_bytes) != 0) is_wrong[receiver] = true;
    }
  }
  XXH3_state_t* const state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (const std::vector<std::byte>& result : results) XXH3_64bits_update(state, result.data(), result.size());
  compared.hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  for (const bool wrong : is_wrong) compared.wrong += wrong ? 1 : 0;
  return compared;
}

}  // namespace

Compared compare(const Comparison& call, const std::vector<std::vector<std::byte>>& results) {
  if (is_personalised(call.collective)) return compare_blocks(call, results);
  const Collective collective = call.collective;
  const int root = call.root;
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
