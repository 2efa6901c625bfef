// SPDX-License-Identifier: Apache-2.0
// Reads the lengths and places of unequal blocks out of a caller's arrays.
#include "api/team/unequal_blocks.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace torii {
namespace {

constexpr std::size_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max() / 2;

/// One side of a call: what it is called in messages, and where its lengths go.
struct Side {
  const char* name;
  const std::size_t* counts;
  const std::size_t* displacements;
  std::vector<std::size_t>& bytes;
  std::vector<std::int64_t>& offsets;
};

/// Returns how far the side's buffer reaches.
std::size_t read_side(const Side& side, std::size_t element_bytes) {
  if (side.counts == nullptr) {
    throw Error(Status::invalid_argument, std::string(side.name) + "_counts is NULL, but blocks are unequal");
  }
  std::size_t next = 0;
  std::size_t reach = 0;
  const std::size_t most = kMostBytes / element_bytes;
  for (std::size_t peer = 0; peer < side.bytes.size(); ++peer) {
    const std::size_t count = side.counts[peer];
    const std::size_t place = side.displacements != nullptr ? side.displacements[peer] : next;
    if (count > most || place > most - count) {
      throw Error(Status::invalid_argument, std::string(side.name) + "_counts[" + std::to_string(peer) + "] is " +
                                                std::to_string(count) + " at " + std::to_string(place) +
                                                ", whose bytes overflow; both together are at most " +
                                                std::to_string(most));
    }
    side.bytes[peer] = count * element_bytes;
    side.offsets[peer] = static_cast<std::int64_t>(place * element_bytes);
    next = place + count;
    if (count != 0) reach = std::max(reach, next * element_bytes);
  }
  return reach;
}

}  // namespace

std::unique_ptr<UnequalBlocks> read_blocks(const CallArguments& arguments, int ranks, int rank) {
  const std::size_t element_bytes = size_of(arguments.type);
  const auto all = static_cast<std::size_t>(ranks);
  const auto own = static_cast<std::size_t>(rank);
  const auto root = static_cast<std::size_t>(arguments.root);
  if (root >= all) {
    throw Error(Status::invalid_argument,
                "root is " + std::to_string(arguments.root) + "; it must be from 0 to " + std::to_string(ranks - 1));
  }
  if (arguments.count > kMostBytes / element_bytes) {
    throw Error(Status::invalid_argument, "count is " + std::to_string(arguments.count) +
                                              ", whose bytes overflow; the most is " +
                                              std::to_string(kMostBytes / element_bytes));
  }
  auto unequal = std::make_unique<UnequalBlocks>();
  ExchangeBlocks& blocks = unequal->blocks;
  blocks.send_bytes.resize(all);
  blocks.take_bytes.resize(all);
  blocks.send_offsets.resize(all);
  blocks.take_offsets.resize(all);
  const bool is_scatter = arguments.collective == Collective::scatter;
  const bool is_gather = arguments.collective == Collective::gather;
  const std::size_t own_bytes = arguments.count * element_bytes;
  if (arguments.collective == Collective::all_gather) {
    blocks.send_bytes.assign(all, own_bytes);
    unequal->input_bytes = own_bytes;
  } else if (is_gather) {
    blocks.send_bytes[root] = unequal->input_bytes = own_bytes;
  } else if (!is_scatter || own == root) {
    unequal->input_bytes = read_side(
        {"input", arguments.input_counts, arguments.input_displacements, blocks.send_bytes, blocks.send_offsets},
        element_bytes);
  }
  if (is_scatter) {
    blocks.take_bytes[root] = unequal->result_bytes = own_bytes;
  } else if (!is_gather || own == root) {
    unequal->result_bytes = read_side(
        {"result", arguments.result_counts, arguments.result_displacements, blocks.take_bytes, blocks.take_offsets},
        element_bytes);
  }
  if (blocks.send_bytes[own] != blocks.take_bytes[own]) {
    throw Error(Status::invalid_argument,
                "rank " + std::to_string(rank) + " has " + std::to_string(blocks.send_bytes[own]) +
                    " bytes for itself and expects " + std::to_string(blocks.take_bytes[own]));
  }
  if (unequal->input_bytes != 0 && arguments.input == nullptr) {
    throw Error(Status::invalid_argument, "input is NULL, but its blocks are not empty");
  }
  if (unequal->result_bytes != 0 && arguments.result == nullptr) {
    throw Error(Status::invalid_argument, "result is NULL, but its blocks are not empty");
  }
  if (is_scatter || is_gather) {
    unequal->lengths.assign(all, 0);
    const std::vector<std::size_t>& lengths = is_scatter ? blocks.send_bytes : blocks.take_bytes;
    if (own == root) std::copy(lengths.begin(), lengths.end(), unequal->lengths.begin());
  }
  return unequal;
}

std::vector<std::size_t> read_block_counts(const CallArguments& arguments, int ranks) {
  const std::size_t* const counts = arguments.block_counts;
  const std::size_t element_bytes =
      arguments.user.call != nullptr ? arguments.user.element_bytes : size_of(arguments.type);
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

}  // namespace torii
