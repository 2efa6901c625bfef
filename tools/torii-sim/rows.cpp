// SPDX-License-Identifier: Apache-2.0
// Rows as text, JSON and CSV.
#include "tools/torii-sim/rows.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "runtime/base/status.hpp"

namespace torii::tools {
namespace {

Json object_of(const SimRow& row) {
  Json object = {{"collective", row.collective},
                 {"algorithm", row.algorithm},
                 {"topology", row.topology},
                 {"ranks", row.ranks},
                 {"engines", row.engines},
                 {"bytes", row.bytes},
                 {"sharing", row.sharing},
                 {"time_us", row.time_us},
                 {"bound_us", row.bound_us},
                 {"ratio", row.bound_us > 0 ? row.time_us / row.bound_us : 1.0},
                 {"links_shared", row.links_shared},
                 {"links_shared_percent", row.links_shared_percent},
                 {"link_bytes_max", row.link_bytes_max},
                 {"height", row.height},
                 {"planning_s", row.planning_s},
                 {"wall_s", row.wall_s}};
  object.update(row.more);
  return object;
}

std::string quoted(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

}  // namespace

RowWriter::RowWriter(const std::string& json_path, const std::string& csv_path) : json_(json_path), csv_(csv_path) {
  if (json_.is_stdout() && csv_.is_stdout()) {
    throw Error(Status::invalid_argument, "--json - and --csv - both want stdout: give one of them a file");
  }
}

void RowWriter::write_csv(const Json& object) {
  std::string header;
  std::string line;
  for (const auto& [key, value] : object.items()) {
    header += (header.empty() ? "" : ",") + key;
    line += (line.empty() ? "" : ",") + quoted(value);
  }
  csv_.write((has_header_ ? "" : header + "\n") + line + "\n");
}

void RowWriter::add(const SimRow& row) {
  const Json object = object_of(row);
  json_.write(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  if (csv_) write_csv(object);
  if (!json_.is_stdout() && !csv_.is_stdout()) {
    if (!has_header_) {
      fmt::print("{:<14} {:<18} {:<16} {:>6} {:>4} {:>12} {:>14} {:>14} {:>7} {:>7} {:>7} {:>8} {:>8}\n", "collective",
                 "algorithm", "topology", "ranks", "E", "bytes", "time_us", "bound_us", "ratio", "shared%", "height",
                 "plan_s", "wall_s");
    }
    fmt::print(
        "{:<14} {:<18} {:<16} {:>6} {:>4} {:>12} {:>14.3f} {:>14.3f} {:>7.3f} {:>7.2f} {:>7} {:>8.3f} {:>8.3f}\n",
        row.collective, row.algorithm, row.topology, row.ranks, row.engines, row.bytes, row.time_us, row.bound_us,
        row.bound_us > 0 ? row.time_us / row.bound_us : 1.0, row.links_shared_percent, row.height, row.planning_s,
        row.wall_s);
    std::fflush(stdout);
  }
  has_header_ = true;
}

}  // namespace torii::tools
