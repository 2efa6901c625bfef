// SPDX-License-Identifier: Apache-2.0
// `torii-info measure`: latencies and bandwidths between the ranks of a running job.
#pragma once

#include <string>

#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// Runs on all ranks of a job, over the transport of its settings. Rank 0 writes the tree topology file and the tune
/// file (an empty path: none) and returns the report; the report of the others is empty. Throws Error.
Report measure(const std::string& tree_path, const std::string& tune_path);

}  // namespace torii::tools
