// SPDX-License-Identifier: Apache-2.0
// The text form of topologies.
#include <algorithm>
#include <vector>

#include "runtime/base/excerpt.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "runtime/topology/topology.hpp"

namespace torii {
namespace {

constexpr std::string_view kTies = ",ties";  ///< the suffix of a torus whose senders choose the direction of ties

std::string quoted(std::string_view text) { return "'" + excerpt(text) + "'"; }

/// One extent of the text: a whole number; in a torus, `m` follows if the dimension does not wrap.
struct Extent {
  int extent;
  bool wraps;
};

Extent parse_extent(std::string_view token, bool torus, std::string_view text) {
  const std::string where = "topology " + quoted(text) + ": ";
  if (token.empty()) invalid(where + "an extent is missing; write one number per dimension, as in torus:4x4x4");
  std::string_view digits = token;
  const bool is_mesh = token.back() == 'm';
  if (is_mesh && !torus) invalid(where + quoted(token) + ": no dimension of a mesh wraps, so write it without the m");
  if (is_mesh) digits.remove_suffix(1);
  const auto extent = parse_number<int>(digits);
  if (!extent) {
    invalid(where + quoted(token) + " is no extent; write a whole number from 1 to " +
            std::to_string(Topology::kRanksMax) + (torus ? ", followed by m where the dimension does not wrap" : ""));
  }
  if (*extent < 1 || *extent > Topology::kRanksMax) {
    invalid(where + "the extent " + std::to_string(*extent) + " is not in 1.." + std::to_string(Topology::kRanksMax));
  }
  return {*extent, torus && !is_mesh};
}

/// Reads the number of ranks on each node, or in each group, which follows the star.
int parse_per_node(std::string_view token, std::string_view text, const char* what = "on each node",
                   const char* example = "torus:3x3*2") {
  const int result = parse_number<int>(token).value_or(0);
  if (result < 1 || result > Topology::kRanksMax) {
    invalid("topology " + quoted(text) + ": " + quoted(token) + " is no number of ranks " + what +
            "; write a whole number from 1 to " + std::to_string(Topology::kRanksMax) + " behind the star, as in " +
            example);
  }
  return result;
}

void check_ranks(const Topology& topology, std::string_view text, int ranks) {
  if (topology.ranks() == ranks) return;
  invalid("topology " + quoted(text) + " has " + std::to_string(topology.ranks()) + " places, but there are " +
          std::to_string(ranks) + " ranks");
}

/// Reads "8*4": groups, and ranks in each.
Topology parse_groups(std::string_view rest, std::string_view text, int ranks) {
  const std::size_t star = std::min(rest.find('*'), rest.size());
  const int groups = parse_number<int>(rest.substr(0, star)).value_or(0);
  if (groups < 1 || groups > Topology::kRanksMax) {
    invalid("topology " + quoted(text) + ": " + quoted(rest.substr(0, star)) +
            " is no number of groups; write a whole number from 2 on, a star and the ranks of each, as in node:8*4");
  }
  const std::string_view last = rest.substr(std::min(star + 1, rest.size()));
  const int per_group = parse_per_node(last, text, "in each group", "node:8*4");
  if (groups > Topology::kRanksMax / per_group) invalid("topology " + quoted(text) + " has too many ranks");
  const Topology topology = Topology::node(groups * per_group, per_group);
  check_ranks(topology, text, ranks);
  return topology;
}

}  // namespace

int ranks_named(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find(':'), text.size()));
  std::int64_t product = text.empty() ? 0 : 1;
  while (text.starts_with(':') || text.starts_with('x') || text.starts_with('*')) {
    text.remove_prefix(1);
    product *= take_number<int>(text).value_or(0);
    if (product < 1 || product > INT32_MAX) return 0;
    if (text.starts_with('m')) text.remove_prefix(1);
  }
  return static_cast<int>(product);
}

Topology Topology::parse_tree(std::string_view text, const std::string& content, int ranks) {
  const std::string path(text.substr(std::min(text.find(':') + 1, text.size())));
  Topology topology = of_tree(TreeTopology::parse(content, path), path);
  if (topology.ranks() != ranks) {
    invalid("topology " + quoted(text) + " has " + std::to_string(topology.ranks()) + " comm nodes, but there are " +
            std::to_string(ranks) + " ranks");
  }
  return topology;
}

Topology Topology::parse(std::string_view text, int ranks) {
  if (text == "node") return node(ranks);
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (kind == "tree" && colon != std::string_view::npos) {
    return parse_tree(text, TreeTopology::read(std::string(text.substr(colon + 1))), ranks);
  }
  if (kind == "node" && colon != std::string_view::npos) return parse_groups(text.substr(colon + 1), text, ranks);
  if (colon == std::string_view::npos || (kind != "torus" && kind != "mesh")) {
    invalid("topology " + quoted(text) + ": " + quoted(kind) +
            " is none of torus:4x4x4, torus:4x4x2m, mesh:8x8, torus:3x3*2, torus:4x4,ties, tree:FILE, node, node:8*4");
  }
  Coordinates extents = {1, 1, 1};
  std::array<bool, 3> wraps = {false, false, false};
  int dimensions = 0;
  std::string_view rest = text.substr(colon + 1);
  const bool ties = rest.ends_with(kTies);
  if (ties) rest.remove_suffix(kTies.size());
  const std::size_t star = rest.find('*');
  const int per_node = star == std::string_view::npos ? 1 : parse_per_node(rest.substr(star + 1), text);
  rest = rest.substr(0, star);
  for (bool more = true; more;) {
    const std::size_t cross = rest.find('x');
    const Extent parsed = parse_extent(rest.substr(0, cross), kind == "torus", text);
    if (dimensions == 3) invalid("topology " + quoted(text) + ": more than 3 dimensions");
    extents[static_cast<std::size_t>(dimensions)] = parsed.extent;
    wraps[static_cast<std::size_t>(dimensions)] = parsed.wraps;
    ++dimensions;
    more = cross != std::string_view::npos;
    if (more) rest.remove_prefix(cross + 1);
  }
  Topology topology = torus(extents, wraps, dimensions, per_node);
  if (ties) topology = topology.with_ties();
  check_ranks(topology, text, ranks);
  return topology;
}

std::string Topology::text() const {
  if (kind_ == Kind::node && per_group_ == 0) return "node";
  if (kind_ == Kind::node) return "node:" + std::to_string(ranks_ / per_group_) + '*' + std::to_string(per_group_);
  if (kind_ == Kind::tree) return "tree:" + path_;
  const bool mesh = !wraps_[0] && !wraps_[1] && !wraps_[2];
  std::string result = mesh ? "mesh:" : "torus:";
  for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions_); ++d) {
    if (d != 0) result += 'x';
    result += std::to_string(extents_[d]);
    if (!mesh && !wraps_[d]) result += 'm';
  }
  if (per_node_ > 1) result += '*' + std::to_string(per_node_);
  if (selects_ties_) result += kTies;
  return result;
}

std::string Topology::map_text() const {
  std::string result;
  for (const int position : positions_) result += (result.empty() ? "list:" : ",") + std::to_string(position);
  return result;
}

}  // namespace torii
