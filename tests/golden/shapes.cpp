// SPDX-License-Identifier: Apache-2.0
// Small topologies of every kind. Each has a property that some algorithm depends on.
#include "tests/golden/shapes.hpp"

#include "tests/collectives/algorithms/cluster_trees.hpp"

namespace torii::golden {
namespace {

NamedShape tree_shape(const std::string& name, TreeTopology tree, bool all_variants = false) {
  return {"tree:" + name, Topology::of_tree(std::move(tree), name), all_variants};
}

/// A torus whose ranks are numbered backwards.
NamedShape mapped_shape(const std::string& text, int ranks) {
  std::vector<int> positions;
  for (int rank = 0; rank < ranks; ++rank) positions.push_back(ranks - 1 - rank);
  return {text + ",reversed", Topology::parse(text, ranks).with_positions(std::move(positions))};
}

}  // namespace

NamedShape shape_of(const std::string& text, int ranks, bool all_variants) {
  if (text == "node") return {"node:" + std::to_string(ranks), Topology::node(ranks), all_variants};
  return {text, Topology::parse(text, ranks), all_variants};
}

NamedShape sites_shape(const std::vector<int>& sizes, bool all_variants) {
  std::string name = "sites";
  for (const int size : sizes) name += "_" + std::to_string(size);
  return tree_shape(name, tests::sites_tree(sizes), all_variants);
}

std::vector<NamedShape> plan_shapes() {
  return {shape_of("node", 1),
          shape_of("node", 2, true),
          shape_of("node", 3),
          shape_of("node", 4),
          shape_of("node", 5, true),
          shape_of("node", 8, true),
          shape_of("node", 16, true),
          shape_of("node:3*2", 6, true),
          shape_of("torus:4", 4),
          shape_of("torus:5", 5),
          shape_of("torus:2x2", 4),
          shape_of("torus:3x3", 9, true),
          shape_of("torus:4x4", 16, true),
          shape_of("torus:4x4,ties", 16),
          shape_of("torus:2x3x4", 24, true),
          shape_of("torus:3x3x3", 27),
          shape_of("torus:4x4x4", 64),
          shape_of("torus:4x4x2m", 32),
          shape_of("mesh:3x4", 12, true),
          shape_of("torus:2*4", 8),
          shape_of("torus:3x3*2", 18, true),
          mapped_shape("torus:3x4", 12),
          tree_shape("star_5", tests::star_of(5)),
          tree_shape("cluster_8", tests::tree_of({2, 2, 2, false, true})),
          tree_shape("mixed_12", tests::tree_of({2, 3, 2, true, true}), true),
          sites_shape({3, 2}, true),
          sites_shape({2, 3, 2}, true)};
}

std::vector<NamedShape> selection_shapes() {
  return {shape_of("node", 1),
          shape_of("node", 2),
          shape_of("node", 3),
          shape_of("node", 4),
          shape_of("node", 8),
          shape_of("node", 16, true),
          shape_of("node", 64),
          shape_of("torus:4", 4),
          shape_of("torus:3x3", 9),
          shape_of("torus:4x4x4", 64),
          shape_of("mesh:3x4", 12),
          shape_of("torus:3x3*2", 18),
          tree_shape("star_5", tests::star_of(5)),
          sites_shape({3, 2}),
          sites_shape({2, 3, 2})};
}

}  // namespace torii::golden
