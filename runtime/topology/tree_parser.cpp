// SPDX-License-Identifier: Apache-2.0
// Reads tree topology files. Errors name the line, the word and what would be right.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "runtime/base/excerpt.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"
#include "runtime/base/text_file.hpp"
#include "runtime/topology/tree_topology.hpp"

namespace torii {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
/// To bytes per second.
constexpr auto kRates = std::to_array<Unit>({{"B/s", 1},
                                             {"kB/s", 1e3},
                                             {"MB/s", 1e6},
                                             {"GB/s", 1e9},
                                             {"bit/s", 0.125},
                                             {"kbit/s", 125},
                                             {"Mbit/s", 125e3},
                                             {"Gbit/s", 125e6}});
/// To nanoseconds.
constexpr auto kTimes = std::to_array<Unit>({{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}});

constexpr double kBandwidthMax = 1e18;    // 1 exabyte per second
constexpr double kLatencyMaxNs = 3600e9;  // an hour

std::string in_quotes(std::string_view text) { return "'" + excerpt(text) + "'"; }

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

}  // namespace

/// Reads one statement after the other. finish() checks the rules that concern the whole file.
class TreeParser {
 public:
  TreeParser(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  TreeTopology run() {
    while (!text_.empty()) {
      ++line_;
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      statement(text_.substr(0, end));
      text_.remove_prefix(std::min(end + 1, text_.size()));
    }
    line_ = 0;
    finish();
    return std::move(tree_);
  }

 private:
  using Tokens = std::vector<std::string_view>;

  [[noreturn]] void bad(const std::string& message) const {
    const std::string where = line_ == 0 ? "" : ", line " + std::to_string(line_);
    throw Error(Status::invalid_argument, "topology file '" + std::string(origin_) + "'" + where + ": " + message);
  }

  void statement(std::string_view line) {
    const Tokens tokens = words_of(line);
    if (tokens.empty()) return;
    if (tokens[0] == "node") {
      expect(tokens, 3, "node NAME comm|relay");
      node(tokens);
    } else if (tokens[0] == "link") {
      expect(tokens, 8, "link A B BANDWIDTH_AB BANDWIDTH_BA LATENCY_AB LATENCY_BA full|half");
      link(tokens);
    } else if (tokens[0] == "rank") {
      expect(tokens, 3, "rank N NAME");
      rank(tokens);
    } else if (tokens[0] == "root") {
      expect(tokens, 2, "root NAME");
      root(tokens);
    } else {
      bad(in_quotes(tokens[0]) + " is no statement; it must be node, link, rank or root");
    }
  }

  void expect(const Tokens& tokens, std::size_t count, const char* form) const {
    if (tokens.size() == count) return;
    if (tokens.size() > count) bad(in_quotes(tokens[count]) + " is one word too many; write: " + form);
    bad("a word is missing behind " + in_quotes(tokens.back()) + "; write: " + form);
  }

  int find(std::string_view name) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end())
      bad("no node " + in_quotes(name) + " is declared above; write: node " + excerpt(name) + " comm|relay");
    return found->second;
  }

  void node(const Tokens& tokens) {
    if (tokens[2] != "comm" && tokens[2] != "relay")
      bad(in_quotes(tokens[2]) + " is no kind; it must be comm or relay");
    const int number = static_cast<int>(tree_.nodes_.size());
    if (number == TreeTopology::kNodesMax) {
      bad(in_quotes(tokens[1]) + " is one node too many; there may be " + std::to_string(TreeTopology::kNodesMax));
    }
    if (!numbers_.emplace(tokens[1], number).second) bad("the node " + in_quotes(tokens[1]) + " is declared twice");
    tree_.nodes_.push_back({std::string(tokens[1]), -1});
    communicates_.push_back(tokens[2] == "comm");
    group_.push_back(number);
  }

  double quantity(std::string_view token, std::span<const Unit> units, const char* what) const {
    std::string_view unit_name = token;
    const auto value = take_number<double>(unit_name);
    if (!value || !std::isfinite(*value)) {
      bad(in_quotes(token) + " is no " + what + "; write a number with one of " + names_of(units));
    }
    for (const Unit& unit : units) {
      if (unit.name == unit_name) return *value * unit.factor;
    }
    bad(in_quotes(token) + ": " + in_quotes(unit_name) + " is no unit of a " + what + "; it must be one of " +
        names_of(units));
  }

  std::int64_t bandwidth(std::string_view token) const {
    const double value = quantity(token, kRates, "bandwidth");
    if (!(value >= 1 && value <= kBandwidthMax)) {
      bad("the bandwidth " + in_quotes(token) + " is not in 1B/s..1e9GB/s; a link that carries nothing is no link");
    }
    return std::llround(value);
  }

  std::int64_t latency(std::string_view token) const {
    const double value = quantity(token, kTimes, "latency");
    if (!(value >= 0 && value <= kLatencyMaxNs)) bad("the latency " + in_quotes(token) + " is not in 0s..3600s");
    return std::llround(value);
  }

  /// The representative of a node's group. The links read so far join the nodes of a group.
  int group_of(int node) {
    auto at = static_cast<std::size_t>(node);
    while (group_[at] != static_cast<int>(at)) {
      group_[at] = group_[static_cast<std::size_t>(group_[at])];  // halves the path for later searches
      at = static_cast<std::size_t>(group_[at]);
    }
    return static_cast<int>(at);
  }

  void link(const Tokens& tokens) {
    TreeLink link;
    link.ends = {find(tokens[1]), find(tokens[2])};
    for (std::size_t i = 0; i < 2; ++i) {
      link.bandwidth[i] = bandwidth(tokens[3 + i]);
      link.latency_ns[i] = latency(tokens[5 + i]);
    }
    if (tokens[7] != "full" && tokens[7] != "half")
      bad(in_quotes(tokens[7]) + " is no duplex; it must be full or half");
    link.half_duplex = tokens[7] == "half";
    if (link.half_duplex && link.bandwidth[0] != link.bandwidth[1]) {
      bad("the two directions of a half-duplex link share one bandwidth, but " + in_quotes(tokens[3]) + " is not " +
          in_quotes(tokens[4]));
    }
    const int a = group_of(link.ends[0]);
    const int b = group_of(link.ends[1]);
    if (a == b) {
      bad("the link from " + in_quotes(tokens[1]) + " to " + in_quotes(tokens[2]) +
          " closes a cycle; links must form a tree");
    }
    group_[static_cast<std::size_t>(a)] = b;
    tree_.links_.push_back(link);
  }

  void rank(const Tokens& tokens) {
    const int number = parse_number<int>(tokens[1]).value_or(-1);
    if (number < 0 || number >= TreeTopology::kNodesMax) {
      bad(in_quotes(tokens[1]) + " is no rank; it must be a whole number from 0");
    }
    const int node = find(tokens[2]);
    if (!communicates_[static_cast<std::size_t>(node)]) {
      bad("rank " + std::to_string(number) + " is placed on the relay " + in_quotes(tokens[2]) +
          "; ranks must be on comm nodes");
    }
    int& placed = tree_.nodes_[static_cast<std::size_t>(node)].rank;
    if (placed >= 0) {
      bad("rank " + std::to_string(number) + " is placed on " + in_quotes(tokens[2]) + ", where rank " +
          std::to_string(placed) + " is already; a comm node has one rank");
    }
    if (!placed_.emplace(number, line_).second) {
      bad("rank " + std::to_string(number) + " is placed twice, first in line " + std::to_string(placed_[number]));
    }
    placed = number;
  }

  void root(const Tokens& tokens) {
    if (root_node_ >= 0) {
      bad("a second root, " + in_quotes(tokens[1]) + "; the root is " +
          in_quotes(tree_.nodes_[static_cast<std::size_t>(root_node_)].name) + " already");
    }
    root_node_ = find(tokens[1]);
    if (!communicates_[static_cast<std::size_t>(root_node_)]) {
      bad("the root " + in_quotes(tokens[1]) + " is a relay; a root must be a comm node");
    }
  }

  void finish() {
    const auto ranks = std::count(communicates_.begin(), communicates_.end(), true);
    if (ranks == 0) bad("no comm node; write: node NAME comm");
    for (std::size_t node = 1; node < group_.size(); ++node) {
      if (group_of(static_cast<int>(node)) == group_of(0)) continue;
      bad("no path leads from " + in_quotes(tree_.nodes_[0].name) + " to " + in_quotes(tree_.nodes_[node].name) +
          "; links must join all nodes");
    }
    int next = 0;
    for (std::size_t node = 0; node < tree_.nodes_.size(); ++node) {
      int& rank = tree_.nodes_[node].rank;
      if (!communicates_[node]) continue;
      if (placed_.empty()) rank = next++;
      if (rank < 0)
        bad("no rank is placed on " + in_quotes(tree_.nodes_[node].name) + ", but others are placed; place all");
    }
    if (!placed_.empty() && placed_.rbegin()->first >= ranks) {
      line_ = placed_.rbegin()->second;
      bad("rank " + std::to_string(placed_.rbegin()->first) + " of " + std::to_string(ranks) +
          " comm nodes; ranks must be 0 to " + std::to_string(ranks - 1));
    }
    if (root_node_ >= 0) tree_.root_ = tree_.nodes_[static_cast<std::size_t>(root_node_)].rank;
    tree_.index();
  }

  std::string_view text_;
  const std::string& origin_;
  int line_ = 0;
  TreeTopology tree_;
  std::map<std::string, int, std::less<>> numbers_;
  std::vector<bool> communicates_;
  std::vector<int> group_;
  std::map<int, int> placed_;  ///< rank to line
  int root_node_ = -1;
};

TreeTopology TreeTopology::parse(std::string_view text, const std::string& origin) {
  return TreeParser(text, origin).run();
}

std::string TreeTopology::read(const std::string& path) { return read_text_file(path, "topology file"); }

TreeTopology TreeTopology::load(const std::string& path) { return parse(read(path), path); }

}  // namespace torii
