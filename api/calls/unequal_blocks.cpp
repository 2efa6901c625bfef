// SPDX-License-Identifier: Apache-2.0
// Reads the lengths and places of unequal blocks out of a caller's arrays.
#include "api/calls/unequal_blocks.hpp"

#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "runtime/base/status.hpp"
#include "runtime/plan/transfer_rules.hpp"

namespace torii {
namespace {

constexpr std::size_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max() / 2;

/// One side of a call: what it is called in messages, and where its lengths go.
struct Side {
  const char* name;
  const std::size_t* counts;
  const std::size_t* displacements;
  const void* const* addresses;  ///< of a list; nullptr: the blocks are in one buffer
  std::size_t count;             ///< of every block of a list without counts
  std::vector<std::size_t>& bytes;
  std::vector<std::int64_t>& offsets;
};

/// Returns how far the side's buffer reaches.
std::size_t read_side(const Side& side, std::size_t element_bytes) {
  if (side.counts == nullptr) invalid(std::string(side.name) + "_counts is NULL, but blocks are unequal");
  std::size_t next = 0;
  std::size_t reach = 0;
  const std::size_t most = kMostBytes / element_bytes;
  for (std::size_t peer = 0; peer < side.bytes.size(); ++peer) {
    const std::size_t count = side.counts[peer];
    const std::size_t place = side.displacements != nullptr ? side.displacements[peer] : next;
    if (count > most || place > most - count) {
      invalid(std::string(side.name) + "_counts[" + std::to_string(peer) + "] is " + std::to_string(count) + " at " +
              std::to_string(place) + ", whose bytes overflow; both together are at most " + std::to_string(most));
    }
    side.bytes[peer] = count * element_bytes;
    side.offsets[peer] = static_cast<std::int64_t>(place * element_bytes);
    next = place + count;
    if (count != 0) reach = std::max(reach, next * element_bytes);
  }
  return reach;
}

/// The same for a list. Returns the sum of its blocks, and in `begin` the first one that is not empty.
std::size_t read_list(const Side& side, std::size_t element_bytes, const std::byte*& begin) {
  if (side.displacements != nullptr) {
    invalid(std::string(side.name) + "_displacements is not NULL, but " + side.name + "_blocks has the addresses");
  }
  std::size_t sum = 0;
  const std::size_t most = kMostBytes / element_bytes;
  for (std::size_t peer = 0; peer < side.bytes.size(); ++peer) {
    const std::size_t count = side.counts != nullptr ? side.counts[peer] : side.count;
    if (count > most - sum) {
      invalid(std::string(side.name) + "_counts[" + std::to_string(peer) + "] is " + std::to_string(count) + " after " +
              std::to_string(sum) + " elements of other blocks, whose bytes overflow; all together are at most " +
              std::to_string(most));
    }
    sum += count;
    side.bytes[peer] = count * element_bytes;
    side.offsets[peer] = 0;
    if (count == 0) continue;
    const auto* const address = static_cast<const std::byte*>(side.addresses[peer]);
    if (address == nullptr) {
      invalid(std::string(side.name) + "_blocks[" + std::to_string(peer) + "] is NULL, but the block has " +
              std::to_string(count) + " elements");
    }
    if (begin == nullptr) begin = address;
    // Blocks are different objects, whose addresses must not be subtracted as pointers.
    side.offsets[peer] =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin));
  }
  return sum * element_bytes;
}

void read_input(const BlockArrays& arrays, std::size_t element_bytes, UnequalBlocks& unequal) {
  const Side side = {"input",      arrays.input_counts,       arrays.input_displacements, arrays.input_blocks,
                     arrays.count, unequal.blocks.send_bytes, unequal.blocks.send_offsets};
  unequal.lists_input = arrays.input_blocks != nullptr;
  unequal.input_bytes =
      unequal.lists_input ? read_list(side, element_bytes, unequal.input_begin) : read_side(side, element_bytes);
}

void read_result(const BlockArrays& arrays, std::size_t element_bytes, UnequalBlocks& unequal) {
  const Side side = {"result",     arrays.result_counts,      arrays.result_displacements, arrays.result_blocks,
                     arrays.count, unequal.blocks.take_bytes, unequal.blocks.take_offsets};
  const std::byte* begin = nullptr;
  unequal.lists_result = arrays.result_blocks != nullptr;
  unequal.result_bytes = unequal.lists_result ? read_list(side, element_bytes, begin) : read_side(side, element_bytes);
  unequal.result_begin = const_cast<std::byte*>(begin);
}

