// SPDX-License-Identifier: Apache-2.0
// The cells of results.txt: calls of a forced algorithm over shared memory with ranks as threads, and the same calls in
// the simulator. Operands come from a hash of (seed, rank, index).
#include <xxhash.h>

#include <cstring>
#include <map>

#include "collectives/proof/verify.hpp"
#include "reduce_kernels/kernels.hpp"
#include "runtime/base/status.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/golden/cells.hpp"
#include "tests/golden/plan_digest.hpp"
#include "tests/golden/shapes.hpp"
#include "tools/operands.hpp"
#include "tools/simulation/run.hpp"

namespace torii::golden {
namespace {

constexpr std::uint64_t kSeed = 11;
constexpr std::size_t kElements[] = {1, 1000, 100'003};
constexpr int kRanksMost = 8;
constexpr std::size_t kElementsMost = kElements[2] + kRanksMost;  // blocks are rounded up
constexpr Type kTypes[] = {Type::f32, Type::f16, Type::i64};

using Vector = std::vector<std::byte>;

struct ResultCell {
  PlanRequest request;
  Type type = Type::f32;
  std::size_t elements = 1;  ///< the key's number; a vector of blocks has as many or a few more

  std::size_t ranks() const { return static_cast<std::size_t>(request.topology.ranks()); }
  /// As torii_call counts: elements of the vector, or of one rank's block.
  std::size_t count() const {
    return has_block_per_rank(request.collective) ? (elements + ranks() - 1) / ranks() : elements;
  }
  std::size_t total_bytes() const {
    return count() * size_of(type) * (has_block_per_rank(request.collective) ? ranks() : 1);
  }
  std::size_t block_bytes() const { return total_bytes() / ranks(); }
};

std::map<std::pair<Type, int>, Vector> all_operands() {
  std::map<std::pair<Type, int>, Vector> operands;
  for (const Type type : kTypes) {
    for (int rank = 0; rank < kRanksMost; ++rank) {
      Vector& operand = operands[{type, rank}];
      operand.resize(kElementsMost * size_of(type));
      fill_operand(type, kSeed, rank, 0, kElementsMost, operand.data());
    }
  }
  return operands;
}

/// A longer vector of a rank begins with the elements of a shorter one, so each operand is made once.
const Vector& operand_of(Type type, int rank) {
  static const std::map<std::pair<Type, int>, Vector> operands = all_operands();
  return operands.at({type, rank});
}

/// The part of `result` that the collective defines on `rank`. `result` has room for the whole vector.
std::span<const std::byte> promised(const ResultCell& cell, std::size_t rank, std::span<const std::byte> result) {
  const Collective collective = cell.request.collective;
  const bool is_root = static_cast<int>(rank) == cell.request.root;
  if (collective == Collective::reduce && !is_root) return {};
  if (collective == Collective::broadcast && is_root) return {};
  if (collective == Collective::exscan && rank == 0) return {};
  if (collective == Collective::reduce_scatter) return result.subspan(rank * cell.block_bytes(), cell.block_bytes());
  return result.first(cell.total_bytes());
}

std::uint64_t digest_of_rank(const ResultCell& cell, std::size_t rank, const Vector& result) {
  const std::span<const std::byte> part = promised(cell, rank, result);
  return XXH3_64bits(part.data(), part.size());
}

std::string digest_of_ranks(const std::vector<std::uint64_t>& digests) {
  Bytes bytes;
  for (const std::uint64_t digest : digests) bytes.number(static_cast<std::int64_t>(digest));
  return hexadecimal(bytes.digest());
}

/// The calls of one team: one algorithm, topology and determinism.
struct TeamCells {
  const Algorithm* algorithm = nullptr;
  Determinism determinism = Determinism::run;
  std::vector<ResultCell> cells = {};
  std::vector<std::vector<std::uint64_t>> digests = {};  ///< over shared memory, by cell and rank
};

/// One rank's call through the public interface. The result has room for the whole vector.
std::uint64_t run_call(torii_team* team, const ResultCell& cell) {
  const auto rank = static_cast<std::size_t>(torii_team_rank(team));
  const Collective collective = cell.request.collective;
  const std::byte* input = operand_of(cell.type, static_cast<int>(rank)).data();
  Vector result(cell.total_bytes());
  if (collective == Collective::broadcast && static_cast<int>(rank) == cell.request.root) {
    std::memcpy(result.data(), input, result.size());
  }
  if (collective == Collective::all_gather) input += rank * cell.block_bytes();
  std::byte* const place = result.data() + (collective == Collective::reduce_scatter ? rank * cell.block_bytes() : 0);
  const torii_call call = make_call(static_cast<torii_collective>(collective), input, place, cell.count(),
                                    static_cast<torii_type>(cell.type), TORII_SUM, cell.request.root);
  EXPECT_EQ(torii_run(team, &call), TORII_OK) << torii_last_error();
  return digest_of_rank(cell, rank, result);
}

/// One rank's part of a team's calls.
void run_team(torii_context* context, std::size_t rank, TeamCells& calls) {
  const std::string topology = calls.cells.front().request.topology.text();
  const std::string algorithm(calls.algorithm->name);
  const std::string determinism(name(calls.determinism));
  torii_team_options options = {};
  options.size = sizeof(options);
  options.topology = topology.c_str();
  options.algorithm = algorithm.c_str();
  options.determinism = determinism.c_str();
  torii_team* team = nullptr;
  EXPECT_EQ(torii_team_create(context, &options, &team), TORII_OK) << torii_last_error();
  if (team == nullptr) return;
  for (std::size_t i = 0; i < calls.cells.size(); ++i) calls.digests[i][rank] = run_call(team, calls.cells[i]);
  EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
}

/// Runs all teams in one context, since a context takes longer than a team's calls.
void run_over_shared_memory(int ranks, std::vector<TeamCells>& teams) {
  for (TeamCells& calls : teams) {
    calls.digests.assign(calls.cells.size(), std::vector<std::uint64_t>(static_cast<std::size_t>(ranks)));
  }
  tests::ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=1G\nTIMEOUT=30";
  tests::run_as_threads(options, [&](torii_context* context, torii_team* all) {
    const auto rank = static_cast<std::size_t>(torii_team_rank(all));
    for (TeamCells& calls : teams) run_team(context, rank, calls);
  });
}

/// The simulator uses the plain reference kernels, other segments, and random delays; bits depend on none of these.
std::string in_simulator(const Algorithm& algorithm, const ResultCell& cell) {
  simulated::Call call;
  call.request = cell.request;
  call.plans = plan_all(algorithm, cell.request);
  call.shape = simulated::call_shape(cell.request, call.plans.front(), cell.type, cell.total_bytes());
  if (combines(cell.request.collective)) {
    call.shape.fold = kernels::find(Op::sum, cell.type, kernels::Isa::reference);
  }
  call.network.topology = cell.request.topology;
  call.network.jitter_us = 5;
  if (cell.request.wide_wire) call.widening = widening_of(cell.type);
  call.fill = [&](int rank, std::byte* out) {
    std::memcpy(out, operand_of(cell.type, rank).data(), cell.total_bytes());
  };
  const std::vector<Vector> results = simulated::run(call).results;
  std::vector<std::uint64_t> digests;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    digests.push_back(digest_of_rank(cell, rank, results[rank]));
  }
  return digest_of_ranks(digests);
}

/// The longest vectors of most collectives are of one type, since they take nearly all of the time.
bool is_asked(Collective collective, Type type, std::size_t elements) {
  // Data that is only moved has no order, so one type and one length are enough.
  if (!combines(collective)) return type == Type::i64 && elements == 1000;
  return collective == Collective::allreduce || type == Type::f32 || elements != kElements[2];
}

std::vector<ResultCell> cells_of(const Algorithm& algorithm, const NamedShape& shape, Determinism determinism) {
  std::vector<ResultCell> cells;
  for (const Collective collective :
       {Collective::reduce, Collective::allreduce, Collective::reduce_scatter, Collective::scan, Collective::exscan,
        Collective::broadcast, Collective::all_gather, Collective::alltoall}) {
    for (const Type type : kTypes) {
      for (const std::size_t elements : kElements) {
        if (!is_asked(collective, type, elements)) continue;
        ResultCell cell;
        cell.request.collective = collective;
        cell.request.topology = shape.topology;
        cell.request.root = has_root(collective) ? shape.topology.ranks() - 1 : 0;
        cell.request.determinism = determinism;
        cell.request.wide_wire = type == Type::f16 && combines(collective) && determinism == Determinism::canonical;
        cell.request.tuning = {.segment_bytes = 8192, .slots = 8, .window = 4};
        cell.type = type;
        cell.elements = elements;
        if (algorithm.why_not(cell.request).empty()) cells.push_back(cell);
      }
    }
  }
  return cells;
}

std::string key_of(const NamedShape& shape, const TeamCells& calls, const ResultCell& cell) {
  return std::string(calls.algorithm->name) + " " + shape.name + " " + std::string(name(calls.determinism)) + " " +
         std::string(name(cell.request.collective)) + " " + std::string(name(cell.type)) + " " +
         std::to_string(cell.elements);
}

void append_shape(const NamedShape& shape, Lines& lines) {
  std::vector<TeamCells> teams;
  for (const Algorithm& algorithm : catalogue()) {
    for (const Determinism determinism : {Determinism::run, Determinism::canonical}) {
      std::vector<ResultCell> cells = cells_of(algorithm, shape, determinism);
      if (!cells.empty()) teams.push_back({&algorithm, determinism, std::move(cells)});
    }
  }
  run_over_shared_memory(shape.topology.ranks(), teams);
  for (const TeamCells& calls : teams) {
    for (std::size_t i = 0; i < calls.cells.size(); ++i) {
      const std::string shared = digest_of_ranks(calls.digests[i]);
      const std::string simulated = in_simulator(*calls.algorithm, calls.cells[i]);
      lines.push_back({key_of(shape, calls, calls.cells[i]),
                       shared == simulated ? simulated : "shared " + shared + ", simulated " + simulated});
    }
  }
}

}  // namespace

Lines result_lines() {
  Lines lines;
  for (const auto& [topology, ranks] :
       {std::pair{"node", 2}, std::pair{"node", 3}, std::pair{"node", 4}, std::pair{"node", 8},
        std::pair{"node:2*2", 4}, std::pair{"torus:3x2", 6}, std::pair{"torus:2x2x2", 8}}) {
    append_shape(shape_of(topology, ranks), lines);
  }
  return lines;
}

}  // namespace torii::golden
