// SPDX-License-Identifier: Apache-2.0
// Simulates pairwise exchanges by the rules of runtime/topology/network_model.hpp. With sharing `packet` the production
// executor runs instead.
#include "tools/torii-sim/alltoall.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/orders/exchange_lists.hpp"
#include "runtime/base/output.hpp"
#include "runtime/base/status.hpp"
#include "runtime/topology/network_model.hpp"
#include "runtime/topology/routing.hpp"
#include "tools/exit_codes.hpp"
#include "tools/torii-sim/calls.hpp"
#include "tools/torii-sim/clock.hpp"
#include "tools/torii-sim/curves.hpp"
#include "tools/torii-sim/scan.hpp"

namespace torii::tools {
namespace {

constexpr std::array kOrders = {ExchangeOrder::a2a, ExchangeOrder::a2and, ExchangeOrder::a2at_printed,
                                ExchangeOrder::a2at};

/// The flags of alltoall only.
struct AlltoallFlags {
  bool ties = true;
};

/// One simulation; everything else is in the common options.
struct Cell {
  ExchangeOrder order;
  Sharing sharing;
  int engines;
  std::string topology;
  std::size_t bytes;
};

std::vector<ExchangeOrder> read_orders(const std::string& algorithm) {
  if (algorithm == "auto") return {ExchangeOrder::a2at};
  if (algorithm == "all") return {kOrders.begin(), kOrders.end()};
  for (const ExchangeOrder order : kOrders) {
    if (algorithm == name(order)) return {order};
  }
  invalid(
      fmt::format("--algorithm is '{}'; with sharing min and maxmin it must be a2a, a2and, a2at_printed, a2at, all "
                  "or auto (a2at)",
                  algorithm));
}

Topology read_topology(const std::string& text) {
  if (text == "node") {
    invalid("--topology is 'node'; with sharing min and maxmin it must have links, as torus:8x8 or mesh:8x8");
  }
  return Topology::parse(text, ranks_named(text));
}

SimRow simulate(const Cell& cell, const SimOptions& options, const AlltoallFlags& flags) {
  const Topology topology = read_topology(cell.topology);
  if (cell.bytes < static_cast<std::size_t>(topology.ranks())) {
    invalid(fmt::format("--bytes is {}; {} blocks need at least one byte each", cell.bytes, topology.ranks()));
  }
  const double message_bytes = static_cast<double>(cell.bytes) / topology.ranks();
  const double message_us = message_bytes / (options.bandwidth_GBps * 1e3);
  ExchangeRun run;
  run.controllers = cell.engines;
  run.sharing = cell.sharing;
  run.ties = flags.ties;
  run.skew = options.skew_us / message_us;
  run.jitter = options.jitter_us / message_us;
  run.seed = options.seed;
  SimRow row;
  const auto start = std::chrono::steady_clock::now();
  const ExchangeList& list = exchange_list(cell.order, topology, cell.engines);
  row.planning_s = seconds_since(start);
  const auto planned = std::chrono::steady_clock::now();
  const ExchangeTimes times = simulate_exchange(topology, exchange_traffic(topology, list), run);
  row.wall_s = seconds_since(planned);
  const int links = link_count(topology);
  row.collective = "alltoall";
  row.algorithm = name(cell.order);
  row.topology = cell.topology;
  row.ranks = topology.ranks();
  row.engines = cell.engines;
  row.bytes = cell.bytes;
  row.sharing = name(cell.sharing);
  row.time_us = times.time;
  row.bound_us = alltoall_bound(topology);
  row.links_shared = times.links_shared;
  row.links_shared_percent = links > 0 ? 100.0 * times.links_shared / links : 0;
  row.link_bytes_max = static_cast<std::uint64_t>(static_cast<double>(times.link_messages_most) * message_bytes);
  row.height = topology.ranks() > 1 ? 1 : 0;
  return row;
}

/// The A2AT paper's figure 7 for any topology: time over the number of controllers, solid for min and dashed for
/// maxmin.
int draw_figure(const SimOptions& options, const AlltoallFlags& flags, RowWriter& rows) {
  const std::vector<ExchangeOrder> orders = read_orders(options.algorithm == "auto" ? "all" : options.algorithm);
  const Topology topology = read_topology(options.topology);
  const Output figure(options.figure);
  CurveChart chart;
  chart.title = "alltoall on " + options.topology;
  chart.x_name = "controllers";
  chart.y_name = "time (messages on an idle link)";
  chart.level = alltoall_bound(topology);
  chart.level_name = "bound";
  for (const ExchangeOrder order : orders) {
    if (!why_no_exchange_list(order, topology).empty()) continue;
    for (const Sharing sharing : {Sharing::min, Sharing::maxmin}) {
      Curve curve{fmt::format("{}, {}", name(order), name(sharing)), sharing == Sharing::maxmin, {}};
      for (int engines = 1; engines <= 8; ++engines) {
        const Cell cell{order, sharing, engines, options.topology, read_size("--bytes", options.bytes)};
        const SimRow row = simulate(cell, options, flags);
        rows.add(row);
        curve.points.emplace_back(engines, row.time_us);
      }
      chart.curves.push_back(std::move(curve));
    }
  }
  figure.write(draw_curves(chart));
  return kDone;
}

int run_alltoall(const SimOptions& options, const AlltoallFlags& flags, RowWriter& rows) {
  if (options.sharing == "packet") return run_calls(options, rows);
  if (!options.figure.empty()) return draw_figure(options, flags, rows);
  if (options.sharing == "auto") return run_calls(options, rows);
  if (options.cliffs) invalid("--cliffs judges calls; with sharing min and maxmin an alltoall is a list without calls");
  Scan scan = read_scan(options.scan, std::string_view(options.topology).substr(0, options.topology.find(':')));
  if (scan.topologies.empty()) scan.topologies = {options.topology};
  if (scan.engines.empty()) scan.engines = {options.engines};
  if (scan.bytes.empty()) scan.bytes = {read_size("--bytes", options.bytes)};
  const Sharing sharing = options.sharing == "min" ? Sharing::min : Sharing::maxmin;
  const bool is_scan = !options.scan.empty();
  for (const std::string& text : scan.topologies) {
    for (const ExchangeOrder order : read_orders(options.algorithm)) {
      // A scan skips orders that a shape does not have; a single request for one is an error.
      if ((is_scan || options.algorithm == "all") && !why_no_exchange_list(order, read_topology(text)).empty())
        continue;
      for (const int engines : scan.engines) {
        for (const std::size_t bytes : scan.bytes) {
          rows.add(simulate({order, sharing, engines, text, bytes}, options, flags));
        }
      }
    }
  }
  return kDone;
}

}  // namespace

std::function<int(RowWriter&)> add_alltoall(const CommandLine& command, const SimOptions& options) {
  const auto flags = std::make_shared<AlltoallFlags>();
  command.add_off_flag("--no-ties", flags->ties, "the network takes messages half-way round along + only");
  return [flags, &options](RowWriter& rows) { return run_alltoall(options, *flags, rows); };
}

}  // namespace torii::tools
