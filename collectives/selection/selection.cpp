// SPDX-License-Identifier: Apache-2.0
// Reads tune tables and picks the row that serves a call.
#include "collectives/selection/selection.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collectives/selection/selection_floyd.hpp"
#include "collectives/selection/selection_sites.hpp"
#include "collectives/selection/selection_trees.hpp"
#include "runtime/base/excerpt.hpp"
#include "runtime/base/status.hpp"
#include "runtime/base/text_file.hpp"

namespace torii {

extern const char* const kBuiltInTuneTable;    // generated from collectives/selection/tune_table.json
extern const char* const kBuiltInTorusTable;   // generated from collectives/selection/tune_table_torus.json
extern const char* const kBuiltInSwitchTable;  // generated from collectives/selection/tune_table_switch.json

namespace {

using nlohmann::json;

constexpr std::size_t kSegmentBytesMax = std::size_t{1} << 24;
constexpr int kSlotsMax = 256;
constexpr int kWindowMax = 32;
constexpr int kRadixMax = 65536;
/// `direct` has lists of single messages up to here; beyond, a sweep would settle every pair by itself.
constexpr int kListedRanksMax = 256;
constexpr int kLanesMax = 255;
/// Values of a tune table are 4 deep. To copy or to print a value takes stack for each level.
constexpr int kNestingMax = 16;
/// In tune files, what ranks of a `node` stand on that are on several nodes.
constexpr const char* kSwitch = "switch";
/// `node` with one_shot: larger vectors take too many copies; forced `node` switches here.
constexpr std::size_t kOneShotBytesMax = 2048;
/// Alltoall, scatter and gather, and whatever goes by multilane, have slots for every peer; their segments shrink so
/// that all of them take about so much.
constexpr std::size_t kPersonalSlotsBytesMax = std::size_t{8} << 20;
constexpr std::size_t kPersonalSegmentBytesMin = 512;

[[noreturn]] void bad(const std::string& where, const std::string& what) {
  throw Error(Status::invalid_argument, where + ": " + what);
}

json parse_json(std::string_view text, const std::string& origin) {
  const auto check_depth = [&](int depth, json::parse_event_t, const json&) {
    if (depth > kNestingMax) bad(origin, "a value is nested more than " + std::to_string(kNestingMax) + " deep");
    return true;
  };
  try {
    return json::parse(text, check_depth);
  } catch (const json::exception& error) {
    bad(origin, "not JSON: " + excerpt(error.what()));
  }
}

long long whole_number(const json& row, const char* key, long long least, long long most, const std::string& where) {
  if (!row.contains(key)) bad(where, std::string("\"") + key + "\" is missing");
  const json& value = row.at(key);
  if (!value.is_number_integer() || value.get<long long>() < least || value.get<long long>() > most) {
    bad(where, std::string("\"") + key + "\" is " + excerpt(value.dump()) + "; it must be a whole number from " +
                   std::to_string(least) + " to " + std::to_string(most));
  }
  return value.get<long long>();
}

std::string text_of(const json& row, const char* key, const std::string& where) {
  if (!row.contains(key) || !row.at(key).is_string()) bad(where, std::string("\"") + key + "\" must be a string");
  return row.at(key).get<std::string>();
}

std::optional<Topology::Kind> parse_topology(const json& row, const std::string& where) {
  if (!row.contains("topology")) return std::nullopt;
  const std::string text = text_of(row, "topology", where);
  if (text == "node" || text == kSwitch) return Topology::Kind::node;
  if (text == "torus") return Topology::Kind::torus;
  if (text == "tree") return Topology::Kind::tree;
  bad(where, "\"topology\" is \"" + excerpt(text) +
                 "\"; it must be \"node\", \"torus\", \"tree\" or \"switch\", or left out for all");
}

TuneRow parse_row(const json& row, const std::string& where) {
  if (!row.is_object()) bad(where, "a row must be an object");
  TuneRow result;
  result.topology = parse_topology(row, where);
  result.is_switch = result.topology && row.at("topology") == kSwitch;
  const std::string collective = text_of(row, "collective", where);
  const auto parsed = parse_collective(collective);
  if (!parsed) bad(where, "\"collective\" is \"" + excerpt(collective) + "\", which is no collective");
  result.collective = *parsed;
  if (!row.contains("ranks") || !row["ranks"].is_array() || row["ranks"].size() != 2) {
    bad(where, "\"ranks\" must be [least, most]");
  }
  const json bounds = {{"least", row["ranks"][0]}, {"most", row["ranks"][1]}};
  result.ranks_min = static_cast<int>(whole_number(bounds, "least", 1, 1 << 20, where));
  result.ranks_max = static_cast<int>(whole_number(bounds, "most", result.ranks_min, 1 << 20, where));
  if (row.contains("bytes_max") && !row["bytes_max"].is_null()) {
    result.bytes_max = static_cast<std::size_t>(whole_number(row, "bytes_max", 0, INT64_MAX, where));
  }
  result.algorithm = text_of(row, "algorithm", where);
  if (find_algorithm(result.algorithm) == nullptr) {
    bad(where, "\"algorithm\" is \"" + excerpt(result.algorithm) + "\", which is not in the catalogue");
  }
  result.tuning.segment_bytes = static_cast<std::size_t>(whole_number(row, "segment", 64, kSegmentBytesMax, where));
  if (result.tuning.segment_bytes % 64 != 0) {
    bad(where, "\"segment\" is " + std::to_string(result.tuning.segment_bytes) + "; it must be a multiple of 64");
  }
  result.tuning.slots = static_cast<int>(whole_number(row, "slots", 1, kSlotsMax, where));
  result.tuning.window = static_cast<int>(whole_number(row, "window", 1, kWindowMax, where));
  result.tuning.radix = row.contains("radix") ? static_cast<int>(whole_number(row, "radix", 2, kRadixMax, where)) : 0;
  if (row.contains("one_shot")) {
    if (!row["one_shot"].is_boolean()) bad(where, "\"one_shot\" must be true or false");
    result.tuning.one_shot = row["one_shot"].get<bool>();
  }
  if (row.contains("lanes")) {
    result.tuning.lanes.fill(static_cast<std::uint8_t>(whole_number(row, "lanes", 1, kLanesMax, where)));
  }
  return result;
}

StreamRates parse_streams(const json& entry, const std::string& where) {
  if (!entry.is_object()) bad(where, "streams must be objects");
  StreamRates streams = {text_of(entry, "from", where), text_of(entry, "to", where), {}};
  if (!entry.contains("rates") || !entry["rates"].is_array() || entry["rates"].empty()) {
    bad(where, "\"rates\" must be a list: bytes per second of one stream, of each of two, ...");
  }
  for (const json& rate : entry["rates"]) {
    const bool is_rate = rate.is_number() && rate.get<double>() >= 1 && rate.get<double>() <= 1e15;
    if (!is_rate)
      bad(where, "a rate is " + excerpt(rate.dump()) + "; it must be a number of bytes per second from 1 to 1e15");
    streams.rates.push_back(rate.get<double>());
  }
  return streams;
}

/// Those of the catalogue that serve the request, for messages.
std::string able(const PlanRequest& request) {
  std::string names;
  for (const Algorithm& algorithm : catalogue()) {
    if (!algorithm.why_not(request).empty()) continue;
    names += names.empty() ? "" : ", ";
    names += algorithm.name;
  }
  return names.empty() ? "none" : names;
}

/// Why each row refuses the request that serves its collective for two ranks of a node.
std::string none_serves(const PlanRequest& request) {
  std::string text = "no algorithm of the catalogue serves " + std::string(torii::name(request.collective)) + " of " +
                     std::to_string(request.topology.ranks()) + " ranks, " +
                     std::string(torii::name(request.determinism));
  PlanRequest small = request;
  small.topology = Topology::node(2);
  small.root = 0;
  small.determinism = Determinism::run;
  const char* between = ": ";
  for (const Algorithm& algorithm : catalogue()) {
    if (!algorithm.why_not(small).empty()) continue;
    text += between + std::string(algorithm.name) + ": " + algorithm.why_not(request);
    between = "; ";
  }
  return text;
}

Tuning forced_tuning(Tuning tuning, const Forced& forced) {
  if (forced.segment_bytes != 0) tuning.segment_bytes = forced.segment_bytes;
  if (forced.slots != 0) tuning.slots = forced.slots;
  if (forced.window != 0) tuning.window = forced.window;
  return tuning;
}

std::size_t bounded_segment(const PlanRequest& request, const Algorithm& algorithm) {
  const Tuning& tuning = request.tuning;
  if (!is_personalised(request.collective) && algorithm.name != "multilane") return tuning.segment_bytes;
  const auto slots = static_cast<std::size_t>(request.topology.ranks()) * static_cast<std::size_t>(tuning.slots);
  const std::size_t most_bytes = kPersonalSlotsBytesMax / slots / 64 * 64;
  return std::min(tuning.segment_bytes, std::max(most_bytes, kPersonalSegmentBytesMin));
}

/// Rows for any topology were measured on nodes, and say nothing about where to send over unequal links.
bool asks_model(const PlanRequest& request) {
  return request.topology.kind() == Topology::Kind::tree &&
         (request.collective == Collective::broadcast || request.collective == Collective::reduce);
}

/// What goes to one rank where whole operands or blocks do.
std::size_t one_message_bytes(const PlanRequest& request, std::size_t bytes) {
  return has_block_per_rank(request.collective) ? bytes / static_cast<std::size_t>(request.topology.ranks()) : bytes;
}

/// The shortest segment that is worth a put over a network. Two ranks pass nothing on, so nobody waits for a segment to
/// be whole. Rounds of an all_gather bundle their segments, and what is one segment already needs no longer one.
std::size_t least_segment(const PlanRequest& request, std::size_t bytes, const Tuning& tuning, std::size_t put_bytes) {
  if (one_message_bytes(request, bytes) <= tuning.segment_bytes || request.collective == Collective::all_gather)
    return 0;
  return request.topology.ranks() == 2 ? 2 * put_bytes : put_bytes;
}

/// Rounds cost a network's latency. Ranks of one node are a line of the cache apart, and wait for each other's CPU time
/// instead: there every message goes straight.
bool asks_rounds(const PlanRequest& request, bool several_nodes) {
  const bool is_far = several_nodes || request.topology.kind() == Topology::Kind::torus;
  return request.collective == Collective::alltoall && (is_far || request.topology.ranks() > kListedRanksMax);
}

std::size_t block_bytes_of(const PlanRequest& request, std::size_t bytes) {
  return bytes / static_cast<std::size_t>(request.topology.ranks());
}

/// What a forced algorithm needs where no row says more.
Tuning default_tuning(const std::string& name, const PlanRequest& request, std::size_t bytes) {
  if (name == "scheduled") return scheduled_tuning(bytes);
  if (name == "chain") return chain_tuning(request, bytes);
  if (name == "floyd") return choose_floyd(request.topology, block_bytes_of(request, bytes)).tuning;
  if (name == "multilane") return multilane_tuning(request, bytes);
  Tuning tuning;
  const auto blocks = static_cast<std::size_t>(is_personalised(request.collective) ? request.topology.ranks() : 1);
  tuning.one_shot = bytes / blocks <= kOneShotBytesMax;
  return tuning;
}

/// The row for this call: of the forced algorithm where one is forced, otherwise the first that accepts the request.
const TuneRow* find_row(const TuneTable& table, const std::string& name, PlanRequest request, std::size_t bytes,
                        bool several_nodes) {
  const int ranks = request.topology.ranks();
  const bool by_model = name.empty() && (asks_model(request) || asks_lanes_model(request, bytes, table.streams()));
  for (const TuneRow& row : table.rows()) {
    if (row.collective != request.collective || ranks < row.ranks_min || ranks > row.ranks_max) continue;
    if (bytes > row.bytes_max || row.topology.value_or(request.topology.kind()) != request.topology.kind()) continue;
    if (row.is_switch && !several_nodes) continue;
    if (!name.empty() && row.algorithm != name) continue;
    if (by_model && !row.topology) continue;
    request.tuning = row.tuning;
    if (row.tuning.radix == 0) request.tuning.radix = Tuning{}.radix;
    if (find_algorithm(row.algorithm)->why_not(request).empty()) return &row;
  }
  return nullptr;
}

}  // namespace

TuneTable TuneTable::parse(std::string_view text, const std::string& origin) {
  TuneTable table;
  table.text_ = text;
  const json document = parse_json(text, origin);
  if (!document.is_object()) bad(origin, "a tune file is an object with \"version\" and \"rows\"");
  const long long version = whole_number(document, "version", 0, INT64_MAX, origin);
  if (version != kVersion) {
    bad(origin, "\"version\" is " + std::to_string(version) + "; this library reads " + std::to_string(kVersion));
  }
  const json rows = document.value("rows", json());
  if (rows == "built-in") {
    table.rows_ = built_in().rows_;
  } else if (!rows.is_array()) {
    bad(origin, "\"rows\" must be an array, or \"built-in\"");
  } else {
    std::size_t index = 0;
    for (const json& row : rows) table.rows_.push_back(parse_row(row, origin + ", row " + std::to_string(index++)));
  }
  const json streams = document.value("streams", json::array());
  if (!streams.is_array()) bad(origin, "\"streams\" must be an array");
  std::size_t index = 0;
  for (const json& entry : streams) {
    table.streams_.push_back(parse_streams(entry, origin + ", streams " + std::to_string(index++)));
  }
  return table;
}

const TuneTable& TuneTable::built_in() {
  static const TuneTable table = [] {
    TuneTable result = parse(kBuiltInTorusTable, "the built-in tune table for tori");
    for (const TuneTable& more : {parse(kBuiltInSwitchTable, "the built-in tune table for switches"),
                                  parse(kBuiltInTuneTable, "the built-in tune table")}) {
      result.rows_.insert(result.rows_.end(), more.rows_.begin(), more.rows_.end());
      result.text_ += more.text_;
    }
    return result;
  }();
  return table;
}

TuneTable TuneTable::load(const std::string& path) {
  if (path.empty()) return built_in();
  return parse(read_text_file(path, "TORII_TUNE_FILE"), path);
}

namespace {

/// Sets the radix that nobody chose, on which it depends whether an algorithm serves a call. Throws unsupported unless
/// there is an algorithm and it serves.
void check_serves(Selected& selected, const std::string& name, std::size_t bytes) {
  PlanRequest& request = selected.request;
  if (selected.algorithm == nullptr) {
    throw Error(Status::unsupported,
                name.empty() ? none_serves(request)
                             : "no algorithm is called '" + name + "'; those that serve this call: " + able(request));
  }
  if (request.tuning.radix == 0) {
    const bool counts = selected.algorithm->name == "floyd";
    request.tuning.radix = counts ? floyd_radix(request.topology, block_bytes_of(request, bytes)) : Tuning{}.radix;
  }
  const std::string reason = selected.algorithm->why_not(request);
  if (!reason.empty()) {
    throw Error(Status::unsupported, std::string(selected.algorithm->name) + " cannot serve this call: " + reason +
                                         " (those that can: " + able(request) + ")");
  }
}

}  // namespace

Selected select(const TuneTable& table, const Forced& forced, PlanRequest request, std::size_t bytes,
                bool several_nodes, std::size_t put_bytes) {
  std::string name = forced.algorithm == "auto" ? "" : forced.algorithm;
  const TuneRow* row = find_row(table, name, request, bytes, several_nodes);
  if (row == nullptr && name.empty() && asks_lanes_model(request, bytes, table.streams())) name = "multilane";
  Selected selected;
  selected.request = request;
  const bool asks_tree = row == nullptr && name.empty() && asks_model(request);
  const TreeChoice choice = asks_tree ? choose_on_tree(request, bytes) : TreeChoice{};
  const FloydChoice rounds = name.empty() && asks_rounds(request, several_nodes)
                                 ? choose_floyd(request.topology, block_bytes_of(request, bytes))
                                 : FloydChoice{};
  const bool by_rounds = rounds.is_quicker && (row == nullptr || row->algorithm != "floyd");
  const bool by_lanes = choice.algorithm != nullptr && lanes_beat_tree(request, bytes, table.streams(), choice.time_s);
  if (by_rounds) {
    selected.algorithm = find_algorithm("floyd");
    selected.request.tuning = forced_tuning(rounds.tuning, forced);
    selected.by_model = rounds.why;
  } else if (by_lanes) {
    selected.algorithm = find_algorithm("multilane");
    selected.request.tuning = forced_tuning(multilane_tuning(request, bytes), forced);
  } else if (choice.algorithm != nullptr) {
    selected.algorithm = choice.algorithm;
    selected.request.tuning = forced_tuning(choice.tuning, forced);
    selected.by_model = choice.why;
  } else if (row != nullptr) {
    selected.row = static_cast<std::size_t>(row - table.rows().data());
    selected.algorithm = find_algorithm(row->algorithm);
    Tuning tuning = row->tuning;
    if (row->is_switch)
      tuning.segment_bytes = std::max(tuning.segment_bytes, least_segment(request, bytes, tuning, put_bytes));
    selected.request.tuning = forced_tuning(tuning, forced);
  } else {
    // No row: the defaults of Tuning, and for a free choice the first of the catalogue that can.
    selected.request.tuning = forced_tuning(default_tuning(name, request, bytes), forced);
    const auto rows = catalogue();
    const auto wanted = std::ranges::find_if(rows, [&](const Algorithm& one) {
      return name.empty() ? one.why_not(selected.request).empty() : one.name == name;
    });
    if (wanted != rows.end()) selected.algorithm = &*wanted;
  }
  check_serves(selected, name, bytes);
  selected.request.tuning.segment_bytes = bounded_segment(selected.request, *selected.algorithm);
  if (selected.algorithm->name == "multilane") {
    selected.by_model = choose_lanes(selected.request, bytes, table.streams());
  }
  // What goes in one shot travels in one message.
  Tuning& tuning = selected.request.tuning;
  tuning.one_shot = tuning.one_shot && one_message_bytes(request, bytes) <= tuning.segment_bytes;
  return selected;
}

}  // namespace torii
