// SPDX-License-Identifier: Apache-2.0
// A broadcast on a tree of links, by the model of the tree: scheduled or chain.
#pragma once

namespace torii::tools {

struct SimOptions;
class RowWriter;

/// Adds the row of `broadcast --topology tree:FILE`. The time of scheduled is that of its schedule, searched within
/// --budget seconds (without it within the steps that a team's plan takes), and the row adds proven, gap, nodes,
/// search_s and the schedule in order; that of chain is the model's, with the best of a few segments. `auto` is the
/// better of the two. The root is --root, or where that is 0 the file's. Returns the program's exit code. Throws
/// Error{invalid_argument} for other algorithms and for what is wrong with the file.
int run_tree_broadcast(const SimOptions& options, RowWriter& rows);

}  // namespace torii::tools
