// SPDX-License-Identifier: Apache-2.0
// `torii-info tune`.
#include "tools/torii-info/tune.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "collectives/selection/catalogue.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/settings.hpp"

namespace torii::tools {
namespace {

std::string length_text(const TuneRow& row) {
  const std::string most = row.bytes_max == SIZE_MAX ? "any" : bytes_text(row.bytes_max);
  return row.bytes_min == 0 ? most : bytes_text(row.bytes_min) + ".." + most;
}

std::string ranks_text(const TuneRow& row) { return fmt::format("{}..{}", row.ranks_min, row.ranks_max); }

std::string topology_text(const TuneRow& row) {
  if (!row.topology) return "any";
  if (*row.topology == Topology::Kind::tree) return "tree";
  if (row.is_switch) return "switch";
  return *row.topology == Topology::Kind::node ? "node" : "torus";
}

}  // namespace

Json row_json(const TuneRow& row) {
  Json json;
  if (row.topology) json["topology"] = topology_text(row);
  json["collective"] = name(row.collective);
  json["ranks"] = {row.ranks_min, row.ranks_max};
  if (row.bytes_min != 0) json["bytes_min"] = row.bytes_min;
  json["bytes_max"] = row.bytes_max == SIZE_MAX ? Json(nullptr) : Json(row.bytes_max);
  json["algorithm"] = row.algorithm;
  json["segment"] = row.tuning.segment_bytes;
  json["slots"] = row.tuning.slots;
  json["window"] = row.tuning.window;
  json["one_shot"] = row.tuning.one_shot;
  if (row.tuning.radix != 0) json["radix"] = row.tuning.radix;
  if (row.tuning.lanes[0] != 0) json["lanes"] = row.tuning.lanes[0];
  return json;
}

std::string row_text(const TuneRow& row) {
  std::string lengths = row.bytes_max == SIZE_MAX ? "any length" : "up to " + bytes_text(row.bytes_max);
  if (row.bytes_min != 0) lengths = "from " + bytes_text(row.bytes_min) + ", " + lengths;
  return fmt::format("{}{}, {} to {} ranks, {} -> {}, segment {}, slots {}, window {}{}", name(row.collective),
                     row.topology ? " on a " + topology_text(row) : "", row.ranks_min, row.ranks_max, lengths,
                     row.algorithm, bytes_text(row.tuning.segment_bytes), row.tuning.slots, row.tuning.window,
                     row.tuning.one_shot ? ", one_shot" : "");
}

Report print_table(const std::string& overrides) {
  const Settings settings = Settings::load(overrides, nullptr, algorithm_names());
  const TuneTable table = TuneTable::load(settings.tune_file);
  const std::string origin = settings.tune_file.empty() ? "built-in" : settings.tune_file;
  Report report;
  report.text =
      fmt::format("tune table: {}; the first row that fits and whose algorithm accepts the call serves it\n", origin);
  report.text += fmt::format("{:>3}  {:<9} {:<15} {:<12} {:>16}  {:<19} {:>8} {:>5} {:>6}  {}\n", "row", "topology",
                             "collective", "ranks", "bytes", "algorithm", "segment", "slots", "window", "one_shot");
  report.json = {{"origin", origin}, {"version", TuneTable::kVersion}, {"rows", Json::array()}};
  int index = 0;
  for (const TuneRow& row : table.rows()) {
    report.text += fmt::format("{:>3}  {:<9} {:<15} {:<12} {:>16}  {:<19} {:>8} {:>5} {:>6}  {}\n", index++,
                               topology_text(row), name(row.collective), ranks_text(row), length_text(row),
                               row.algorithm, bytes_text(row.tuning.segment_bytes), row.tuning.slots, row.tuning.window,
                               row.tuning.one_shot ? "yes" : "no");
    report.json["rows"].push_back(row_json(row));
  }
  return report;
}

}  // namespace torii::tools
