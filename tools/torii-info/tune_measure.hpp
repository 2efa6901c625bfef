// SPDX-License-Identifier: Apache-2.0
// `torii-info tune --check` and `torii-info tune -o FILE`.
#pragma once

#include "tools/torii-info/report.hpp"
#include "tools/torii-info/tune_request.hpp"

namespace torii::tools {

/// Measures on this machine. Exit codes of the report: 1 if a check failed; 4 if cells are missing because time was
/// over; 128 + signal after Ctrl-C, when nothing is written. Throws Error for what is refused, before anything is
/// measured, and Error{timeout} if not one cell was measured.
Report measure_tune(const TuneRequest& request);

}  // namespace torii::tools
