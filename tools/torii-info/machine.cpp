// SPDX-License-Identifier: Apache-2.0
// Draws hwloc's tree of the machine as indented text; equal parts are drawn once.
#include "tools/torii-info/machine.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <vector>

#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"

namespace torii::tools {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;
struct FreeTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Tree = std::unique_ptr<hwloc_topology, FreeTopology>;

Bitmap make_bitmap() { return Bitmap(hwloc_bitmap_alloc()); }

std::string list_text(hwloc_const_bitmap_t bitmap) {
  char text[4096];
  hwloc_bitmap_list_snprintf(text, sizeof(text), bitmap);
  return text;
}

std::string label(hwloc_obj_t object) {
  if (object->type == HWLOC_OBJ_PU) return "CPU";
  char text[64];
  hwloc_obj_type_snprintf(text, sizeof(text), object, 0);
  if (hwloc_obj_type_is_cache(object->type) != 0) {
    return std::string(text) + " " + bytes_text(object->attr->cache.size);
  }
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  const char* const model = hwloc_obj_get_info_by_name(object, "CPUModel");
  std::string label = model == nullptr ? std::string(text) : fmt::format("{} ({})", text, model);
  if (object->memory_arity == 1) label += " with its own memory";
  if (object->memory_arity > 1) label += fmt::format(" with {} memories", object->memory_arity);
  return label;
}

/// Objects of equal shape are equal down to the last CPU.
std::string shape(hwloc_obj_t object) {
  std::string text = label(object) + "(";
  for (unsigned i = 0; i < object->arity; ++i) text += shape(object->children[i]) + ",";
  return text + ")";
}

/// Objects of one shape that one line draws: `each` of them are below every object of the line above.
struct Line {
  std::vector<hwloc_obj_t> objects;
  unsigned each = 1;
};

std::vector<Line> lines_below(const Line& line) {
  std::vector<Line> lines;
  const hwloc_obj_t first = line.objects.front();
  for (unsigned begin = 0; begin < first->arity;) {
    unsigned end = begin + 1;
    while (end < first->arity && shape(first->children[end]) == shape(first->children[begin])) ++end;
    Line below;
    below.each = end - begin;
    for (const hwloc_obj_t object : line.objects) {
      below.objects.insert(below.objects.end(), object->children + begin, object->children + end);
    }
    lines.push_back(std::move(below));
    begin = end;
  }
  return lines;
}

std::string count_text(const Line& line) {
  const std::string text = label(line.objects.front());
  return line.each == 1 ? text : fmt::format("{} x {}", line.each, text);
}

void draw(Line line, int depth, hwloc_const_bitmap_t allowed, std::string& picture) {
  std::string text = count_text(line);
  std::vector<Line> below = lines_below(line);
  // A chain without branches is one line, and so are the CPUs of a core.
  while (below.size() == 1 && (below[0].each == 1 || below[0].objects.front()->type == HWLOC_OBJ_PU)) {
    line = std::move(below[0]);
    text += ", " + count_text(line);
    below = lines_below(line);
  }
  picture += std::string(2 * static_cast<std::size_t>(depth), ' ') + text;
  if (below.empty()) {
    const Bitmap cpus = make_bitmap();
    for (const hwloc_obj_t object : line.objects) hwloc_bitmap_or(cpus.get(), cpus.get(), object->cpuset);
    picture += ": CPUs " + list_text(cpus.get());
    if (hwloc_bitmap_isincluded(cpus.get(), allowed) == 0) {
      hwloc_bitmap_and(cpus.get(), cpus.get(), allowed);
      const std::string list = list_text(cpus.get());
      picture += ", allowed " + (list.empty() ? "none" : list);
    }
  }
  picture += "\n";
  for (Line& next : below) draw(std::move(next), depth + 1, allowed, picture);
}

Tree load_tree() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Error(Status::no_resource, "hwloc cannot be started");
  Tree tree(raw);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0) throw Error(Status::no_resource, "hwloc cannot read this machine");
  return tree;
}

/// Objects of a type that hold allowed CPUs, at least 1.
int count_around(hwloc_topology_t tree, hwloc_obj_type_t type, hwloc_const_bitmap_t allowed) {
  int count = 0;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(tree, type, object)) != nullptr;) {
    if (hwloc_bitmap_intersects(object->cpuset, allowed) != 0) ++count;
  }
  return std::max(count, 1);
}

}  // namespace

Machine read_machine() {
  const Tree tree = load_tree();
  const Bitmap allowed = make_bitmap();
  // If the affinity cannot be read, only the cpuset counts.
  if (hwloc_get_cpubind(tree.get(), allowed.get(), HWLOC_CPUBIND_PROCESS) != 0) hwloc_bitmap_fill(allowed.get());
  hwloc_bitmap_and(allowed.get(), allowed.get(), hwloc_topology_get_allowed_cpuset(tree.get()));
  Machine machine;
  machine.cpus = hwloc_get_nbobjs_by_type(tree.get(), HWLOC_OBJ_PU);
  machine.cpus_allowed = hwloc_bitmap_weight(allowed.get());
  machine.allowed_list = list_text(allowed.get());
  machine.l3_groups = count_around(tree.get(), HWLOC_OBJ_L3CACHE, allowed.get());
  machine.numa_nodes = count_around(tree.get(), HWLOC_OBJ_NUMANODE, allowed.get());
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(tree.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    machine.memories.push_back({static_cast<int>(node->os_index), list_text(node->cpuset),
                                static_cast<std::size_t>(node->attr->numanode.local_memory),
                                hwloc_bitmap_isincluded(allowed.get(), node->cpuset) != 0});
  }
  draw({{hwloc_get_root_obj(tree.get())}, 1}, 0, allowed.get(), machine.picture);
  return machine;
}

}  // namespace torii::tools
