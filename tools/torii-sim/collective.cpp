// SPDX-License-Identifier: Apache-2.0
// From options to plans, a run of them on virtual time, and the figures of the run.
#include "tools/torii-sim/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "collectives/selection.hpp"
#include "collectives/verify.hpp"
#include "reduce_kernels/kernels.hpp"
#include "runtime/status.hpp"
#include "transports/simulated/run.hpp"

namespace torii::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// Segments per block that `auto` tries.
constexpr std::array<std::size_t, 5> kSegmentsTried = {1, 4, 16, 64, 256};
/// Shared links are counted for plans of up to so many steps of all ranks.
constexpr std::int64_t kStepsMeasuredMost = std::int64_t{1} << 22;

[[noreturn]] void invalid(const std::string& text) { throw Error(Status::invalid_argument, text); }

double seconds_since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

/// What the options ask for, in the library's own terms.
struct Question {
  PlanRequest request;
  std::size_t bytes = 0;
  Type type = Type::f32;
  simulated::NetworkModel network;
};

Question read(const SimOptions& options) {
  Question question;
  PlanRequest& request = question.request;
  request.collective = *parse_collective(options.collective);
  const int ranks = ranks_of(options.topology);
  request.topology = Topology::parse(options.topology, std::max(ranks, 1));
  if (options.root != 0 && !has_root(request.collective)) {
    invalid(fmt::format("--root has no meaning for {}", options.collective));
  }
  if (options.root < 0 || options.root >= request.topology.ranks()) {
    invalid(fmt::format("--root is {}; it must be from 0 to {}", options.root, request.topology.ranks() - 1));
  }
  request.root = options.root;
  const auto type = parse_type(options.type);
  if (!type) invalid(fmt::format("--type is '{}'; it must be a type such as f32, i64 or bf16", options.type));
  question.type = *type;
  if (request.collective != Collective::barrier) {
    const std::size_t parts =
        has_block_per_rank(request.collective) ? static_cast<std::size_t>(request.topology.ranks()) : 1;
    question.bytes = read_size("--bytes", options.bytes) / (parts * size_of(*type)) * (parts * size_of(*type));
  }
  if (options.sharing != "packet") {
    invalid(fmt::format("--sharing is '{}'; {} runs its plan, whose messages are packets: it must be packet",
                        options.sharing, options.collective));
  }
  question.network = {.topology = request.topology,
                      .engines = options.engines,
                      .alpha_us = options.alpha_us,
                      .overhead_us = options.overhead_us,
                      .bandwidth_GBps = options.bandwidth_GBps,
                      .ports = options.ports,
                      .jitter_us = options.jitter_us,
                      .seed = options.seed};
  return question;
}

/// Links over which one node can send at the same time: in a mesh, those of a node inside.
int ways_out(const SimOptions& options, const Topology& topology) {
  int links = 0;
  for (int d = 0; d < 3; ++d) {
    const int extent = topology.extents()[static_cast<std::size_t>(d)];
    if (extent > 1) links += extent == 2 && !topology.wraps(d) ? 1 : 2;
  }
  return options.ports ? 1 : links;
}

/// No algorithm is quicker: one message's latency, and what each rank has to send or receive at least, over all that
/// its engines and links can do at once.
double bound_us(const SimOptions& options, const Question& question) {
  const double ranks = question.request.topology.ranks();
  if (ranks == 1) return 0;
  const int links = ways_out(options, question.request.topology);
  const double bytes_per_us = options.bandwidth_GBps * 1e3;
  const double out_rate = std::min(options.engines, links) * bytes_per_us;
  const double in_rate = links * bytes_per_us;
  const auto bytes = static_cast<double>(question.bytes);
  const double others = bytes * (ranks - 1) / ranks;
  switch (question.request.collective) {
    case Collective::barrier:
      return options.alpha_us;
    case Collective::broadcast:
      return options.alpha_us + bytes / out_rate;
    case Collective::reduce:
      return options.alpha_us + std::max(bytes / in_rate, others / out_rate);
    case Collective::allreduce:
      return options.alpha_us + 2 * others / out_rate;
    default:
      return options.alpha_us + others / out_rate;
  }
}

