// SPDX-License-Identifier: Apache-2.0
// A rank's copies follow each other; those from other groups share what leads into the group.
#include "collectives/building/levels_model.hpp"

#include <algorithm>

namespace torii {
namespace {

/// The bytes that one rank copies, and the number of signals for which it waits one after the other.
struct Copies {
  double near = 0;
  double far = 0;
  double near_lines = 0;
  double far_lines = 0;
};

double time_s(const Copies& copies, int per_group, const LevelCosts& costs) {
  const double far_rate = std::min(costs.near_GBps, costs.far_GBps / per_group);
  const double bytes_ns = copies.near / costs.near_GBps + copies.far / far_rate;
  return 1e-9 * (bytes_ns + copies.near_lines * costs.near_line_ns + copies.far_lines * costs.far_line_ns);
}

/// How often the vector crosses: operands towards sums, and results towards ranks.
double passes_of(Collective collective) { return collective == Collective::allreduce ? 2 : 1; }

}  // namespace

double flat_time_s(const LevelCall& call, const LevelCosts& costs) {
  const double mates = call.per_group - 1;
  const double others = (call.groups - 1.0) * call.per_group;
  if (call.collective == Collective::broadcast) {
    // All ranks of the other groups copy the whole vector from the root, whose group gives it that often.
    return time_s({.far = call.bytes * (call.groups - 1), .far_lines = 1}, call.per_group, costs);
  }
  const double block = call.bytes / (call.groups * call.per_group);
  const double passes = passes_of(call.collective);
  return time_s({.near = passes * mates * block,
                 .far = passes * others * block,
                 .near_lines = passes * mates,
                 .far_lines = passes * others},
                call.per_group, costs);
}

double levels_time_s(const LevelCall& call, const LevelCosts& costs) {
  const double mates = call.per_group - 1;
  const double groups = call.groups - 1;
  if (call.collective == Collective::broadcast) {
    // The root's group gives the vector once; then blocks cross as in an all_gather.
    const double slice = call.bytes / call.per_group;
    return time_s({.near = mates * slice,
                   .far = slice + groups * slice / call.groups,
                   .near_lines = mates,
                   .far_lines = groups + 1},
                  call.per_group, costs);
  }
  const double block = call.bytes / (call.groups * call.per_group);
  const double passes = passes_of(call.collective);
  return time_s({.near = passes * mates * block * call.groups,
                 .far = passes * groups * block,
                 .near_lines = passes * mates,
                 .far_lines = passes * groups},
                call.per_group, costs);
}

}  // namespace torii
