// SPDX-License-Identifier: Apache-2.0
// A broadcast on a tree of links, by the model of the tree: scheduled or chain.
#pragma once

namespace torii::tools {

struct SimOptions;
class RowWriter;

/// Adds the row of `broadcast --topology tree:FILE`. The time of scheduled is that of its schedule, searched within
/// --budget seconds (without --budget within the steps of a team's search). Its row adds proven, gap, nodes, search_s
/// and the schedule in order. The time of chain is the model's, with the best of a few segments. `auto` is the better
/// of the two. The root is --root, or the file's if that is 0. Returns the program's exit code. Throws
/// Error{invalid_argument} for other algorithms and for errors in the file.
int run_tree_broadcast(const SimOptions& options, RowWriter& rows);

}  // namespace torii::tools