/// Slots that keep a stream going: a credit comes back after two latencies and some transfers.
int slots_needed(const SimOptions& options, std::size_t segment_bytes) {
  const double transfer_us = static_cast<double>(segment_bytes) / (options.bandwidth_GBps * 1e3) + options.overhead_us;
  const double in_flight = transfer_us > 0 ? 2 * options.alpha_us / transfer_us : 0;
  return 8 * static_cast<int>(std::ceil((std::min(in_flight, 48.0) + 8) / 8));
}

struct Simulated {
  simulated::Outcome outcome;
  Tuning tuning;
  Verdict figures;
  double planning_s = 0;
};

std::int64_t steps_of(const std::vector<Plan>& plans) {
  std::int64_t steps = 0;
  for (const Plan& plan : plans) {
    for (const Lane& lane : plan.lanes) {
      for (const Flow& flow : lane.flows) steps += flow.walk.count;
    }
  }
  return steps;
}

Simulated simulate(const SimOptions& options, const Question& question, const Algorithm& algorithm,
                   const PlanRequest& request) {
  const Clock::time_point begun = Clock::now();
  simulated::Call call;
  call.request = request;
  call.plans = plan_all(algorithm, request);
  Simulated result;
  result.tuning = request.tuning;
  result.planning_s = seconds_since(begun);
  call.shape = simulated::call_shape(request, call.plans.front(), question.type, question.bytes);
  call.network = question.network;
  call.reduce_GBps = combines(request.collective) ? options.reduce_GBps : std::nullopt;
  call.skew_us = options.skew_us;
  result.outcome = simulated::run(call);
  if (steps_of(call.plans) <= kStepsMeasuredMost) result.figures = measure(request, call.plans);
  return result;
}

}  // namespace

int run_collective(const SimOptions& options, RowWriter& rows) {
  const Question question = read(options);
  PlanRequest request = question.request;
  const Clock::time_point begun = Clock::now();
  Forced forced;
  forced.algorithm = options.algorithm;
  const Selected selected = select(TuneTable::built_in(), forced, request, question.bytes);
  const Algorithm& algorithm = *selected.algorithm;
  request = selected.request;
  const std::size_t blocks = static_cast<std::size_t>(algorithm.plan(request, 0).blocks);
  std::vector<std::size_t> segments;
  if (options.segment == "auto") {
    for (const std::size_t count : kSegmentsTried) {
      const std::size_t bytes = (question.bytes / blocks + count - 1) / count;
      segments.push_back(std::max<std::size_t>((bytes + 63) / 64 * 64, 64));
    }
    segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
  } else {
    segments.push_back(read_size("--segment", options.segment));
  }
  std::optional<Simulated> best;
  for (const std::size_t segment_bytes : segments) {
    request.tuning.segment_bytes = segment_bytes;
    request.tuning.slots = options.slots != 0 ? options.slots : slots_needed(options, segment_bytes);
    request.tuning.window = options.window != 0 ? options.window : request.tuning.slots;
    Simulated one = simulate(options, question, algorithm, request);
    fmt::print(stderr, "segment {} slots {} time {}\n", segment_bytes, request.tuning.slots, static_cast<double>(one.outcome.time) / 1e6);
    if (!best || one.outcome.time < best->outcome.time) best = std::move(one);
  }
  SimRow row;
  row.collective = options.collective;
  row.algorithm = std::string(algorithm.name);
  row.topology = request.topology.text();
  row.ranks = request.topology.ranks();
  row.engines = options.engines;
  row.bytes = question.bytes;
  row.sharing = options.sharing;
  row.time_us = static_cast<double>(best->outcome.time) / simulated::kPicosecondsPerMicrosecond;
  row.bound_us = bound_us(options, question);
  row.links_shared = best->figures.links_shared;
  row.links_shared_percent = best->figures.links_shared_percent;
  row.height = best->figures.height;
  row.link_bytes_max = *std::ranges::max_element(best->outcome.link_bytes);
  row.planning_s = best->planning_s;
  row.wall_s = seconds_since(begun) - best->planning_s;
  row.more["segment_bytes"] = best->tuning.segment_bytes;
  row.more["slots"] = best->tuning.slots;
  row.more["window"] = best->tuning.window;
  row.more["messages"] = best->outcome.messages;
  row.more["GBps"] = 2 * static_cast<double>(row.bytes) / row.time_us / 1e3;
  rows.add(row);
  return 0;
}

}  // namespace torii::tools
