// SPDX-License-Identifier: Apache-2.0
// Prints tune tables, and the row that serves a call.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "collectives/selection/selection.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// The table that TORII_TUNE_FILE names, which `overrides` ("NAME=value" lines) may set; otherwise the built-in one.
/// Throws Error{invalid_argument} for a file that cannot be read or parsed.
Report print_table(const std::string& overrides);

/// A row in the form of a tune file.
Json row_json(const TuneRow& row);

/// One row as a sentence: "allreduce, 1 to 256 ranks, up to 2K -> node, segment 2K, slots 4, window 1, one_shot".
std::string row_text(const TuneRow& row);

}  // namespace torii::tools
