// SPDX-License-Identifier: Apache-2.0
// Transposes: packs the blocks, exchanges them by an alltoall, and unpacks them.
#include "api/redistribution/redistribution.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/plan/transposition.hpp"

namespace torii {
namespace {

/// The counts of both sides of an alltoall with unequal blocks.
struct Counts {
  std::vector<std::size_t> send;
  std::vector<std::size_t> places;  ///< offsets of the blocks to send; received blocks are contiguous
  std::vector<std::size_t> take;
};

/// Equal blocks up to this size use the catalogue's alltoall. For longer blocks the catalogue has only pairwise
/// exchanges, which also serve blocks of unequal lengths.
constexpr auto kShortBlockBytes = tuned<std::size_t>("redistribution.short_block_bytes");

CallDescription alltoall(const std::byte* send, std::byte* take, std::uint32_t tag) {
  CallDescription call = internal_call(Collective::alltoall, send, take);
  call.spec.tag = tag;
  return call;
}

Status exchange_blocks(Team& team, const std::byte* send, std::byte* take, const Counts& counts, std::uint32_t tag) {
  CallDescription call = alltoall(send, take, tag);
  call.set_blocks({.input_counts = counts.send.data(),
                   .input_displacements = counts.places.data(),
                   .result_counts = counts.take.data()});
  return team.operations().run(call);
}

Status exchange_even_blocks(Team& team, const std::byte* send, std::byte* take, std::size_t bytes, std::uint32_t tag) {
  CallDescription call = alltoall(send, take, tag);
  call.spec.count = bytes;
  return team.operations().run(call);
}

void check_buffers(const Team& team, const Transposition& array, const std::byte* input, const std::byte* result) {
  const std::string rank = "rank " + std::to_string(team.rank());
  if (array.input_bytes() != 0 && input == nullptr) {
    throw Error(Status::invalid_argument,
                "input is NULL, but " + rank + " has " + std::to_string(array.input_bytes()) + " bytes of the array");
  }
  if (array.result_bytes() != 0 && result == nullptr) {
    throw Error(Status::invalid_argument,
                "result is NULL, but " + rank + " gets " + std::to_string(array.result_bytes()) + " bytes of it");
  }
}

/// For arrays whose dimension 0 does not move: no rank needs data of another.
void transpose_alone(Team& team, Scratch& scratch, const Transposition& array, const std::byte* input,
                     std::byte* result) {
  if (array.input_bytes() == 0) return;
  std::byte* packed = input == result ? scratch.reserve(team, array.input_bytes(), kScratchPurpose) : result;
  array.pack(input, team.rank(), packed);
  if (packed != result) std::memcpy(result, packed, array.input_bytes());
}

}  // namespace

Status transpose(Team& team, Scratch& scratch, const std::byte* input, std::byte* result,
                 std::span<const std::size_t> extents, std::span<const int> axes, std::size_t element_bytes) {
  const Transposition array(extents, axes, element_bytes, team.ranks(), team.rank());
  check_buffers(team, array, input, result);
  if (array.is_local()) {
    transpose_alone(team, scratch, array, input, result);
    return Status::ok;
  }
  // Rounded up to whole cache lines, so that this rank and a peer never write into the same line.
  const std::size_t packed_bytes = (array.input_bytes() + 63) / 64 * 64;
  std::byte* packed = scratch.reserve(team, packed_bytes + array.result_bytes(), kScratchPurpose);
  std::byte* came = packed + packed_bytes;
  // Short blocks use an alltoall, which may have an algorithm for short blocks. With long blocks, the own block is not
  // copied.
  const bool is_short = array.is_even() && array.send_bytes(0) <= kShortBlockBytes;
  Counts counts;
  const std::byte* own = nullptr;
  std::byte* next = packed;
  for (int rank = 0; rank < team.ranks(); ++rank) {
    array.pack(input, rank, next);
    const bool stays = rank == team.rank() && !is_short;
    if (stays) own = next;
    next += array.send_bytes(rank);
    counts.send.push_back(stays ? 0 : array.send_bytes(rank));
    counts.take.push_back(stays ? 0 : array.take_bytes(rank));
    counts.places.push_back(static_cast<std::size_t>(next - packed) - array.send_bytes(rank));
  }
  const Status status = is_short ? exchange_even_blocks(team, packed, came, counts.send.front(), array.digest())
                                 : exchange_blocks(team, packed, came, counts, array.digest());
  if (status != Status::ok) {
    scratch.abandon();
    return status;
  }
  for (int rank = 0; rank < team.ranks(); ++rank) {
    const bool stayed = own != nullptr && rank == team.rank();
    array.unpack(stayed ? own : came, rank, result);
    came += counts.take[static_cast<std::size_t>(rank)];
  }
  return Status::ok;
}

}  // namespace torii