void check_addresses(const CallMemory& memory, const UnequalBlocks& unequal) {
  if (unequal.lists_input && memory.input != nullptr) invalid("input is not NULL, but input_blocks has the addresses");
  if (unequal.lists_result && memory.result != nullptr) {
    invalid("result is not NULL, but result_blocks has the addresses");
  }
  if (!unequal.lists_input && unequal.input_bytes != 0 && memory.input == nullptr) {
    invalid("input is NULL, but its blocks are not empty");
  }
  if (!unequal.lists_result && unequal.result_bytes != 0 && memory.result == nullptr) {
    invalid("result is NULL, but its blocks are not empty");
  }
}

/// An alltoall is in place if input == result, or, with lists, if the blocks for and from one peer have one address.
/// Its input is then copied before the call, block behind block: memory between blocks may be missing, or another
/// thread's. The own block of a list may stay in its place.
void find_in_place(const CallMemory& memory, std::size_t own, UnequalBlocks& unequal) {
  ExchangeBlocks& blocks = unequal.blocks;
  const auto* const input = unequal.lists_input ? unequal.input_begin : static_cast<const std::byte*>(memory.input);
  const auto* const result = unequal.lists_result ? unequal.result_begin : static_cast<const std::byte*>(memory.result);
  const auto address = [](const std::byte* begin, std::int64_t offset) {
    return reinterpret_cast<std::uintptr_t>(begin) + static_cast<std::uintptr_t>(offset);
  };
  const bool has_lists = unequal.has_lists();
  bool is_in_place = !has_lists && memory.input == memory.result;
  for (std::size_t peer = 0; has_lists && peer < blocks.send_bytes.size(); ++peer) {
    if (peer == own || blocks.send_bytes[peer] == 0 || blocks.take_bytes[peer] == 0) continue;
    is_in_place =
        is_in_place || address(input, blocks.send_offsets[peer]) == address(result, blocks.take_offsets[peer]);
  }
  if (!is_in_place) return;
  std::size_t next = 0;
  for (std::size_t peer = 0; peer < blocks.send_bytes.size(); ++peer) {
    unequal.copied_from.push_back(reinterpret_cast<const std::byte*>(address(input, blocks.send_offsets[peer])));
    blocks.send_offsets[peer] = static_cast<std::int64_t>(next);
    next += blocks.send_bytes[peer];
  }
  unequal.input_bytes = next;
}

/// Makes room for so many blocks; vectors keep their memory. Their elements may be those of another call.
void forget_call(std::size_t ranks, UnequalBlocks& unequal) {
  ExchangeBlocks& blocks = unequal.blocks;
  blocks.send_bytes.resize(ranks);
  blocks.take_bytes.resize(ranks);
  blocks.send_offsets.resize(ranks);
  blocks.take_offsets.resize(ranks);
  unequal.input_bytes = unequal.result_bytes = 0;
  unequal.lists_input = unequal.lists_result = false;
  unequal.input_begin = unequal.result_begin = nullptr;
  unequal.copied_from.clear();
  unequal.lengths.clear();
  unequal.shifts.clear();
  unequal.own_shift_bytes = 0;
  unequal.is_told = false;
}

/// Empties every block but that of `rank`, which gets so many bytes; 0: all are empty.
void set_one(std::size_t rank, std::size_t bytes, std::vector<std::size_t>& lengths,
             std::vector<std::int64_t>& offsets) {
  lengths.assign(lengths.size(), 0);
  offsets.assign(offsets.size(), 0);
  lengths[rank] = bytes;
}

