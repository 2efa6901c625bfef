// SPDX-License-Identifier: Apache-2.0
// Transposes and permutations of the C interface.
#include "api/c/c_objects.hpp"
#include "runtime/base/cancellation.hpp"
#include "runtime/plan/balanced_split.hpp"
#include "runtime/plan/transposition.hpp"

using torii::Status;
using torii::c::answered;
using torii::c::invalid;
using torii::c::refused_on;
using torii::c::to_c;

namespace {

// The functions hold the team from their first line on, because they pack into its memory before their first call. A
// forked child and a second caller must not do that.

template <typename Body>
torii_status status_of(torii_team* team, Body&& body) noexcept {
  const torii::CancellationHeld held;
  Status status = Status::ok;
  const torii_status thrown = answered([&] { status = body(); });
  return thrown == TORII_OK ? to_c(status) : refused_on(team, thrown);
}

}  // namespace

extern "C" {

torii_status torii_split(size_t items, int ranks, int rank, size_t* first, size_t* count) {
  if (first == nullptr || count == nullptr) return invalid("the place for first or count is NULL");
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return invalid("rank is " + std::to_string(rank) + " of " + std::to_string(ranks) +
                   "; ranks must be at least 1 and rank from 0 to ranks - 1");
  }
  const torii::ItemRange range = torii::balanced_split(items, ranks, rank);
  *first = range.first;
  *count = range.count;
  return TORII_OK;
}

torii_status torii_transpose_array(torii_team* team, const void* input, void* result, const size_t* extents,
                                   const int* axes, int dimensions, size_t element_bytes) {
  if (team == nullptr) return invalid("team, extents or axes is NULL");
  const torii::Hold hold = team->team->operations().waits().hold();
  if (hold.refusal() != Status::ok) return to_c(hold.refusal());
  if (extents == nullptr || axes == nullptr) return refused_on(team, invalid("team, extents or axes is NULL"));
  if (dimensions < 1 || dimensions > torii::Transposition::kDimensionsMax) {
    return refused_on(team, invalid("dimensions is " + std::to_string(dimensions) + "; it must be from 1 to " +
                                    std::to_string(torii::Transposition::kDimensionsMax)));
  }
  const auto count = static_cast<std::size_t>(dimensions);
  return status_of(team, [&] {
    return torii::transpose(*team->team, team->scratch, static_cast<const std::byte*>(input),
                            static_cast<std::byte*>(result), {extents, count}, {axes, count}, element_bytes);
  });
}

torii_status torii_transpose(torii_team* team, const void* input, void* result, size_t rows, size_t columns,
                             size_t element_bytes) {
  const size_t extents[] = {rows, columns};
  const int axes[] = {1, 0};
  return torii_transpose_array(team, input, result, extents, axes, 2, element_bytes);
}

torii_status torii_permute(torii_team* team, const void* input, size_t count, const uint64_t* destinations,
                           void* result, size_t result_count, size_t item_bytes) {
  if (team == nullptr) return invalid("team is NULL");
  const torii::Hold hold = team->team->operations().waits().hold();
  if (hold.refusal() != Status::ok) return to_c(hold.refusal());
  return status_of(team, [&] {
    return torii::permute(*team->team, team->scratch,
                          {static_cast<const std::byte*>(input), count, destinations, static_cast<std::byte*>(result),
                           result_count, item_bytes});
  });
}

}  // extern "C"
