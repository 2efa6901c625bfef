// SPDX-License-Identifier: Apache-2.0
// The cells of plans.txt: every catalogue row on every shape.
#include <set>

#include "runtime/base/status.hpp"
#include "tests/golden/cells.hpp"
#include "tests/golden/plan_digest.hpp"
#include "tests/golden/shapes.hpp"

namespace torii::golden {
namespace {

struct NamedTuning {
  std::string name;
  Tuning tuning;
};

const NamedTuning& default_tuning() {
  static const NamedTuning tuning = {"default", Tuning{}};
  return tuning;
}

/// Every field of a tuning differs from its default in one of these two.
const NamedTuning kOtherTunings[] = {
    {"short", {.slots = 3, .window = 2, .one_shot = true, .radix = 3}},
    {"long", {.segment_bytes = 1024, .slots = 32, .window = 1, .radix = 5, .common_root = true, .lanes = {2, 1, 2}}}};

struct Cell {
  PlanRequest request;
  std::string tuning;
};

Cell cell_of(Collective collective, const Topology& topology, const NamedTuning& tuning) {
  Cell cell;
  cell.request.collective = collective;
  cell.request.topology = topology;
  cell.request.tuning = tuning.tuning;
  cell.tuning = tuning.name;
  return cell;
}

/// The default request, then those that differ from it in the root, in determinism and wire, and in tuning.
std::vector<Cell> cells_on(Collective collective, const NamedShape& shape) {
  const Cell first = cell_of(collective, shape.topology, default_tuning());
  std::vector<Cell> cells = {first};
  if (!shape.all_variants) return cells;
  const int ranks = shape.topology.ranks();
  if (has_root(collective)) {
    for (const int root : std::set<int>{ranks / 2, ranks - 1}) {
      cells.push_back(first);
      cells.back().request.root = root;
    }
  }
  for (const auto& [determinism, wide] : {std::pair{Determinism::canonical, false}, std::pair{Determinism::run, true},
                                          std::pair{Determinism::canonical, true}}) {
    // If nothing is combined, determinism and wire mean nothing, and one cell shows that.
    if (!combines(collective) && !(wide && determinism == Determinism::canonical)) continue;
    cells.push_back(first);
    cells.back().request.determinism = determinism;
    cells.back().request.wide_wire = wide;
  }
  for (const NamedTuning& tuning : kOtherTunings) cells.push_back(cell_of(collective, shape.topology, tuning));
  return cells;
}

std::string key_of(const Algorithm& algorithm, const NamedShape& shape, const Cell& cell) {
  const PlanRequest& request = cell.request;
  return std::string(name(request.collective)) + " " + std::string(algorithm.name) + " " + shape.name + " root " +
         std::to_string(request.root) + " " + std::string(name(request.determinism)) +
         (request.wide_wire ? " wide " : " narrow ") + cell.tuning;
}

void append_cell(const Algorithm& algorithm, const NamedShape& shape, const Cell& cell, std::set<std::string>& refusals,
                 Lines& lines) {
  const std::string reason = algorithm.why_not(cell.request);
  if (!reason.empty() && !refusals.insert(reason).second) return;
  const std::string value = reason.empty() ? hexadecimal(digest_of(algorithm, cell.request)) : "refused: " + reason;
  lines.push_back({key_of(algorithm, shape, cell), value});
}

}  // namespace

Lines plan_lines() {
  Lines lines;
  const std::vector<NamedShape> shapes = plan_shapes();
  for (const Collective collective : kCollectives) {
    for (const Algorithm& algorithm : catalogue()) {
      std::set<std::string> refusals;
      for (const NamedShape& shape : shapes) {
        for (const Cell& cell : cells_on(collective, shape)) append_cell(algorithm, shape, cell, refusals, lines);
      }
    }
  }
  return lines;
}

}  // namespace torii::golden
