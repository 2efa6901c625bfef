// SPDX-License-Identifier: Apache-2.0
// Reads tune tables.
#include "collectives/selection/tune_table.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "collectives/selection/built_in_rows.hpp"
#include "runtime/base/excerpt.hpp"
#include "runtime/base/status.hpp"
#include "runtime/base/text_file.hpp"

namespace torii {

namespace {

using nlohmann::json;

/// The names of the committed tables in tune files, in the order of built_in_rows().
constexpr std::array<std::string_view, kBuiltInTables> kBuiltInNames = {"built-in torus", "built-in switch",
                                                                        "built-in node"};

constexpr std::size_t kSegmentBytesMax = std::size_t{1} << 24;
constexpr int kSlotsMax = 256;
constexpr int kWindowMax = 32;
constexpr int kRadixMax = 65536;
constexpr int kLanesMax = 255;
/// Values of a tune table are 4 deep. To copy or to print a value takes stack for each level.
constexpr int kNestingMax = 16;
/// In tune files, the topology of ranks of a `node` that are on several nodes.
constexpr const char* kSwitch = "switch";

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
    bad(origin, "it is not JSON: " + excerpt(error.what()));
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

[[noreturn]] void unknown_algorithm(const std::string& name, const std::string& where) {
  std::string names;
  for (const std::string_view known : algorithm_names()) names += (names.empty() ? "" : ", ") + std::string(known);
  bad(where, "\"algorithm\" is \"" + excerpt(name) + "\", which is not in the catalogue; that has " + names);
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
  if (row.contains("bytes_min")) {
    result.bytes_min = static_cast<std::size_t>(whole_number(row, "bytes_min", 0, INT64_MAX, where));
  }
  if (row.contains("bytes_max") && !row["bytes_max"].is_null()) {
    const auto least = static_cast<long long>(result.bytes_min);
    result.bytes_max = static_cast<std::size_t>(whole_number(row, "bytes_max", least, INT64_MAX, where));
  }
  const std::string name = text_of(row, "algorithm", where);
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
  const Algorithm* const algorithm = find_algorithm(name);
  if (algorithm == nullptr) unknown_algorithm(name, where);
  result.algorithm = algorithm->name;
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

/// Without rows of algorithms that are not in the catalogue.
void append_built_in(std::span<const TuneRow> more, std::vector<TuneRow>& rows) {
  std::ranges::copy_if(more, std::back_inserter(rows),
                       [](const TuneRow& row) { return find_algorithm(row.algorithm) != nullptr; });
}

/// An entry of "rows": a row, or the name of a committed table in the place of its rows.
void append_row(const json& entry, const std::string& where, std::vector<TuneRow>& rows) {
  if (!entry.is_string()) return rows.push_back(parse_row(entry, where));
  const auto* const found = std::ranges::find(kBuiltInNames, entry.get_ref<const std::string&>());
  if (found == kBuiltInNames.end()) {
    bad(where, "it is " + excerpt(entry.dump()) +
                   "; names of rows are \"built-in torus\", \"built-in switch\" and \"built-in node\"");
  }
  append_built_in(built_in_rows()[static_cast<std::size_t>(found - kBuiltInNames.begin())], rows);
}

MachineShape parse_machine(const json& machine, const std::string& where) {
  if (!machine.is_object()) bad(where, "it must be an object");
  const auto number = [&](const char* key) { return static_cast<int>(whole_number(machine, key, 1, 1 << 20, where)); };
  return {number("cpus"), number("l3_groups"), number("numa_nodes"), number("ranks")};
}

}  // namespace

TuneTable TuneTable::parse(std::string_view text, const std::string& origin) {
  TuneTable table;
  table.digest_ = XXH3_64bits(text.data(), text.size());
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
    for (const json& row : rows) append_row(row, origin + ", row " + std::to_string(index++), table.rows_);
  }
  const json streams = document.value("streams", json::array());
  if (!streams.is_array()) bad(origin, "\"streams\" must be an array");
  std::size_t index = 0;
  for (const json& entry : streams) {
    table.streams_.push_back(parse_streams(entry, origin + ", streams " + std::to_string(index++)));
  }
  if (document.contains("machine")) table.machine_ = parse_machine(document["machine"], origin + ", machine");
  return table;
}

const TuneTable& TuneTable::built_in() {
  static const TuneTable table = [] {
    TuneTable result;
    for (const std::span<const TuneRow> rows : built_in_rows()) append_built_in(rows, result.rows_);
    result.machine_ = kBuiltInMachine;
    result.digest_ = kBuiltInDigest;
    return result;
  }();
  return table;
}

TuneTable TuneTable::load(const std::string& path) {
  if (path.empty()) return built_in();
  return parse(read_text_file(path, "TORII_TUNE_FILE"), path);
}

}  // namespace torii