/// Finds the blocks that this rank sends: none in a scatter, unless it is the root.
void find_input(const CallDescription& call, std::size_t own, std::size_t root, std::size_t element_bytes,
                UnequalBlocks& unequal) {
  ExchangeBlocks& blocks = unequal.blocks;
  const std::size_t own_bytes = call.blocks()->count * element_bytes;
  if (call.spec.collective == Collective::all_gather) {
    blocks.send_bytes.assign(blocks.send_bytes.size(), own_bytes);
    blocks.send_offsets.assign(blocks.send_offsets.size(), 0);
    unequal.input_bytes = own_bytes;
  } else if (call.spec.collective == Collective::gather) {
    set_one(root, own_bytes, blocks.send_bytes, blocks.send_offsets);
    unequal.input_bytes = own_bytes;
  } else if (call.spec.collective == Collective::scatter && own != root) {
    set_one(root, 0, blocks.send_bytes, blocks.send_offsets);
  } else {
    read_input(*call.blocks(), element_bytes, unequal);
  }
}

void find_result(const CallDescription& call, std::size_t own, std::size_t root, std::size_t element_bytes,
                 UnequalBlocks& unequal) {
  ExchangeBlocks& blocks = unequal.blocks;
  if (call.spec.collective == Collective::scatter) {
    unequal.result_bytes = call.blocks()->count * element_bytes;
    set_one(root, unequal.result_bytes, blocks.take_bytes, blocks.take_offsets);
  } else if (call.spec.collective == Collective::gather && own != root) {
    set_one(root, 0, blocks.take_bytes, blocks.take_offsets);
  } else {
    read_result(*call.blocks(), element_bytes, unequal);
  }
}

constexpr bool is_short(std::size_t bytes) noexcept { return bytes <= kAtOnceBytes; }

}  // namespace

void read_blocks(const CallDescription& call, int ranks, int rank, UnequalBlocks& unequal) {
  const std::size_t element_bytes = size_of(call.spec.type);
  const auto all = static_cast<std::size_t>(ranks);
  const auto own = static_cast<std::size_t>(rank);
  const auto root = static_cast<std::size_t>(call.spec.root);
  if (root >= all) {
    invalid("root is " + std::to_string(call.spec.root) + "; it must be from 0 to " + std::to_string(ranks - 1));
  }
  if (const std::size_t count = call.blocks()->count; count > kMostBytes / element_bytes) {
    invalid("count is " + std::to_string(count) + ", whose bytes overflow; the most is " +
            std::to_string(kMostBytes / element_bytes));
  }
  forget_call(all, unequal);
  const ExchangeBlocks& blocks = unequal.blocks;
  find_input(call, own, root, element_bytes, unequal);
  find_result(call, own, root, element_bytes, unequal);
  if (blocks.send_bytes[own] != blocks.take_bytes[own]) {
    invalid("rank " + std::to_string(rank) + " has " + std::to_string(blocks.send_bytes[own]) +
            " bytes for itself and expects " + std::to_string(blocks.take_bytes[own]));
  }
  check_addresses(call.memory, unequal);
  if (call.spec.collective == Collective::alltoall) find_in_place(call.memory, own, unequal);
  const bool is_scatter = call.spec.collective == Collective::scatter;
  if (is_scatter || call.spec.collective == Collective::gather) {
    unequal.lengths.assign(all, 0);
    const std::vector<std::size_t>& lengths = is_scatter ? blocks.send_bytes : blocks.take_bytes;
    if (own == root) std::copy(lengths.begin(), lengths.end(), unequal.lengths.begin());
  }
  unequal.are_short =
      std::ranges::all_of(blocks.send_bytes, is_short) && std::ranges::all_of(blocks.take_bytes, is_short);
}

std::vector<std::size_t> read_block_counts(const CallDescription& call, int ranks) {
  const std::size_t* const counts = call.block_counts();
  const std::size_t element_bytes = call.user() != nullptr ? call.user()->element_bytes : size_of(call.spec.type);
  const std::size_t most = kMostBytes / std::max<std::size_t>(element_bytes, 1);
  std::size_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (counts[rank] > most - sum) {
      throw Error(Status::invalid_argument, "input_counts[" + std::to_string(rank) + "] is " +
                                                std::to_string(counts[rank]) + " after " + std::to_string(sum) +
                                                " elements of other blocks, whose bytes overflow; all together are "
                                                "at most " +
                                                std::to_string(most));
    }
    sum += counts[rank];
  }
  return {counts, counts + ranks};
}

void take_block_counts(std::span<const std::size_t> counts, CallDescription& call) noexcept {
  call.set_block_counts(counts.data());
  call.spec.count = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  call.spec.content = XXH3_64bits(counts.data(), counts.size_bytes());
}

}  // namespace torii
