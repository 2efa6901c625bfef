// SPDX-License-Identifier: Apache-2.0
// The cells of selection.txt: free choices of the built-in table, and forced ones on a few shapes.
#include "collectives/selection/selection.hpp"

#include <cstdlib>

#include "runtime/base/status.hpp"
#include "tests/golden/cells.hpp"
#include "tests/golden/plan_digest.hpp"
#include "tests/golden/shapes.hpp"

namespace torii::golden {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kShortBytes = 8, kLongBytes = kKiB * kKiB;
constexpr std::size_t kBytes[] = {kShortBytes, 256, 8 * kKiB, 64 * kKiB, 512 * kKiB, kLongBytes, 32 * kLongBytes};

/// The last two arguments of select().
struct Fabric {
  bool several_nodes;
  std::size_t put_bytes;
};
constexpr Fabric kFabrics[] = {{false, 0}, {true, 0}, {true, 32 * kKiB}};

/// The fields after the window are named only if they are not the defaults. The binding names all fields, so a new one
/// does not compile until it is written here.
std::string text_of(const Tuning& tuning) {
  const Tuning usual;
  const auto& [segment_bytes, slots, window, one_shot, radix, common_root, lanes] = tuning;
  std::string text = " segment " + std::to_string(segment_bytes) + " slots " + std::to_string(slots) + " window " +
                     std::to_string(window);
  if (one_shot) text += " one_shot";
  if (radix != usual.radix) text += " radix " + std::to_string(radix);
  if (common_root) text += " common_root";
  if (lanes == usual.lanes) return text;
  std::size_t sites = kSitesMax;
  while (lanes[sites - 1] == 0) --sites;
  text += " lanes";
  for (std::size_t site = 0; site < sites; ++site) text += " " + std::to_string(lanes[site]);
  return text;
}

std::string_view kind_name(Topology::Kind kind) {
  switch (kind) {
    case Topology::Kind::node:
      return "node";
    case Topology::Kind::torus:
      return "torus";
    case Topology::Kind::tree:
      return "tree";
  }
  std::abort();
}

/// The number of the row is left out, because a new row before it would change the number and nothing else.
std::string value_of(const Forced& forced, const PlanRequest& request, std::size_t bytes, const Fabric& fabric) {
  try {
    const Selected selected =
        select(TuneTable::built_in(), forced, request, bytes, fabric.several_nodes, fabric.put_bytes);
    std::string text = std::string(selected.algorithm->name) + text_of(selected.request.tuning);
    text += selected.row ? ", by a row" : ", by no row";
    if (!selected.explanation.empty()) text += ", model: " + selected.explanation;
    return text;
  } catch (const Error& error) {
    return "refused: " + std::string(error.what());
  }
}

std::string key_of(const NamedShape& shape, const PlanRequest& request, std::size_t bytes, const Fabric& fabric) {
  return std::string(name(request.collective)) + " " + shape.name + " " + std::string(name(request.determinism)) + " " +
         std::to_string(bytes) + " bytes" + (fabric.several_nodes ? ", several nodes" : "") +
         (fabric.put_bytes != 0 ? ", put " + std::to_string(fabric.put_bytes) : "");
}

PlanRequest request_on(const NamedShape& shape, Collective collective, Determinism determinism = Determinism::run) {
  PlanRequest request;
  request.collective = collective;
  request.topology = shape.topology;
  request.determinism = determinism;
  return request;
}

/// On a torus select() ignores both values, on a tree `put_bytes`.
bool is_looked_at(const Fabric& fabric, Topology::Kind kind) {
  if (kind == Topology::Kind::torus) return !fabric.several_nodes;
  return kind == Topology::Kind::node || fabric.put_bytes == 0;
}

void append_free(const NamedShape& shape, Collective collective, Lines& lines) {
  for (const Fabric& fabric : kFabrics) {
    if (!is_looked_at(fabric, shape.topology.kind())) continue;
    for (const std::size_t bytes : kBytes) {
      const PlanRequest request = request_on(shape, collective);
      lines.push_back({key_of(shape, request, bytes, fabric), value_of({}, request, bytes, fabric)});
    }
  }
  if (!combines(collective)) return;
  for (const std::size_t bytes : {kShortBytes, kLongBytes}) {
    const PlanRequest request = request_on(shape, collective, Determinism::canonical);
    lines.push_back({key_of(shape, request, bytes, {}), value_of({}, request, bytes, {})});
  }
}

/// Every row for every collective, with the text of the refusal if the row cannot serve it.
void append_forced_rows(Lines& lines) {
  constexpr std::size_t kForcedBytes = 8 * kKiB;
  for (const NamedShape& shape : {shape_of("node", 6), sites_shape({3, 2})}) {
    for (const Collective collective : kCollectives) {
      for (const Algorithm& algorithm : catalogue()) {
        // On trees only the rows that use the links are forced.
        const bool looks_at_links =
            algorithm.name == "scheduled" || algorithm.name == "chain" || algorithm.name == "multilane";
        if (shape.topology.kind() == Topology::Kind::tree && !looks_at_links) continue;
        const PlanRequest request = request_on(shape, collective);
        Forced forced;
        forced.algorithm = algorithm.name;
        lines.push_back({"forced " + forced.algorithm + " " + key_of(shape, request, kForcedBytes, {}),
                         value_of(forced, request, kForcedBytes, {})});
      }
    }
  }
}

void append_forced(const std::string& text, const Forced& forced, const NamedShape& shape, const PlanRequest& request,
                   Lines& lines) {
  for (const std::size_t bytes : {kShortBytes, kLongBytes}) {
    lines.push_back({"forced " + text + " " + key_of(shape, request, bytes, {}), value_of(forced, request, bytes, {})});
  }
}

/// Tunings, names that no row has, and algorithms that cannot be canonical or cannot use the topology.
void append_forced_values(Lines& lines) {
  const NamedShape node = shape_of("node", 4);
  const NamedShape torus = shape_of("torus:3x3", 9);
  for (const Collective collective : {Collective::allreduce, Collective::broadcast, Collective::alltoall}) {
    const PlanRequest request = request_on(node, collective);
    append_forced("segment 4096", {"", 4096, 0, 0}, node, request, lines);
    append_forced("slots 5", {"", 0, 5, 0}, node, request, lines);
    append_forced("window 3", {"auto", 0, 0, 3}, node, request, lines);
    append_forced("no_such_name", {"no_such_name", 0, 0, 0}, node, request, lines);
    append_forced("a2and", {"a2and", 0, 0, 0}, torus, request_on(torus, collective), lines);
  }
  const PlanRequest canonical = request_on(torus, Collective::allreduce, Determinism::canonical);
  for (const char* algorithm : {"trinaryx3", "ring", "bucket", "binomial", "node"}) {
    append_forced(algorithm, {algorithm, 0, 0, 0}, torus, canonical, lines);
  }
  append_forced("node with tuning", {"node", 8192, 6, 2}, node, request_on(node, Collective::allreduce), lines);
}

/// All fields of all rows, because the calls of this file do not reach every row.
std::string text_of(const TuneTable& table) {
  Bytes bytes;
  for (const TuneRow& row : table.rows()) {
    const auto& [topology, is_switch, collective, ranks_min, ranks_max, bytes_min, bytes_max, algorithm, tuning] = row;
    bytes.text(topology ? kind_name(*topology) : "any");
    bytes.number(is_switch ? 1 : 0);
    bytes.text(name(collective));
    bytes.number(ranks_min);
    bytes.number(ranks_max);
    if (bytes_min != 0) bytes.number(static_cast<std::int64_t>(bytes_min));
    bytes.number(static_cast<std::int64_t>(bytes_max));
    bytes.text(algorithm);
    bytes.text(text_of(tuning));
  }
  return std::to_string(table.rows().size()) + " rows " + hexadecimal(bytes.digest());
}

}  // namespace

Lines selection_lines() {
  Lines lines = {{"built-in table", text_of(TuneTable::built_in())}};
  const std::vector<NamedShape> shapes = selection_shapes();
  for (const Collective collective : kCollectives) {
    for (const NamedShape& shape : shapes) append_free(shape, collective, lines);
  }
  append_forced_rows(lines);
  append_forced_values(lines);
  return lines;
}

}  // namespace torii::golden
