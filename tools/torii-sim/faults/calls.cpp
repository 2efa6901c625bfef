// SPDX-License-Identifier: Apache-2.0
// Data and results of calls. Elements are integers, so that results do not depend on the order of operations: which
// order a plan has is tested elsewhere.
#include "tools/torii-sim/faults/calls.hpp"

#include <algorithm>
#include <cstring>

namespace torii::faults {
namespace {

constexpr torii_type kTypes[] = {TORII_U8, TORII_I32, TORII_I64};
constexpr torii_op kOps[] = {TORII_SUM, TORII_MIN, TORII_MAX, TORII_BXOR};
constexpr std::size_t kCounts[] = {0, 1, 2, 7, 64, 1000, 5000, 40000};
constexpr int kCollectives = TORII_EXSCAN + 1;

/// The data of a call: the same seed gives a rank the same word at the same place.
std::uint64_t data_word(std::uint64_t seed, int rank, std::size_t at) {
  std::uint64_t x = seed * 0x2545f4914f6cdd1dULL + (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15ULL +
                    at * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

template <class T>
T number_in(std::mt19937_64& random, T below) {
  return static_cast<T>(random() % static_cast<std::uint64_t>(below));
}

bool is_rooted(torii_collective collective) {
  return collective == TORII_BROADCAST || collective == TORII_REDUCE || collective == TORII_SCATTER ||
         collective == TORII_GATHER;
}

std::size_t element_bytes(const CallSpec& spec) { return torii_type_bytes(spec.type); }

/// Blocks of one rank's input or result, by rank.
std::size_t block_bytes(const CallSpec& spec) { return spec.count * element_bytes(spec); }

std::int64_t combine(torii_op op, std::int64_t left, std::int64_t right) {
  switch (op) {
    case TORII_MIN:
      return std::min(left, right);
    case TORII_MAX:
      return std::max(left, right);
    case TORII_BXOR:
      return left ^ right;
    default:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
  }
}

/// Calls use(T()) with the type of the elements.
template <class Use>
void with_type(torii_type type, Use&& use) {
  if (type == TORII_U8) return use(std::uint8_t());
  if (type == TORII_I32) return use(std::int32_t());
  use(std::int64_t());
}

// Elements are read and written block by block: the thread sanitizer takes its time for each access.
constexpr std::size_t kBlock = 512;

template <class T>
void make_input(const CallSpec& spec, int rank, std::vector<std::byte>& input) {
  T block[kBlock];
  for (std::size_t at = 0; at < input.size(); at += sizeof(block)) {
    const std::size_t bytes = std::min(sizeof(block), input.size() - at);
    for (std::size_t i = 0; i < bytes / sizeof(T); ++i) {
      block[i] = static_cast<T>(data_word(spec.seed, rank, at + i * sizeof(T)));
    }
    std::memcpy(&input[at], block, bytes);
  }
}

/// result = result op next. Integers wrap.
template <class T>
void combine_all(torii_op op, std::vector<std::byte>& result, const std::vector<std::byte>& next) {
  T left[kBlock];
  T right[kBlock];
  for (std::size_t at = 0; at < result.size(); at += sizeof(left)) {
    const std::size_t bytes = std::min(sizeof(left), result.size() - at);
    std::memcpy(left, &result[at], bytes);
    std::memcpy(right, &next[at], bytes);
    for (std::size_t i = 0; i < bytes / sizeof(T); ++i) left[i] = static_cast<T>(combine(op, left[i], right[i]));
    std::memcpy(&result[at], left, bytes);
  }
}

/// Ranks first .. last - 1 combined.
std::vector<std::byte> fold(const CallSpec& spec, int ranks, int first, int last) {
  std::vector<std::byte> result = input_of(spec, ranks, first);
  for (int rank = first + 1; rank < last; ++rank) {
    const std::vector<std::byte> next = input_of(spec, ranks, rank);
    with_type(spec.type, [&]<class T>(T) { combine_all<T>(spec.op, result, next); });
  }
  return result;
}

std::vector<std::byte> block_of(const std::vector<std::byte>& all, std::size_t bytes, int block) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(bytes) * block;
  return {first, first + static_cast<std::ptrdiff_t>(bytes)};
}

}  // namespace

torii_call call_of(torii_collective collective, const void* input, void* result, std::size_t count, torii_type type,
                   torii_op op, int root) {
  torii_call call = {};
  call.size = sizeof(call);
  call.collective = collective;
  call.input = input;
  call.result = result;
  call.count = count;
  call.type = type;
  call.op = op;
  call.root = root;
  return call;
}

torii_status make_refused_call(torii_team* team, int way) {
  std::int32_t value = 0;
  torii_call call = call_of(TORII_ALLREDUCE, &value, &value, 1, TORII_I32);
  torii_request* request = nullptr;
  const std::size_t extents[] = {2, 2};
  const int axes[] = {1, 0};
  switch (way % kRefusals) {
    case 0:
      return torii_allreduce(team, &value, nullptr, 1, TORII_I32, TORII_SUM);
    case 1:
      return torii_broadcast(team, &value, 1, TORII_I32, torii_team_ranks(team));
    case 2:
      std::memset(&call.type, 99, sizeof(call.type));
      return torii_run(team, &call);
    case 3:
      return torii_scan(team, &value, &value, 1, TORII_F32, TORII_BAND);
    case 4:
      call.size = 3;
      return torii_run(team, &call);
    case 5:
      return torii_run(team, nullptr);
    case 6:
      return torii_start(team, &call, nullptr);
    case 7:
      return torii_gather(team, &value, &value, SIZE_MAX, TORII_I32, 0);
    case 8:
      return torii_alltoallv(team, &value, nullptr, nullptr, &value, nullptr, nullptr, TORII_I32);
    case 9:
      call.input = nullptr;
      return torii_prepare(team, &call, &request);
    case 10:
      call.result = nullptr;
      return torii_start(team, &call, &request);
    case 11:
      return torii_transpose_array(team, &value, &value, extents, axes, 99, 4);
    default:
      return torii_reduce_scatterv(team, &value, &value, nullptr, TORII_I32, TORII_SUM);
  }
}

CallSpec random_call(std::mt19937_64& random) {
  CallSpec spec;
  spec.collective = static_cast<torii_collective>(number_in(random, kCollectives));
  spec.type = kTypes[number_in(random, std::size(kTypes))];
  spec.op = kOps[number_in(random, std::size(kOps))];
  spec.count = kCounts[number_in(random, std::size(kCounts))];
  spec.root = is_rooted(spec.collective) ? number_in(random, 64) : 0;
  spec.seed = random();
  return spec;
}

CallSpec unlike(CallSpec spec, std::mt19937_64& random) {
  if (spec.collective == TORII_BARRIER || number_in(random, 3) == 0) {
    const int next = static_cast<int>(spec.collective) + 1 + number_in(random, kCollectives - 1);
    spec.collective = static_cast<torii_collective>(next % kCollectives);
  } else if (is_rooted(spec.collective) && number_in(random, 2) == 0) {
    ++spec.root;
  } else {
    ++spec.count;
  }
  return spec;
}

std::size_t input_bytes(const CallSpec& spec, int ranks) {
  const bool has_blocks =
      spec.collective == TORII_REDUCE_SCATTER || spec.collective == TORII_ALLTOALL || spec.collective == TORII_SCATTER;
  if (spec.collective == TORII_BARRIER) return 0;
  return block_bytes(spec) * (has_blocks ? static_cast<std::size_t>(ranks) : 1);
}

std::size_t result_bytes(const CallSpec& spec, int ranks, int rank) {
  switch (spec.collective) {
    case TORII_BARRIER:
      return 0;
    case TORII_REDUCE:
      return rank == spec.root % ranks ? block_bytes(spec) : 0;
    case TORII_GATHER:
      return rank == spec.root % ranks ? block_bytes(spec) * static_cast<std::size_t>(ranks) : 0;
    case TORII_ALL_GATHER:
    case TORII_ALLTOALL:
      return block_bytes(spec) * static_cast<std::size_t>(ranks);
    case TORII_EXSCAN:
      return rank == 0 ? 0 : block_bytes(spec);
    default:
      return block_bytes(spec);
  }
}

std::vector<std::byte> input_of(const CallSpec& spec, int ranks, int rank) {
  std::vector<std::byte> input(input_bytes(spec, ranks));
  with_type(spec.type, [&]<class T>(T) { make_input<T>(spec, rank, input); });
  return input;
}

std::vector<std::byte> expected_result(const CallSpec& spec, int ranks, int rank) {
  if (result_bytes(spec, ranks, rank) == 0) return {};
  const int root = spec.root % ranks;
  std::vector<std::byte> result;
  switch (spec.collective) {
    case TORII_BROADCAST:
      return input_of(spec, ranks, root);
    case TORII_SCATTER:
      return block_of(input_of(spec, ranks, root), block_bytes(spec), rank);
    case TORII_ALL_GATHER:
    case TORII_GATHER:
      for (int from = 0; from < ranks; ++from) {
        const std::vector<std::byte> block = input_of(spec, ranks, from);
        result.insert(result.end(), block.begin(), block.end());
      }
      return result;
    case TORII_ALLTOALL:
      for (int from = 0; from < ranks; ++from) {
        const std::vector<std::byte> block = block_of(input_of(spec, ranks, from), block_bytes(spec), rank);
        result.insert(result.end(), block.begin(), block.end());
      }
      return result;
    case TORII_REDUCE_SCATTER:
      return block_of(fold(spec, ranks, 0, ranks), block_bytes(spec), rank);
    case TORII_SCAN:
      return fold(spec, ranks, 0, rank + 1);
    case TORII_EXSCAN:
      return fold(spec, ranks, 0, rank);
    default:
      return fold(spec, ranks, 0, ranks);
  }
}

}  // namespace torii::faults
