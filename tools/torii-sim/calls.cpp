// SPDX-License-Identifier: Apache-2.0
// Multiplies out a command line, and draws the results.
#include "tools/torii-sim/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/output.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-sim/cliffs.hpp"
#include "tools/torii-sim/collective.hpp"
#include "tools/torii-sim/curves.hpp"
#include "tools/torii-sim/pictures.hpp"
#include "tools/torii-sim/scan.hpp"

namespace torii::tools {
namespace {

/// The calls of a command line, in the order in which they are made: sizes innermost.
std::vector<SimOptions> calls_of(const SimOptions& options) {
  Scan scan = read_scan(options.scan, options.topology.substr(0, options.topology.find(':')));
  if (!scan.ranks.empty() && options.topology != "node") invalid("--scan ranks=... is for --topology node");
  if (scan.topologies.empty()) scan.topologies = {options.topology};
  if (scan.ranks.empty()) scan.ranks = {options.ranks};
  if (scan.engines.empty()) scan.engines = {options.engines};
  std::vector<std::string> sizes;
  for (const std::size_t size : scan.bytes) sizes.push_back(std::to_string(size));
  if (sizes.empty()) sizes = {options.bytes};
  std::vector<SimOptions> calls;
  for (const std::string_view algorithm : split(options.algorithm, ',')) {
    for (const std::string& topology : scan.topologies) {
      for (const int ranks : scan.ranks) {
        for (const int engines : scan.engines) {
          for (const std::string& size : sizes) {
            calls.push_back(options);
            SimOptions& call = calls.back();
            call.algorithm = algorithm;
            call.topology = topology;
            call.ranks = ranks;
            call.engines = engines;
            call.bytes = size;
          }
        }
      }
    }
  }
  return calls;
}

/// The Trinaryx3 paper's figures 8 and 9: bandwidth by size, a curve for each algorithm.
void draw_bandwidth(const SimOptions& options, const std::vector<SimRow>& rows) {
  CurveChart chart;
  const bool passes_twice = options.collective == "allreduce";
  chart.title = fmt::format("{} on {}, {} engines", options.collective, options.topology, options.engines);
  chart.x_name = "bytes";
  chart.y_name = passes_twice ? "GB/s, 2n/t" : "GB/s, n/t";
  chart.x_is_size = chart.y_is_log = true;
  for (const SimRow& row : rows) {
    if (!std::has_single_bit(row.bytes)) continue;
    const auto found = std::ranges::find(chart.curves, row.algorithm, &Curve::name);
    Curve& curve = found != chart.curves.end() ? *found : chart.curves.emplace_back(Curve{row.algorithm, false, {}});
    curve.points.emplace_back(std::bit_width(row.bytes) - 1, row.more.at("moved_GBps").get<double>());
  }
  if (chart.curves.empty()) invalid("--figure has a place for powers of 2 of bytes, and none has been simulated");
  Output(options.figure).write(draw_curves(chart));
}

/// The cost of each simulation: a curve for the time and one for the memory.
void draw_cost(const SimOptions& options, const std::vector<SimRow>& rows) {
  CurveChart chart;
  chart.title = fmt::format("Simulating {} by {}, {} bytes", options.collective, options.algorithm, options.bytes);
  chart.x_name = "ranks";
  chart.y_name = "s, MiB";
  chart.x_is_log = chart.y_is_log = true;
  chart.curves = {{"processor, s", false, {}}, {"memory, MiB", false, {}}};
  for (const SimRow& row : rows) {
    chart.curves[0].points.emplace_back(row.ranks, std::max(row.more.at("cpu_s").get<double>(), 1e-3));
    chart.curves[1].points.emplace_back(row.ranks, row.more.at("memory_MiB").get<double>());
  }
  if (rows.empty()) invalid("--cost draws what has been simulated, and nothing has been");
  Output(options.cost).write(draw_curves(chart));
}

/// The times of communication alone and of folding alone show how long both were at work at once.
BarChart::Bar split_bar(const std::string& name, double other_us, double alone_us, double folding_us, double time_us) {
  const double overlap_us = std::clamp(alone_us + folding_us - time_us, 0.0, std::min(alone_us, folding_us));
  const double folds_us = std::max(0.0, folding_us - overlap_us);
  return {name, {other_us * 1e-3, (time_us - overlap_us - folds_us) * 1e-3, overlap_us * 1e-3, folds_us * 1e-3}};
}

/// The Trinaryx3 paper's figure 10: a broadcast and a reduce one after the other, and an allreduce, at several speeds
/// of folding.
int draw_split(const SimOptions& options, RowWriter& rows) {
  if (options.collective != "allreduce") invalid("--split is for allreduce, which is a reduce and a broadcast");
  if (options.figure.empty()) invalid("--split draws: --figure is missing");
  const auto simulate = [&](const char* collective, std::optional<double> rate) {
    SimOptions call = options;
    call.collective = collective;
    call.reduce_GBps = rate;
    call.figure.clear();
    const Simulated done = simulate_call(call);
    SimRow row = done.row;
    row.more["reduce_GBps"] = rate ? Json(*rate) : Json(nullptr);
    row.more["folding_us"] = done.folding_us;
    rows.add(row);
    return std::pair(row.time_us, done.folding_us);
  };
  BarChart chart;
  chart.title = fmt::format("{} bytes, {} on {}", options.bytes, options.algorithm, options.topology);
  chart.x_name = "ms";
  chart.part_names = {"broadcast", "communication", "both at once", "folding alone"};
  const double down_us = simulate("broadcast", std::nullopt).first;
  const double up_us = simulate("reduce", std::nullopt).first;
  const double both_us = simulate("allreduce", std::nullopt).first;
  chart.bars.push_back(split_bar("no folding", down_us, up_us, 0, up_us));
  chart.bars.push_back(split_bar("no folding, one call", 0, both_us, 0, both_us));
  for (const double rate : options.split) {
    const auto [reduce_us, folding_us] = simulate("reduce", rate);
    chart.bars.push_back(split_bar(fmt::format("{} GB/s", rate), down_us, up_us, folding_us, reduce_us));
    const auto [allreduce_us, all_folding_us] = simulate("allreduce", rate);
    chart.bars.push_back(split_bar(fmt::format("{} GB/s, one call", rate), 0, both_us, all_folding_us, allreduce_us));
  }
  Output(options.figure).write(draw_bars(chart));
  return kDone;
}

/// Reports the cliffs of a scan. Returns the program's exit code.
int judge(const std::vector<AskedRow>& rows) {
  const Cliffs cliffs = compare_rows(rows);
  if (cliffs.compared == 0) invalid("--cliffs found nothing to compare: scan bytes=1K..1M*2, or ranks=2..64 of a node");
  for (const std::string& line : cliffs.found) fmt::print(stderr, "cliff: {}\n", line);
  fmt::print(stderr, "{} cliffs in {} comparisons\n", cliffs.found.size(), cliffs.compared);
  return cliffs.found.empty() ? kDone : kWrong;
}

}  // namespace

int run_calls(const SimOptions& options, RowWriter& rows) {
  if (!options.split.empty()) return draw_split(options, rows);
  const std::vector<SimOptions> calls = calls_of(options);
  std::vector<SimRow> done;
  std::vector<AskedRow> judged;
  int code = kDone;
  for (const SimOptions& call : calls) {
    try {
      Simulated one = simulate_call(call);
      code = std::max(code, one.code);
      rows.add(one.row);
      if (options.cliffs) judged.push_back({one.row, call.algorithm, read_size("--bytes", call.bytes)});
      done.push_back(std::move(one.row));
    } catch (const Error& error) {
      if (calls.size() == 1 || error.status() != Status::unsupported) throw;
    }
  }
  if (!options.figure.empty()) draw_bandwidth(options, done);
  if (!options.cost.empty()) draw_cost(options, done);
  return options.cliffs ? std::max(code, judge(judged)) : code;
}

}  // namespace torii::tools
