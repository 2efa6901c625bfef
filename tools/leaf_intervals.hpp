// SPDX-License-Identifier: Apache-2.0
// Intervals of leaves on the command lines of the tools.
#pragma once

#include <optional>
#include <string>

#include "runtime/plan/leaves.hpp"

namespace torii::tools {

/// Reads `leaves`: a number, dealt to the ranks as torii_split deals items, or a list such as "3,0,4" with the number
/// of each rank's leaves. Without `ranks` there are as many as the list has, or 4. Throws Error{invalid_argument}.
LeafIntervals read_intervals(const std::string& leaves, const std::optional<int>& ranks);

}  // namespace torii::tools
