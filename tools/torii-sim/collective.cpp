// SPDX-License-Identifier: Apache-2.0
// From options to plans, their runs on virtual time, and the figures of the best one.
#include "tools/torii-sim/collective.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/selection.hpp"
#include "collectives/trees/trees.hpp"
#include "reduce_kernels/kernels.hpp"
#include "runtime/base/output.hpp"
#include "runtime/base/status.hpp"
#include "tools/exit_codes.hpp"
#include "tools/operands.hpp"
#include "tools/simulation/steady.hpp"
#include "tools/torii-sim/clock.hpp"
#include "tools/torii-sim/data.hpp"
#include "tools/torii-sim/pictures.hpp"
#include "tools/torii-sim/question.hpp"
#include "tools/torii-sim/spending.hpp"
#include "tools/torii-sim/synthetic_node.hpp"

namespace torii::tools {
namespace {

/// Segments per block that `auto` tries.
constexpr std::array<std::size_t, 5> kSegmentsTried = {1, 4, 16, 64, 256};
/// Shared links are counted for plans of up to this many steps of all ranks.
constexpr std::int64_t kStepsMeasuredMost = std::int64_t{1} << 22;
/// After this time the progress of the trials is printed, if stderr is a terminal.
constexpr double kPatience_s = 5;

/// One way of running the call, and its result.
struct Trial {
  const Algorithm* algorithm = nullptr;
  PlanRequest request;
  simulated::SteadyOutcome run;
  simulated::Time time = 0;
  std::vector<Plan> plans;
  double planning_s = 0;
};

/// The slots that keep a stream moving: a credit comes back after two latencies and some transfers, and a rank of a
/// tree that is far ahead of its siblings has to wait for them.
int slots_for(const SimOptions& options, std::size_t segment_bytes) {
  if (options.slots != 0) return options.slots;
  const double transfer_us = static_cast<double>(segment_bytes) / (options.bandwidth_GBps * 1e3) + options.overhead_us;
  return transfer_us > 16 * options.alpha_us ? 16 : 64;
}

/// Segments of a lane in flight; for an alltoall entries, as many as there are engines.
int window_for(const SimOptions& options, const PlanRequest& request) {
  if (options.window != 0) return options.window;
  return is_personalised(request.collective) ? options.engines : std::min(4, request.tuning.slots);
}

Trial simulate(const SimOptions& options, const Question& question, const Algorithm& algorithm,
               const PlanRequest& request) {
  Trial trial;
  trial.algorithm = &algorithm;
  trial.request = request;
  const Clock::time_point begun = Clock::now();
  simulated::Call call;
  call.request = request;
  call.plans = plan_all(algorithm, request);
  trial.planning_s = seconds_since(begun);
  call.shape = simulated::call_shape(request, call.plans.front(), question.type, question.bytes);
  call.network = question.network;
  call.skew_us = options.skew_us;
  if (!options.svg_time_line.empty()) call.watched = options.watched;
  if (combines(request.collective)) {
    call.reduce_GBps = options.reduce_GBps;
    call.shape.fold = kernels::find(question.op, question.type, kernels::Isa::reference);
  }
  if (options.data) {
    call.fill = [&](int rank, std::byte* operand) {
      fill_operand(question.type, options.seed, rank, 0, question.bytes / size_of(question.type), operand);
    };
  }
  if (options.every_segment || call.watched >= 0) {
    trial.run.outcome = simulated::run(call);
    trial.run.segments_run = call.shape.layout.segments();
  } else {
    trial.run = simulated::run_steady(call, question.bytes);
  }
  trial.plans = std::move(call.plans);
  trial.time = trial.run.outcome.time;
  return trial;
}

/// The same without overlap: everything moves up the trees first, a reduce and then a broadcast.
Trial simulate_apart(const SimOptions& options, const Question& question, const Algorithm& algorithm,
                     PlanRequest request) {
  request.collective = Collective::reduce;
  if (const std::string reason = algorithm.why_not(request); !reason.empty()) {
    throw Error(Status::invalid_argument,
                "--no-overlap runs an allreduce as a reduce and then a broadcast, but " + reason);
  }
  Trial up = simulate(options, question, algorithm, request);
  request.collective = Collective::broadcast;
  const Trial down = simulate(options, question, algorithm, request);
  up.time += down.time;
  up.planning_s += down.planning_s;
  up.run.outcome.messages += down.run.outcome.messages;
  for (std::size_t link = 0; link < up.run.outcome.link_bytes.size(); ++link) {
    up.run.outcome.link_bytes[link] += down.run.outcome.link_bytes[link];
  }
  return up;
}

Trial simulate_once(const SimOptions& options, const Question& question, const Algorithm& algorithm,
                    const PlanRequest& request) {
  const bool apart = !options.overlap && request.collective == Collective::allreduce;
  return apart ? simulate_apart(options, question, algorithm, request)
               : simulate(options, question, algorithm, request);
}

std::vector<std::size_t> segments_to_try(const SimOptions& options, const Question& question, int blocks) {
  if (options.segment != "auto") return {std::max<std::size_t>(read_size("--segment", options.segment), 64)};
  std::vector<std::size_t> segments;
  const std::size_t block_bytes = question.bytes / static_cast<std::size_t>(blocks);
  for (const std::size_t count : kSegmentsTried) {
    const std::size_t bytes = (block_bytes + count - 1) / count;
    segments.push_back(std::max<std::size_t>((bytes + 63) / 64 * 64, 64));
  }
  segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
  return segments;
}

/// The least time of a run of trinaryx3 with such segments: a full segment near the last one leaves a leaf after the
/// earlier ones, and moves up the lowest tree, in an allreduce also down. 0 for other algorithms.
double least_us(const SimOptions& options, const Question& question, const Algorithm& algorithm,
                const PlanRequest& request) {
  const bool is_tree = request.topology.kind() == Topology::Kind::tree;  // its links differ
  if (algorithm.name != "trinaryx3" || request.collective == Collective::barrier || is_tree) return 0;
  const std::shared_ptr<const TreeTable> table = find_trees(request);
  const std::vector<Tree>& trees = table->trees;
  const int height = std::ranges::min(trees, {}, [](const Tree& tree) { return tree.height(); }).height();
  const double hops = request.collective == Collective::allreduce ? 2.0 * height : height;
  const std::size_t block_bytes = question.bytes / trees.size();
  const double transfer_us = static_cast<double>(request.tuning.segment_bytes) / (options.bandwidth_GBps * 1e3);
  // A block of a single segment moves the whole way as one.
  if (block_bytes <= request.tuning.segment_bytes) {
    return hops * (options.alpha_us + static_cast<double>(block_bytes) / (options.bandwidth_GBps * 1e3));
  }
  const double before = static_cast<double>(block_bytes / request.tuning.segment_bytes) - 3;
  return before < 0 ? 0 : before * transfer_us + hops * (options.alpha_us + transfer_us);
}

/// The fastest of the segments to try, the shortest first: it is mostly the best, and longer ones that cannot be better
/// need not run.
Trial best_trial(const SimOptions& options, const Question& question, const Selected& selected) {
  const Clock::time_point begun = Clock::now();
  PlanRequest request = selected.request;
  request.tuning.common_root = options.common_root;
  if (options.radix != 0) request.tuning.radix = options.radix;
  const int blocks = selected.algorithm->plan(request, 0).blocks;
  const double searching_s = seconds_since(begun);  // later plans reuse the first plan's search
  std::optional<Trial> best;
  if (options.segment == "table") return simulate_once(options, question, *selected.algorithm, request);
  std::vector<std::size_t> segments = segments_to_try(options, question, blocks);
  std::ranges::reverse(segments);
  for (const std::size_t segment_bytes : segments) {
    request.tuning.segment_bytes = segment_bytes;
    request.tuning.slots = slots_for(options, segment_bytes);
    request.tuning.window = window_for(options, request);
    const double least = least_us(options, question, *selected.algorithm, request);
    if (best && least * simulated::kPicosecondsPerMicrosecond > static_cast<double>(best->time)) continue;
    Trial trial = simulate_once(options, question, *selected.algorithm, request);
    if (isatty(STDERR_FILENO) != 0 && seconds_since(begun) > kPatience_s) {
      fmt::print(stderr, "segment {}: {:.1f} us\n", segment_bytes,
                 static_cast<double>(trial.time) / simulated::kPicosecondsPerMicrosecond);
    }
    trial.planning_s += searching_s;
    if (!best || trial.time < best->time) best = std::move(trial);
  }
  return std::move(*best);
}

/// The figures of the plans themselves; none if they have too many steps.
Verdict figures_of(const PlanRequest& request, const Trial& trial) {
  std::int64_t steps = 0;
  for (const Plan& plan : trial.plans) {
    for (const Lane& lane : plan.lanes) {
      for (const Flow& flow : lane.flows) steps += flow.walk.count;
    }
  }
  return steps <= kStepsMeasuredMost ? measure(request, trial.plans) : Verdict{};
}

/// The height of the highest tree if there are trees, otherwise messages one after the other.
int height_of(const PlanRequest& request, const Trial& trial, const Verdict& figures) {
  if (trial.algorithm->name != "trinaryx3") return figures.height;
  int height = 0;
  for (const Tree& tree : find_trees(request)->trees) height = std::max(height, tree.height());
  return height;
}

/// The folding time of the rank that folds most.
double folding_us(const SimOptions& options, const Question& question, const Trial& trial) {
  if (!options.reduce_GBps || !combines(question.request.collective)) return 0;
  const Layout layout = simulated::call_shape(trial.request, trial.plans.front(), question.type, question.bytes).layout;
  std::vector<double> block_bytes(static_cast<std::size_t>(layout.blocks()), 0);
  for (int block = 0; block < layout.blocks(); ++block) {
    for (std::int64_t segment = 0; segment < layout.segments(); ++segment) {
      block_bytes[static_cast<std::size_t>(block)] += static_cast<double>(layout.segment_length_bytes(block, segment));
    }
  }
  double most = 0;
  for (const Plan& plan : trial.plans) {
    double folded = 0;
    for (const Lane& lane : plan.lanes) {
      for (const Flow& flow : lane.flows) {
        if (flow.sources.size() < 2) continue;
        for (int visit = 0; visit < flow.walk.count; ++visit) {
          folded += static_cast<double>(flow.sources.size() - 1) *
                    block_bytes[static_cast<std::size_t>(flow.walk.block(visit))];
        }
      }
    }
    most = std::max(most, folded);
  }
  return most / (*options.reduce_GBps * 1e3);
}

/// Real vectors that do not fit would end the program without a message when they are touched.
void check_memory(const SimOptions& options, const Question& question) {
  constexpr double kVectors = 3;  // per rank: operand, result, and the result of the best trial so far
  constexpr double kGiB = 1U << 30;
  const double needed = kVectors * question.request.topology.ranks() * static_cast<double>(question.bytes);
  const double there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (!options.data || needed <= there) return;
  throw Error(Status::no_resource,
              fmt::format("--data with {} bytes on {} ranks takes {:.1f} GiB of memory, and this machine has {:.1f}; "
                          "without --data vectors take none",
                          question.bytes, question.request.topology.ranks(), needed / kGiB, there / kGiB));
}

}  // namespace

Simulated simulate_call(const SimOptions& options) {
  const double cpu_s = spending().cpu_s;
  const Question question = read_question(options);
  check_memory(options, question);
  const Clock::time_point begun = Clock::now();
  const Selected selected = select(TuneTable::built_in(), {.algorithm = options.algorithm}, question.request,
                                   question.bytes, !options.topology.starts_with(kSyntheticNode));
  const Trial best = best_trial(options, question, selected);
  const double wall_s = seconds_since(begun) - best.planning_s;
  const PlanRequest& request = best.request;
  const Verdict figures = figures_of(request, best);
  Simulated result;
  SimRow& row = result.row;
  row.collective = options.collective;
  row.algorithm = std::string(best.algorithm->name);
  row.topology = request.topology.text();
  row.ranks = request.topology.ranks();
  row.engines = options.engines;
  row.bytes = question.bytes;
  row.sharing = options.sharing == "auto" ? "packet" : options.sharing;
  row.time_us = static_cast<double>(best.time) / simulated::kPicosecondsPerMicrosecond;
  row.bound_us = bound_us(options, question);
  row.links_shared = figures.links_shared;
  row.links_shared_percent = figures.links_shared_percent;
  row.link_bytes_max = *std::ranges::max_element(best.run.outcome.link_bytes);
  row.height = height_of(request, best, figures);
  row.planning_s = best.planning_s;
  row.wall_s = wall_s;
  row.more["segment_bytes"] = request.tuning.segment_bytes;
  row.more["slots"] = request.tuning.slots;
  row.more["window"] = request.tuning.window;
  constexpr std::array<const char*, 3> kSteady = {"none", "periodic", "mean"};
  row.more["steady"] = kSteady[static_cast<std::size_t>(best.run.steady)];
  row.more["segments_run"] = best.run.segments_run;
  row.more["messages"] = best.run.outcome.messages;
  const double passes = question.request.collective == Collective::allreduce ? 2 : 1;
  row.more["moved_GBps"] = row.time_us > 0 ? passes * static_cast<double>(row.bytes) / row.time_us / 1e3 : 0;
  Compared compared;
  if (options.data && request.collective != Collective::barrier) {
    compared = compare({request.collective, request.root, question.type, options.seed}, best.run.outcome.results);
    row.more["wrong"] = compared.wrong;
    row.more["hash"] = fmt::format("{:016x}", compared.hash);
  }
  const Spending spent = spending();
  row.more["cpu_s"] = spent.cpu_s - cpu_s;
  row.more["memory_MiB"] = spent.memory_MiB;
  result.folding_us = folding_us(options, question, best);
  const simulated::Outcome& outcome = best.run.outcome;
  if (!options.svg_links.empty() && request.topology.kind() != Topology::Kind::torus) {
    throw Error(Status::invalid_argument, "--svg-links draws tori and meshes, not " + request.topology.text());
  }
  if (!options.svg_links.empty()) {
    Output(options.svg_links).write(draw_links(request.topology, outcome.link_bytes));
  }
  if (!options.svg_time_line.empty()) {
    Output(options.svg_time_line).write(draw_time_line(options.watched, options.engines, outcome.uses));
  }
  result.code = compared.wrong == 0 ? kDone : kWrong;
  return result;
}

}  // namespace torii::tools
