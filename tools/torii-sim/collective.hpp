// SPDX-License-Identifier: Apache-2.0
// One collective of the catalogue, simulated.
#pragma once

#include "tools/torii-sim/options.hpp"
#include "tools/torii-sim/rows.hpp"

namespace torii::tools {

/// A simulated call.
struct Simulated {
  SimRow row;
  double folding_us = 0;  ///< with --reduce: the folding time of the rank that folds most
  int code = 0;           ///< the program's, as far as this call determines it
};

/// Simulates the one call that `options` describe, and draws the requested pictures. Throws Error{invalid_argument} for
/// options that do not fit the collective, {unsupported} if the algorithm cannot serve it.
Simulated simulate_call(const SimOptions& options);

}  // namespace torii::tools
