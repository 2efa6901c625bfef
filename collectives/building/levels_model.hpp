// SPDX-License-Identifier: Apache-2.0
// A cost model of one node whose ranks share caches in groups: what lines and copies cost within a group and between
// groups. The figures are assumed, not measured.
#pragma once

#include <cstddef>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/plan/operation.hpp"

namespace torii {

struct LevelCosts {
  /// The time until a rank sees a line that a rank of its group, of another group or of another package has written.
  double near_line_ns = tuned<double>("levels.near_line");
  double far_line_ns = tuned<double>("levels.far_line");
  double package_line_ns = tuned<double>("levels.package_line");
  /// The rate at which one rank copies from a cache of its group. The others are of all copies together, from other
  /// groups into one group, and from other packages into one package.
  double near_GBps = tuned<double>("levels.near_rate");
  double far_GBps = tuned<double>("levels.far_rate");
  double package_GBps = tuned<double>("levels.package_rate");
};

/// A call on a node of groups.
struct LevelCall {
  Collective collective = Collective::allreduce;
  double bytes = 0;  ///< of the vector; of all blocks together
  int groups = 1;
  int per_group = 1;
};

/// The time of a call whose ranks copy what they need from each other directly, whatever group has it (node).
double flat_time_s(const LevelCall& call, const LevelCosts& costs = {});

/// The time of the same call with the plans of levels.
double levels_time_s(const LevelCall& call, const LevelCosts& costs = {});

}  // namespace torii
