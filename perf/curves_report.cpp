// SPDX-License-Identifier: Apache-2.0
// curves_report: draws the JSON lines of curves_perf, a panel per topology and a line per algorithm and engines.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "perf/common/chart.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/program.hpp"

namespace torii::perf {
namespace {

using Json = nlohmann::ordered_json;
using Name = std::tuple<std::string, int>;   ///< algorithm, engines
using Place = std::tuple<int, std::string>;  ///< ranks, topology

struct Curves {
  std::string title;
  std::vector<Name> names;  ///< in order of appearance
  std::map<Place, std::map<size_t, std::map<Name, double>>> us;
};

Curves read(const std::string& path) {
  Curves curves;
  read_json_lines(path, [&](const Json& json) {
    const Name name = {json.at("algorithm"), json.at("engines")};
    if (std::find(curves.names.begin(), curves.names.end(), name) == curves.names.end()) curves.names.push_back(name);
    const Place place = {json.at("ranks"), json.at("topology")};
    curves.us[place][json.at("bytes")][name] = json.at("time_us_median");
    curves.title = fmt::format("allreduce, torii {} commit {}, {} memory, {}", json.at("version").get<std::string>(),
                               json.at("commit").get<std::string>(), json.at("memory").get<std::string>(),
                               json.at("host").get<std::string>());
  });
  if (curves.names.empty()) throw Failure(kBadCommandLine, "'" + path + "' has no results");
  return curves;
}

/// A colour per algorithm; with more than one engine the line is dashed.
std::vector<Series> make_series(const Curves& curves) {
  constexpr std::array kColors = {"#c0392b", "#2471a3", "#1e8449", "#9a7d0a", "#6c3483", "#566573"};
  std::vector<std::string> algorithms;
  std::vector<Series> series;
  for (const auto& [algorithm, engines] : curves.names) {
    auto at = std::find(algorithms.begin(), algorithms.end(), algorithm);
    if (at == algorithms.end()) at = algorithms.insert(algorithms.end(), algorithm);
    const auto color = static_cast<size_t>(at - algorithms.begin()) % kColors.size();
    series.push_back(
        {fmt::format("{}, {} engine{}", algorithm, engines, engines == 1 ? "" : "s"), kColors[color], engines > 1});
  }
  return series;
}

std::vector<Panel> make_panels(const Curves& curves) {
  std::vector<Panel> panels;
  for (const auto& [place, sizes] : curves.us) {
    const auto& [ranks, topology] = place;
    Panel panel{"allreduce", static_cast<int>(panels.size()), fmt::format("{} ranks, {}", ranks, topology), {}};
    for (const auto& [bytes, times] : sizes) {
      ChartPoint point{bytes, {}};
      for (const Name& name : curves.names) {
        const auto found = times.find(name);
        point.values.push_back(found == times.end() ? 0 : found->second);
      }
      panel.points.push_back(std::move(point));
    }
    panels.push_back(std::move(panel));
  }
  return panels;
}

int report(int argc, char** argv) {
  std::string input, svg;
  const CommandLine app("Draws the JSON lines of curves_perf.");
  app.add_option("input", input, "JSON lines of curves_perf").required();
  app.add_option("--svg", svg, "draw into this file").required();
  if (!parse_command_line(app, argc, argv, "curves_report --svg curves.svg curves.json")) return kOk;
  const Curves curves = read(input);
  Output(svg).write(draw_chart(curves.title, Scale::microseconds, make_series(curves), make_panels(curves)));
  return kOk;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  return torii::perf::run_program(argv, [&] { return torii::perf::report(argc, argv); });
}
