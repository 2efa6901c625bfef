// SPDX-License-Identifier: Apache-2.0
// Rank maps: which rank stands where on a torus, from a file, a list or a team's options.
#pragma once

#include <string>
#include <string_view>

#include "runtime/topology/topology.hpp"

namespace torii {

/// The text of a map: of the setting RANK_MAP the file's contents, or the setting itself where it is a list
/// ("list:..."). Empty for an empty setting. Throws Error{invalid_argument} naming a file that cannot be read or has
/// more than 64 MiB.
std::string read_rank_map(const std::string& setting);

/// The same torus or mesh with its ranks where the text says; an empty text changes nothing. The text is
/// - lines "rank x y z", as many coordinates as the topology has dimensions, in any order; `#` starts a comment; or
/// - "list:5,0,3,...": for rank 0, 1, ... the rank whose place it takes.
/// `where` names the text in messages. Throws Error{invalid_argument} with place in the text, value and what would be
/// right: no torus, no number, a rank or coordinate that is not there, a rank named twice, a place taken by as many
/// ranks as a node has, a rank that is missing.
Topology with_rank_map(const Topology& topology, std::string_view text, const std::string& where);

}  // namespace torii
