// SPDX-License-Identifier: Apache-2.0
// Rank maps: the places of the ranks on a torus, from a file, a list or a team's options.
#pragma once

#include <string>
#include <string_view>

#include "runtime/topology/topology.hpp"

namespace torii {

/// The text of the map that the setting RANK_MAP names: the contents of a file, or the setting itself if it is a list
/// ("list:..."). Empty for an empty setting. Throws Error{invalid_argument} for a file that cannot be read or exceeds
/// 64 MiB.
std::string read_rank_map(const std::string& setting);

/// The torus or mesh with its ranks at the places of the map; an empty text changes nothing. The text is
/// - lines "rank x y z" in any order, with one coordinate per dimension of the topology; `#` starts a comment; or
/// - "list:5,0,3,...": for rank 0, 1, ... the rank whose place it takes.
/// `where` names the text in messages. Throws Error{invalid_argument} if the topology is no torus or mesh, or a value
/// is not a number or out of range. The same if a rank occurs twice or never, or a node has too many ranks. The text
/// names the line or list entry, the value and what would be right.
Topology with_rank_map(const Topology& topology, std::string_view text, const std::string& where);

}  // namespace torii
