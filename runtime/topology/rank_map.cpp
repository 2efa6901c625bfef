// SPDX-License-Identifier: Apache-2.0
// Reads rank maps, line by line.
#include "runtime/topology/rank_map.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/base/excerpt.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"
#include "runtime/base/text_file.hpp"

namespace torii {
namespace {

constexpr std::string_view kList = "list:";

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw Error(Status::invalid_argument, "rank map " + where + ": " + why);
}

std::string places_text(const Coordinates& at, int dimensions) {
  std::string text = std::to_string(at[0]);
  for (int d = 1; d < dimensions; ++d) text += " " + std::to_string(at[static_cast<std::size_t>(d)]);
  return text;
}

/// Collects the lines of a map. The ranks of a node take its places in the order of their numbers.
class MapLines {
 public:
  MapLines(const Topology& topology, const std::string& where)
      : topology_(topology),
        where_(where),
        node_of_(static_cast<std::size_t>(topology.ranks()), -1),
        line_of_(static_cast<std::size_t>(topology.ranks()), 0),
        on_node_(static_cast<std::size_t>(topology.nodes()), 0) {}

  void add(std::string_view line, int number) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) return;
    const std::string at_line = where_ + ", line " + std::to_string(number);
    const int dimensions = topology_.dimensions();
    if (static_cast<int>(words.size()) != 1 + dimensions) {
      refuse(at_line, "'" + excerpt(line) + "' has " + std::to_string(words.size()) +
                          " words; there must be a rank and " + std::to_string(dimensions) +
                          " coordinates, as the topology is " + topology_.text());
    }
    const int rank = number_in(words[0], "rank", topology_.ranks(), at_line);
    Coordinates at = {0, 0, 0};
    for (std::size_t d = 0; d + 1 < words.size(); ++d) {
      const std::string name(1, "xyz"[d]);
      at[d] = number_in(words[d + 1], name, topology_.extents()[d], at_line);
    }
    place(rank, at, number, at_line);
  }

  std::vector<int> positions() const {
    std::vector<int> taken(on_node_.size(), 0);
    std::vector<int> positions;
    for (std::size_t rank = 0; rank < node_of_.size(); ++rank) {
      const int node = node_of_[rank];
      if (node < 0) {
        refuse(where_, "rank " + std::to_string(rank) + " is missing; there must be a line for each of " +
                           std::to_string(node_of_.size()) + " ranks");
      }
      positions.push_back(node * topology_.per_node() + taken[static_cast<std::size_t>(node)]++);
    }
    return positions;
  }

 private:
  static int number_in(std::string_view word, const std::string& name, int end, const std::string& at_line) {
    const std::optional<int> value = parse_number<int>(word);
    if (value && *value >= 0 && *value < end) return *value;
    refuse(at_line, name + " is '" + excerpt(word) + "'; it must be a number from 0 to " + std::to_string(end - 1));
  }

  void place(int rank, const Coordinates& at, int number, const std::string& at_line) {
    const auto r = static_cast<std::size_t>(rank);
    if (node_of_[r] >= 0) {
      refuse(at_line, "rank " + std::to_string(rank) + " is in line " + std::to_string(line_of_[r]) + " already");
    }
    const int node = topology_.node_of(topology_.rank(at));
    int& count = on_node_[static_cast<std::size_t>(node)];
    if (count == topology_.per_node()) {
      int first = 0;
      while (node_of_[static_cast<std::size_t>(first)] != node) ++first;
      refuse(at_line, "place " + places_text(at, topology_.dimensions()) + " of rank " + std::to_string(rank) +
                          " is taken by rank " + std::to_string(first) + " (line " +
                          std::to_string(line_of_[static_cast<std::size_t>(first)]) + "); a place has " +
                          std::to_string(count) + (count == 1 ? " rank" : " ranks"));
    }
    ++count;
    node_of_[r] = node;
    line_of_[r] = number;
  }

  const Topology& topology_;
  const std::string& where_;
  std::vector<int> node_of_;
  std::vector<int> line_of_;
  std::vector<int> on_node_;
};

/// Reads the positions of a list, which must contain each of `ranks` positions once.
std::vector<int> read_list(std::string_view text, int ranks, const std::string& where) {
  std::vector<int> positions;
  std::vector<int> rank_at(static_cast<std::size_t>(ranks), -1);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  for (const std::string_view word : split(text, ',')) {
    const std::string entry = "entry " + std::to_string(positions.size()) + " ";
    const std::optional<int> position = parse_number<int>(word);
    if (!position || *position < 0 || *position >= ranks) {
      refuse(where, entry + "is '" + excerpt(word) + "'; it must be a number from 0 to " + std::to_string(ranks - 1));
    }
    int& rank = rank_at[static_cast<std::size_t>(*position)];
    if (rank >= 0) {
      refuse(where,
             entry + "is " + std::to_string(*position) + ", the place of rank " + std::to_string(rank) + " already");
    }
    rank = static_cast<int>(positions.size());
    positions.push_back(*position);
  }
  if (static_cast<int>(positions.size()) != ranks) {
    refuse(where, "the list has " + std::to_string(positions.size()) + " entries, but there are " +
                      std::to_string(ranks) + " ranks; rank " + std::to_string(positions.size()) + " is missing");
  }
  return positions;
}

}  // namespace

std::string read_rank_map(const std::string& setting) {
  if (setting.empty() || setting.starts_with(kList)) return setting;
  std::string text = read_text_file(setting, "TORII_RANK_MAP, a file or list:0,1,2,...");
  // An empty file is a map without lines, but an empty text means that there is no map.
  return text.empty() ? "\n" : text;
}

Topology with_rank_map(const Topology& topology, std::string_view text, const std::string& where) {
  if (text.empty()) return topology;
  if (topology.kind() != Topology::Kind::torus) {
    refuse(where, "the topology is " + topology.text() + "; places need a torus or a mesh (TORII_TOPOLOGY)");
  }
  if (text.starts_with(kList)) {
    return topology.with_positions(read_list(text.substr(kList.size()), topology.ranks(), where));
  }
  MapLines lines(topology, where);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.add(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return topology.with_positions(lines.positions());
}

}  // namespace torii
