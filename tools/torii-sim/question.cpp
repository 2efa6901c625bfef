// SPDX-License-Identifier: Apache-2.0
// Reads and checks what a simulation is asked for.
#include "tools/torii-sim/question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reduce_kernels/kernels.hpp"
#include "runtime/status.hpp"

namespace torii::tools {
namespace {

[[noreturn]] void invalid(const std::string& text) { throw Error(Status::invalid_argument, text); }

/// Links over which one node can send at the same time: in a mesh, those of a node inside.
int ways_out(const SimOptions& options, const Topology& topology) {
  int links = 0;
  for (int d = 0; d < 3; ++d) {
    const int extent = topology.extents()[static_cast<std::size_t>(d)];
    if (extent > 1) links += extent == 2 && !topology.wraps(d) ? 1 : 2;
  }
  return options.ports ? 1 : links;
}

}  // namespace

Question read_question(const SimOptions& options) {
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
  if (options.watched < 0 || options.watched >= request.topology.ranks()) {
    invalid(fmt::format("--watched is {}; it must be from 0 to {}", options.watched, request.topology.ranks() - 1));
  }
  const auto type = parse_type(options.type);
  if (!type) invalid(fmt::format("--type is '{}'; it must be a type such as f32, i64 or bf16", options.type));
  question.type = *type;
  const auto op = parse_op(options.op);
  if (!op || *op == Op::user)
    invalid(fmt::format("--op is '{}'; it must be an operation such as sum or max", options.op));
  question.op = *op;
  const char* const reason = combines(request.collective) ? kernels::why_not(*op, *type) : nullptr;
  if (reason != nullptr)
    invalid(fmt::format("--op {} is not defined for --type {}: {}", options.op, options.type, reason));
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
    case Collective::scan:
    case Collective::exscan:
      return options.alpha_us + bytes / in_rate;  // the last rank takes a whole vector's worth
    case Collective::allreduce:
      return options.alpha_us + 2 * others / out_rate;
    default:
      return options.alpha_us + others / out_rate;
  }
}

}  // namespace torii::tools
