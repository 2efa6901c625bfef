// SPDX-License-Identifier: Apache-2.0
// Chooses which calls of a group run as one, and copies their vectors.
#include "api/calls/packed_calls.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "api/calls/call_buffers.hpp"

namespace torii {
namespace {

/// A user's function and a factor belong to one rank, so equality of neighbours' functions decides nothing here. Such
/// calls run alone.
bool may_be_packed(const GroupCall& call, int ranks, std::size_t most_bytes) noexcept {
  const CallSpec& spec = call.call.spec;
  switch (spec.collective) {
    case Collective::broadcast:
    case Collective::all_gather:
      break;
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
      if (spec.op == OpNumber::user || multiplies(spec)) return false;
      break;
    default:
      return false;
  }
  if (has_unequal_blocks(spec) || spec.has(CallMark::leaves)) return false;
  return spec.count <= most_bytes && vector_bytes(call, ranks) <= most_bytes;
}

/// The type does not matter where nothing is combined, as between ranks: the packed call is one of bytes.
bool go_together(const CallSpec& a, const CallSpec& b) noexcept {
  return a.collective == b.collective && a.root == b.root &&
         (!combines(a.collective) || (a.type == b.type && a.op == b.op));
}

/// A hash of the lengths of all members, never 0.
std::uint32_t hash_of_lengths(std::span<const GroupCall> calls) noexcept {
  std::uint64_t hash = calls.size();
  for (const GroupCall& call : calls) {
    hash = (hash ^ call.bytes) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  return static_cast<std::uint32_t>(hash >> 32) | 1U;
}

/// Members may have deadlines of their own; the shortest one holds. `of_team` is that of the others.
std::int64_t shortest_timeout_ns(std::span<const GroupCall> calls, std::int64_t of_team) noexcept {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  bool is_own = false;
  for (const GroupCall& call : calls) {
    const std::int64_t timeout_ns = call.call.extras.timeout_ns;
    is_own = is_own || timeout_ns != 0;
    shortest = std::min(shortest, timeout_ns != 0 ? timeout_ns : of_team);
  }
  return is_own ? shortest : 0;
}

/// Calls `body(call, offset, bytes)` for each member, with the place of its block in a block of the packed call.
template <typename Body>
void for_each_member(std::span<const GroupCall> calls, Body&& body) noexcept {
  std::size_t offset = 0;
  for (const GroupCall& call : calls) {
    if (call.bytes != 0) body(call.call, offset, call.bytes);
    offset += call.bytes;
  }
}

std::size_t sum_of_bytes(std::span<const GroupCall> calls) noexcept {
  std::size_t sum = 0;
  for (const GroupCall& call : calls) sum += call.bytes;
  return sum;
}

}  // namespace

std::size_t vector_bytes(const GroupCall& call, int ranks) noexcept {
  return has_block_per_rank(call.call.spec.collective) ? call.bytes * static_cast<std::size_t>(ranks) : call.bytes;
}

std::size_t count_packed(std::span<const GroupCall> calls, int ranks, const PackingLimits& limits) noexcept {
  const GroupCall& first = calls.front();
  if (!may_be_packed(first, ranks, limits.member_bytes)) return 1;
  std::size_t bytes = vector_bytes(first, ranks);
  std::size_t count = 1;
  for (; count < calls.size(); ++count) {
    const GroupCall& next = calls[count];
    if (!go_together(first.call.spec, next.call.spec)) break;
    if (!may_be_packed(next, ranks, limits.member_bytes)) break;
    bytes += vector_bytes(next, ranks);
    if (bytes > limits.all_bytes) break;
  }
  return count;
}

void check_members(std::span<const GroupCall> calls, int rank) {
  for (const GroupCall& one : calls) {
    const auto& [spec, memory, extras] = one.call;
    if (spec.count == 0) continue;
    const bool has_result = spec.collective != Collective::reduce || rank == spec.root;
    if (has_result && one.call.access() == nullptr && memory.result == nullptr) throw_missing_buffer(true);
    if (spec.collective != Collective::broadcast && memory.input == nullptr) throw_missing_buffer(false);
  }
}

CallDescription packed_call(std::span<const GroupCall> calls, std::byte* memory, const Membership& members) noexcept {
  CallDescription packed;
  CallSpec& spec = packed.spec;
  spec = calls.front().call.spec;
  const std::size_t bytes = sum_of_bytes(calls);
  if (!combines(spec.collective)) spec.type = Type::u8;
  spec.count = bytes / size_of(spec.type);
  spec.set(CallMark::packed);
  spec.tag = hash_of_lengths(calls);
  packed.extras.timeout_ns = shortest_timeout_ns(calls, members.timeout_ns());
  // In place: a rank's own block is inside the vector.
  packed.memory = {memory, memory};
  std::byte* const own_block = memory + static_cast<std::size_t>(members.rank()) * bytes;
  if (spec.collective == Collective::all_gather) packed.memory.input = own_block;
  if (spec.collective == Collective::reduce_scatter) packed.memory.result = own_block;
  return packed;
}

void pack(std::span<const GroupCall> calls, std::byte* memory, const Membership& members) noexcept {
  const std::size_t all_bytes = sum_of_bytes(calls);
  const Collective collective = calls.front().call.spec.collective;
  for_each_member(calls, [&](const CallDescription& call, std::size_t offset, std::size_t bytes) {
    const auto* const input = static_cast<const std::byte*>(call.memory.input);
    if (collective == Collective::reduce_scatter) {
      for (std::size_t block = 0; block < static_cast<std::size_t>(members.ranks()); ++block) {
        std::memcpy(memory + block * all_bytes + offset, input + block * bytes, bytes);
      }
    } else if (collective == Collective::all_gather) {
      std::memcpy(memory + static_cast<std::size_t>(members.rank()) * all_bytes + offset, input, bytes);
    } else if (collective != Collective::broadcast) {
      std::memcpy(memory + offset, input, bytes);
    } else if (members.rank() != call.spec.root) {
      return;
    } else if (const Access* const access = call.access(); access != nullptr) {
      access->load(memory + offset, 0, bytes, access->data);
    } else {
      std::memcpy(memory + offset, call.memory.result, bytes);
    }
  });
}

void unpack(std::span<const GroupCall> calls, const std::byte* memory, const Membership& members) noexcept {
  const std::size_t all_bytes = sum_of_bytes(calls);
  const Collective collective = calls.front().call.spec.collective;
  for_each_member(calls, [&](const CallDescription& call, std::size_t offset, std::size_t bytes) {
    auto* const result = static_cast<std::byte*>(call.memory.result);
    const bool is_root = members.rank() == call.spec.root;
    if (collective == Collective::reduce_scatter) {
      std::memcpy(result, memory + static_cast<std::size_t>(members.rank()) * all_bytes + offset, bytes);
    } else if (collective == Collective::all_gather) {
      for (std::size_t block = 0; block < static_cast<std::size_t>(members.ranks()); ++block) {
        std::memcpy(result + block * bytes, memory + block * all_bytes + offset, bytes);
      }
    } else if (has_root(collective) && is_root != (collective == Collective::reduce)) {
      return;  // a broadcast's root has its vector, and ranks other than the root have no result of a reduce
    } else if (const Access* const access = call.access(); access != nullptr) {
      access->store(memory + offset, 0, bytes, access->data);
    } else {
      std::memcpy(result, memory + offset, bytes);
    }
  });
}

}  // namespace torii
