// SPDX-License-Identifier: Apache-2.0
// Writes the table, the JSON lines and the CSV; every row is flushed as it comes.
#include "perf/common/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "perf/common/host.hpp"
#include "perf/common/names.hpp"

namespace torii::perf {
namespace {

using Json = nlohmann::ordered_json;

double algbw_gbps(const Row& row) {
  return row.time.median_us > 0 ? static_cast<double>(row.bytes) / row.time.median_us / 1e3 : 0;
}
double busbw_gbps(const Row& row) { return algbw_gbps(row) * busbw_factor(row.collective, row.ranks); }
std::string type_name(const Row& row) { return row.collective == TORII_BARRIER ? "none" : info(row.type).name; }
std::string op_name(const Row& row) { return combines(row.collective) ? name(row.op) : "none"; }
std::string hash_text(const Row& row) { return row.hash ? fmt::format("{:016x}", *row.hash) : ""; }

/// Three significant digits or more, whatever the unit.
std::string short_time(double us) {
  return us < 10 ? fmt::format("{:.3f}", us) : us < 1000 ? fmt::format("{:.2f}", us) : fmt::format("{:.1f}", us);
}

Json to_json(const Options& options, const Row& row) {
  Json json;
  json["collective"] = name(row.collective);
  json["algorithm"] = row.algorithm;
  json["transport"] = row.transport;
  json["topology"] = options.topology;
  json["ranks"] = row.ranks;
  json["engines"] = row.engines;
  json["engine_bytes"] = row.engine_bytes;
  json["segment_bytes"] = row.segment_bytes;
  json["bytes"] = row.bytes;
  json["type"] = type_name(row);
  json["op"] = op_name(row);
  json["root"] = row.root;
  if (options.leaves != 0) json["leaves"] = options.leaves;
  json["determinism"] = options.determinism;
  json["memory"] = name(options.memory);
  json["in_place"] = options.in_place;
  json["isa"] = row.isa;
  json["timing"] = name(options.timing);
  json["iterations"] = row.time.calls;
  json["time_us_median"] = row.time.median_us;
  json["time_us_mad"] = row.time.mad_us;
  json["time_us_p99"] = row.time.p99_us;
  json["time_us_max"] = row.time.max_us;
  json["algbw_GBps"] = algbw_gbps(row);
  json["busbw_GBps"] = busbw_gbps(row);
  json["wrong"] = row.wrong ? Json(*row.wrong) : Json(nullptr);
  json["hash"] = hash_text(row);
  json["seed"] = options.seed;
  json["host"] = host();
  json["commit"] = commit();
  json["version"] = torii_version();
  return json;
}

/// A value without the marks of JSON; lists are written a;b;c and what holds a comma is quoted.
std::string csv_field(const Json& value) {
  if (value.is_array()) {
    std::string text;
    for (const Json& item : value) text += (text.empty() ? "" : ";") + item.dump();
    return text;
  }
  if (!value.is_string()) return value.is_null() ? "" : value.dump();
  const auto text = value.get<std::string>();
  return text.find_first_of(",\"") == std::string::npos ? text : value.dump();
}

}  // namespace

Report::Report(const Options& options)
    : options_(options),
      json_(options.json),
      csv_(options.csv),
      table_(json_.is_stdout() || csv_.is_stdout() ? stderr : stdout) {}

void Report::header(int ranks) {
  fmt::print(table_, "# torii {} commit {}, {} ranks, {}\n", torii_version(), commit(), ranks, host());
  fmt::print(table_, "# {} timing, {} memory{}, topology {}, determinism {}\n", name(options_.timing),
             name(options_.memory), options_.in_place ? " in place" : "", options_.topology, options_.determinism);
  if (options_.leaves != 0) fmt::print(table_, "# {} leaves, dealt in order\n", options_.leaves);
  fmt::print(table_, "# {:>10} {:>12} {:>8} {:>7} {:>5} {:>10} {:>8} {:>8} {:>7} {:>10} {:>10} {:>18} {:>7}{}\n",
             "size(B)", "count", "type", "redop", "root", "time(us)", "algbw", "busbw", "#wrong", "p50", "p99",
             "algorithm", "engines", options_.hash ? "             hash" : "");
  std::fflush(table_);
}

void Report::add(const Row& row) {
  progress("");
  fmt::print(table_,
             "  {:>10} {:>12} {:>8} {:>7} {:>5} {:>10} {:>8.3f} {:>8.3f} {:>7} {:>10} {:>10} {:>18} {:>7}{}{}\n",
             row.bytes, row.elements, type_name(row), op_name(row), row.root, short_time(row.time.median_us),
             algbw_gbps(row), busbw_gbps(row), row.wrong ? std::to_string(*row.wrong) : "N/A",
             short_time(row.time.p50_us), short_time(row.time.p99_us), row.algorithm, row.engines,
             options_.hash ? " " : "", options_.hash ? hash_text(row) : "");
  std::fflush(table_);
  if (json_) json_.write(to_json(options_, row).dump() + "\n");
  if (csv_) add_csv(row);
}

void Report::add_csv(const Row& row) {
  std::string keys, values;
  const Json json = to_json(options_, row);
  for (const auto& [key, value] : json.items()) {
    keys += (keys.empty() ? "" : ",") + key;
    values += (values.empty() ? "" : ",") + csv_field(value);
  }
  csv_.write((csv_has_header_ ? "" : keys + "\n") + values + "\n");
  csv_has_header_ = true;
}

void Report::note(const std::string& text) {
  progress("");
  fmt::print(table_, "# {}\n", text);
  std::fflush(table_);
}

void Report::progress(const std::string& text) {
  if (isatty(STDERR_FILENO) == 0 || (text.empty() && !progress_shown_)) return;
  fmt::print(stderr, "\r{:<70}{}", text, text.empty() ? "\r" : "");
  std::fflush(stderr);
  progress_shown_ = !text.empty();
}

}  // namespace torii::perf
