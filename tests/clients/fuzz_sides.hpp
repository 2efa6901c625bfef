// SPDX-License-Identifier: Apache-2.0
// What goes in and what comes out of a random collective call.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "tests/clients/fuzz_case.hpp"

namespace torii::clients {

bool combines(Collective collective);
/// Whether the ranks' blocks may differ in length.
bool has_counts(Collective collective);

/// Both sides of one call on one rank: what goes in, what comes out, and how many elements of each type.
struct Sides {
  Sides(Layout in, Layout out) : in_layout(std::move(in)), out_layout(std::move(out)) {}
  Layout in_layout, out_layout;
  std::size_t in_count = 0, out_count = 0;  ///< elements per block, or of all where there are no blocks
  std::vector<int> in_counts, in_places;    ///< of the v forms, in elements
  std::vector<int> out_counts, out_places;
  std::vector<MPI_Datatype> in_types, out_types;  ///< of alltoallw, whose places are in bytes
  std::size_t in_elements = 0, out_elements = 0;  ///< of the whole buffers
};

Sides sides_of(const Case& call, int rank, int ranks);

}  // namespace torii::clients
