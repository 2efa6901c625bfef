// SPDX-License-Identifier: Apache-2.0
// hwloc builds the node; its caches and packages become the relays of a tree of links.
#include "tools/torii-sim/synthetic_node.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <memory>
#include <vector>

#include "collectives/building/levels_model.hpp"
#include "runtime/base/status.hpp"

namespace torii::tools {
namespace {

struct DestroyTree {
  void operator()(hwloc_topology* tree) const noexcept { hwloc_topology_destroy(tree); }
};
using HwlocTree = std::unique_ptr<hwloc_topology, DestroyTree>;

/// hwloc wants the number of CPUs of a core too, which makes no difference here.
HwlocTree load(const std::string& description) {
  const std::string whole = description + (description.find("pu:") == std::string::npos ? " pu:1" : "");
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Error(Status::no_resource, "hwloc cannot be started");
  HwlocTree tree(raw);
  if (hwloc_topology_set_synthetic(raw, whole.c_str()) != 0 || hwloc_topology_load(raw) != 0) {
    throw Error(Status::invalid_argument,
                fmt::format("--topology hwloc:{}: hwloc cannot read this; write levels from the outermost on, as in "
                            "hwloc:pack:2 l3:12 core:8",
                            description));
  }
  return tree;
}

/// The object of this type around `core`, by number; -1 if there is none.
int around(hwloc_topology_t tree, hwloc_obj_type_t type, hwloc_obj_t core) {
  const hwloc_obj_t found = hwloc_get_ancestor_obj_by_type(tree, type, core);
  return found == nullptr ? -1 : static_cast<int>(found->logical_index);
}

/// Half of what a line takes between two cores, since a way up and a way down cross each link.
std::string link_line(const std::string& from, const std::string& to, double GBps, double line_ns) {
  const auto bytes = static_cast<long long>(GBps * 1e9);
  const auto ns = static_cast<long long>(line_ns / 2);
  return fmt::format("link {0} {1} {2}B/s {2}B/s {3}ns {3}ns full\n", from, to, bytes, ns);
}

class TreeText {
 public:
  /// The relay of an object, which hangs from `above` by such a link. Declared once.
  std::string relay(const char* kind, int number, const std::string& above, double GBps, double line_ns) {
    const std::string name = fmt::format("{}{}", kind, number);
    if (nodes_.find("node " + name + " ") == std::string::npos) {
      nodes_ += "node " + name + " relay\n";
      links_ += link_line(name, above, GBps, line_ns);
    }
    return name;
  }
  void core(int number, const std::string& above, double GBps, double line_ns) {
    const std::string name = fmt::format("core{}", number);
    nodes_ += "node " + name + " comm\n";
    links_ += link_line(name, above, GBps, line_ns);
  }
  std::string text() const { return "node machine relay\n" + nodes_ + links_; }

 private:
  std::string nodes_;
  std::string links_;
};

}  // namespace

SyntheticNode read_synthetic_node(const std::string& text) {
  const HwlocTree tree = load(text.substr(kSyntheticNode.size()));
  const LevelCosts costs;
  TreeText links;
  std::vector<int> groups;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(tree.get(), HWLOC_OBJ_CORE, core)) != nullptr;) {
    const int package = around(tree.get(), HWLOC_OBJ_PACKAGE, core);
    const int cache = around(tree.get(), HWLOC_OBJ_L3CACHE, core);
    std::string above = "machine";
    if (package >= 0) {
      above = links.relay("package", package, above, costs.package_GBps, costs.package_line_ns - costs.far_line_ns);
    }
    if (cache >= 0) above = links.relay("cache", cache, above, costs.far_GBps, costs.far_line_ns - costs.near_line_ns);
    links.core(static_cast<int>(groups.size()), above, costs.near_GBps, costs.near_line_ns);
    groups.push_back(cache);
  }
  if (groups.empty()) {
    throw Error(Status::invalid_argument, fmt::format("--topology {} has no core; end it with core:8, say", text));
  }
  return {Topology::node_of(groups), Topology::of_tree(TreeTopology::parse(links.text(), text), text)};
}

}  // namespace torii::tools
