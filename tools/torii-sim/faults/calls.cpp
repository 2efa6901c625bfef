// SPDX-License-Identifier: Apache-2.0
// Calls by a seed, their blocks and their results. Results do not depend on the order of operations: which order a plan
// has is tested elsewhere.
#include "tools/torii-sim/faults/calls.hpp"

#include <algorithm>
#include <cstring>

#include "reduce_kernels/kernels.hpp"
#include "tools/torii-sim/faults/elements.hpp"

namespace torii::faults {
namespace {

constexpr std::size_t kElementCounts[] = {0, 1, 2, 7, 64, 1000, 5000, 5000, 40000};

template <class T>
T number_in(std::mt19937_64& random, T below) {
  return static_cast<T>(random() % static_cast<std::uint64_t>(below));
}

bool is_rooted(const DrawnCall& spec) { return spec.kind == CallKind::collective && has_root(spec.collective); }

std::size_t element_bytes(const DrawnCall& spec) { return torii_type_bytes(spec.type); }

/// Elements of a block: of the one that rank `from` has for rank `to` in an alltoall, of rank `to` or `from` otherwise.
std::size_t length_of(const DrawnCall& spec, int from, int to) {
  if (!spec.unequal) return spec.count;
  const int pair = spec.collective == TORII_ALLTOALL ? 64 * from + to : std::max(from, to);
  const std::uint64_t drawn = mixed(spec.lengths + static_cast<std::uint64_t>(pair));
  return drawn % 4 == 0 ? 0 : drawn / 4 % (2 * spec.count + 1);
}

/// Elements of the blocks of a vector before block `end`.
template <class Length>
std::size_t sum_before(int end, const Length& length) {
  std::size_t sum = 0;
  for (int block = 0; block < end; ++block) sum += length(block);
  return sum;
}

/// Elements before the block for rank `to` in the input of `rank`, and before the block of rank `from` in its result.
std::size_t input_offset(const DrawnCall& spec, int rank, int to) {
  const int from = spec.collective == TORII_ALLTOALL ? rank : 0;
  return sum_before(to, [&](int block) { return length_of(spec, from, block); });
}
std::size_t result_offset(const DrawnCall& spec, int rank, int from) {
  const int to = spec.collective == TORII_ALLTOALL ? rank : 0;
  return sum_before(from, [&](int block) { return length_of(spec, block, to); });
}

/// Addresses of blocks in place of a buffer, on each side that has counts and a buffer.
void write_lists(Words& words) {
  const std::size_t bytes = torii_type_bytes(words.call.type);
  torii_call& call = words.call;
  if (call.input_counts != nullptr && call.input != nullptr) {
    const auto* next = static_cast<const std::byte*>(call.input);
    for (const std::size_t count : words.input_counts) {
      words.input_blocks.push_back(count == 0 ? nullptr : next);
      next += count * bytes;
    }
    call.input = nullptr;
    call.input_blocks = words.input_blocks.data();
  }
  if (call.result_counts != nullptr && call.result != nullptr) {
    auto* next = static_cast<std::byte*>(call.result);
    for (const std::size_t count : words.result_counts) {
      words.result_blocks.push_back(count == 0 ? nullptr : next);
      next += count * bytes;
    }
    call.result = nullptr;
    call.result_blocks = words.result_blocks.data();
  }
}

int root_of(const DrawnCall& spec, Place place) { return spec.root % place.ranks; }

std::size_t input_count(const DrawnCall& spec, Place place) {
  if (spec.collective == TORII_BARRIER) return 0;
  if (gives_blocks(spec.collective)) return input_offset(spec, place.rank, place.ranks);
  return length_of(spec, place.rank, 0);
}

std::size_t result_count(const DrawnCall& spec, Place place) {
  if (!has_result(spec.collective, place.rank, root_of(spec, place))) return 0;
  if (gets_blocks(spec.collective)) return result_offset(spec, place.rank, place.ranks);
  return length_of(spec, 0, place.rank);
}

/// The same as fold(), one rank after the other.
std::vector<std::byte> fold_by_user(const DrawnCall& spec, int last, std::size_t first, std::size_t count) {
  std::vector<std::byte> result(count * element_bytes(spec));
  std::vector<std::byte> next(result.size());
  fill_elements(spec, 0, first, count, result.data());
  for (int rank = 1; rank < last; ++rank) {
    fill_elements(spec, rank, first, count, next.data());
    user_operation(spec.commutes)(result.data(), next.data(), result.data(), count, nullptr);
  }
  return result;
}

/// Ranks 0 .. last - 1 combined by the plain reference: elements [first, first + count).
std::vector<std::byte> fold(const DrawnCall& spec, int last, std::size_t first, std::size_t count) {
  if (spec.op == TORII_USER) return fold_by_user(spec, last, first, count);
  std::vector<std::byte> inputs(static_cast<std::size_t>(last) * count * element_bytes(spec));
  std::vector<const void*> sources;
  for (int rank = 0; rank < last; ++rank) {
    std::byte* const own = inputs.data() + static_cast<std::size_t>(rank) * count * element_bytes(spec);
    fill_elements(spec, rank, first, count, own);
    sources.push_back(own);
  }
  std::vector<std::byte> result(count * element_bytes(spec));
  void* const target = result.data();
  kernels::Operands operands;
  operands.sources = sources.data();
  operands.source_count = last;
  operands.targets = &target;
  operands.target_count = 1;
  const kernels::FoldFn combine =
      kernels::find(static_cast<Op>(spec.op), static_cast<Type>(spec.type), kernels::Isa::reference);
  combine(operands, count);
  return result;
}

}  // namespace

DrawnCall random_call(std::mt19937_64& random) {
  DrawnCall spec;
  spec.collective = static_cast<torii_collective>(number_in(random, kCollectiveCount));
  if (number_in(random, 16) == 0) spec.kind = static_cast<CallKind>(1 + number_in(random, 2));
  spec.type = random_type(random, combines(spec.collective) ? CallKind::collective : CallKind::permute);
  spec.op = random_op(random, spec.type);
  spec.count = kElementCounts[number_in(random, std::size(kElementCounts))];
  spec.unequal = spec.kind == CallKind::collective && has_blocks(spec.collective) && number_in(random, 4) == 0;
  spec.lengths = random();
  spec.in_place = number_in(random, 4) == 0;
  spec.root = is_rooted(spec) ? number_in(random, 64) : 0;
  spec.seed = random();
  // By the seed of the data, so that all other calls stay as they were before there were sends.
  if (spec.kind == CallKind::collective && mixed(spec.seed) % 16 == 0) {
    spec.kind = CallKind::sends;
    spec.collective = TORII_ALLTOALL;
    spec.unequal = true;
    spec.in_place = false;
  }
  // By the same seed.
  if (spec.kind == CallKind::collective && combines(spec.collective) && mixed(spec.seed + 6) % 6 == 0) {
    spec.type = kUserType;
    spec.op = TORII_USER;
    spec.commutes = mixed(spec.seed + 7) % 3 == 0;
  }
  return spec;
}

DrawnCall unlike(DrawnCall spec, std::mt19937_64& random) {
  const bool has_other_kind = spec.kind != CallKind::collective;
  spec.unequal = false;
  spec.kind = CallKind::collective;
  if (has_other_kind || spec.collective == TORII_BARRIER || number_in(random, 3) == 0) {
    const int next = static_cast<int>(spec.collective) + 1 + number_in(random, kCollectiveCount - 1);
    spec.collective = static_cast<torii_collective>(next % kCollectiveCount);
    spec.type = TORII_I32;
    spec.op = TORII_SUM;
  } else if (is_rooted(spec) && number_in(random, 2) == 0) {
    ++spec.root;
  } else if (combines(spec.collective) && spec.op == TORII_USER && number_in(random, 2) == 0) {
    spec.commutes = !spec.commutes;
  } else {
    ++spec.count;
  }
  return spec;
}

std::string text_of(const DrawnCall& spec) {
  std::string text = torii_collective_name(spec.collective);
  if (redistributes(spec.kind)) text = spec.kind == CallKind::transpose ? "transpose" : "permute";
  if (spec.kind == CallKind::sends) text = "sends and receives";
  if (spec.unequal && spec.kind == CallKind::collective) text += "v";
  if (combines(spec.collective)) {
    const bool is_ordered = spec.op == TORII_USER && !spec.commutes;
    text += std::string(" (") + name(static_cast<Op>(spec.op)) + (is_ordered ? ", does not commute)" : ")");
  }
  text += " of " + std::to_string(spec.count) + " x " + name(static_cast<Type>(spec.type));
  if (spec.in_place) text += " in place";
  return is_rooted(spec) ? text + ", root " + std::to_string(spec.root) : text;
}

std::size_t input_bytes(const DrawnCall& spec, Place place) {
  const std::size_t count = redistributes(spec.kind) ? items_of(spec, place).input_count : input_count(spec, place);
  return count * element_bytes(spec);
}

std::size_t result_bytes(const DrawnCall& spec, Place place) {
  const std::size_t count = redistributes(spec.kind) ? items_of(spec, place).result_count : result_count(spec, place);
  return count * element_bytes(spec);
}

std::vector<std::byte> input_of(const DrawnCall& spec, Place place) {
  std::vector<std::byte> input(input_bytes(spec, place));
  const std::size_t count = input.size() / element_bytes(spec);
  if (redistributes(spec.kind)) {
    fill_elements(spec, 0, items_of(spec, place).input_first, count, input.data());
  } else {
    fill_elements(spec, place.rank, 0, count, input.data());
  }
  return input;
}

std::vector<std::byte> expected_result(const DrawnCall& spec, Place place) {
  if (redistributes(spec.kind)) return expected_items(spec, place);
  std::vector<std::byte> result(result_bytes(spec, place));
  if (result.empty()) return result;
  const int rank = place.rank;
  const std::size_t count = result.size() / element_bytes(spec);
  const auto gather = [&](const auto& first_of) {
    std::byte* to = result.data();
    const int own = spec.collective == TORII_ALLTOALL ? rank : 0;
    for (int from = 0; from < place.ranks; ++from) {
      const std::size_t length = length_of(spec, from, own);
      fill_elements(spec, from, first_of(from), length, to);
      to += length * element_bytes(spec);
    }
    return result;
  };
  switch (spec.collective) {
    case TORII_BROADCAST:
      fill_elements(spec, root_of(spec, place), 0, count, result.data());
      return result;
    case TORII_SCATTER:
      fill_elements(spec, root_of(spec, place), input_offset(spec, 0, rank), count, result.data());
      return result;
    case TORII_ALL_GATHER:
    case TORII_GATHER:
      return gather([](int) { return std::size_t{0}; });
    case TORII_ALLTOALL:
      return gather([&](int from) { return input_offset(spec, from, rank); });
    case TORII_REDUCE_SCATTER:
      return fold(spec, place.ranks, input_offset(spec, 0, rank), count);
    case TORII_SCAN:
      return fold(spec, rank + 1, 0, count);
    case TORII_EXSCAN:
      return fold(spec, rank, 0, count);
    default:
      return fold(spec, place.ranks, 0, count);
  }
}

Overlap overlap_of(const DrawnCall& spec, Place place) {
  const std::size_t input = input_bytes(spec, place);
  const std::size_t result = result_bytes(spec, place);
  if (!spec.in_place || input == 0 || result == 0) return {};
  if (!redistributes(spec.kind)) {
    const torii_collective collective = spec.collective;
    if (collective == TORII_BROADCAST || !has_input(collective, place.rank, root_of(spec, place))) return {};
    if (gives_blocks(collective) && gets_blocks(collective)) {
      // Blocks of unlike lengths would overlap.
      return spec.unequal ? Overlap{} : Overlap{0, 0, std::max(input, result)};
    }
    if (gets_blocks(collective)) return {result_offset(spec, 0, place.rank) * element_bytes(spec), 0, result};
    if (gives_blocks(collective)) return {0, input_offset(spec, 0, place.rank) * element_bytes(spec), input};
  }
  return {0, 0, std::max(input, result)};
}

void write_words(Words& words, const DrawnCall& spec, Place place, const void* input, void* result) {
  words.call = make_call(spec.collective, input, result, spec.count, spec.type, spec.op, root_of(spec, place));
  if (spec.op == TORII_USER) {
    words.call.user = user_operation(spec.commutes);
    words.call.user_bytes = element_bytes(spec);
    words.call.commutes = spec.commutes ? 1 : 0;
  }
  if (!spec.unequal) return;
  words.call.unequal = 1;
  const bool is_alltoall = spec.collective == TORII_ALLTOALL;
  const int own = is_alltoall ? place.rank : 0;
  for (int rank = 0; rank < place.ranks; ++rank) {
    words.input_counts.push_back(length_of(spec, own, rank));
    words.result_counts.push_back(length_of(spec, rank, own));
  }
  if (gives_blocks(spec.collective)) words.call.input_counts = words.input_counts.data();
  if (gets_blocks(spec.collective)) words.call.result_counts = words.result_counts.data();
  words.call.count = length_of(spec, place.rank, place.rank);
  // Each rank chooses by itself, in each call, whether it gives addresses.
  const bool has_list = mixed(spec.seed + 3 + static_cast<std::uint64_t>(place.rank)) % 3 == 0;
  if (has_list && spec.collective != TORII_REDUCE_SCATTER) write_lists(words);
}

}  // namespace torii::faults
