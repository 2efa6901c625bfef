// SPDX-License-Identifier: Apache-2.0
// The sequences of the tables in docs/benchmarks.md, and random ones.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "perf/common/names.hpp"
#include "perf/sequences/sequence.hpp"

namespace torii::perf {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t end) { return static_cast<std::size_t>(random()) % end; }

std::vector<int> all_of(int ranks) {
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

/// Each power of two is as likely as another one.
std::size_t draw_bytes(Random& random, std::size_t least, std::size_t most) {
  const double share = static_cast<double>(random() >> 11) * 0x1p-53;
  const double low = std::log2(least), high = std::log2(most);
  return static_cast<std::size_t>(std::exp2(low + share * (high - low)));
}

/// Elements of a vector of about so many bytes, or of a block of it.
std::size_t count_of(torii_collective collective, std::size_t bytes, torii_type type, std::size_t members) {
  if (collective == TORII_BARRIER) return 0;
  const std::size_t parts = has_blocks(collective) ? members : 1;
  return std::max<std::size_t>(1, bytes / info(type).size_bytes / parts);
}

/// One collective of f64 with these lengths, in turn; `roots`: another root than the call before.
SequenceSource lengths(std::string name, torii_collective collective, int ranks, std::vector<std::size_t> counts,
                       bool roots) {
  Sequence sequence;
  sequence.teams.push_back(all_of(ranks));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    SequenceCall call;
    call.collective = collective;
    call.count = counts[i];
    call.root = roots ? static_cast<int>(i % static_cast<std::size_t>(ranks)) : 0;
    sequence.calls.push_back(std::move(call));
  }
  return {std::move(name), false, 0, 0, [sequence](int) { return sequence; }};
}

/// 300 calls whose blocks have lengths of their own, each below `bytes`.
SequenceSource unequal(std::string name, torii_collective collective, int ranks, std::size_t bytes, Random random) {
  Sequence sequence;
  sequence.teams.push_back(all_of(ranks));
  const auto members = static_cast<std::size_t>(ranks);
  for (int i = 0; i < 300; ++i) {
    SequenceCall call;
    call.collective = collective;
    call.counts.resize(collective == TORII_ALLTOALL ? members * members : members);
    for (int& count : call.counts) count = static_cast<int>(below(random, bytes / sizeof(double)));
    sequence.calls.push_back(std::move(call));
  }
  return {std::move(name), false, 0, 0, [sequence](int) { return sequence; }};
}

/// Calls of ten kinds, from 1 B to 1 MiB, on two teams of all ranks and on teams of halves.
Sequence draw_random(int ranks, Random random, int calls) {
  constexpr std::array kAll = {TORII_BROADCAST, TORII_REDUCE,  TORII_ALLREDUCE, TORII_ALL_GATHER, TORII_REDUCE_SCATTER,
                               TORII_ALLTOALL,  TORII_SCATTER, TORII_GATHER,    TORII_SCAN,       TORII_BARRIER};
  constexpr std::array kTypes = {TORII_F64, TORII_F32, TORII_I32, TORII_U8};
  Sequence sequence;
  const std::vector<int> all = all_of(ranks);
  sequence.teams = {all, all};
  if (ranks >= 4) {
    sequence.teams.emplace_back(all.begin(), all.begin() + ranks / 2);
    sequence.teams.emplace_back(all.begin() + ranks / 2, all.end());
  }
  for (int i = 0; i < calls; ++i) {
    SequenceCall call;
    call.team = static_cast<int>(below(random, sequence.teams.size()));
    const std::size_t members = sequence.teams[static_cast<std::size_t>(call.team)].size();
    call.collective = kAll[below(random, kAll.size())];
    const std::size_t bytes = draw_bytes(random, 1, std::size_t{1} << 20);
    const auto type = std::find_if(kTypes.begin(), kTypes.end(), [&](torii_type one) {
      return info(one).size_bytes <= std::max<std::size_t>(bytes, 1) && (one == TORII_U8 || below(random, 2) == 0);
    });
    call.type = type == kTypes.end() ? TORII_U8 : *type;
    call.op = below(random, 4) == 0 ? TORII_MAX : TORII_SUM;
    call.count = count_of(call.collective, bytes, call.type, members);
    call.root = has_root(call.collective) ? static_cast<int>(below(random, members)) : 0;
    // MPICH 4.0 of Debian 12 crashes in a reduce in place.
    call.in_place = call.collective == TORII_ALLREDUCE && below(random, 4) == 0;
    sequence.calls.push_back(std::move(call));
  }
  return sequence;
}

/// The calls of a kind of program, with new lengths and roots in each pass.
struct Mix {
  const char* name;
  std::vector<torii_collective> collectives;
  std::size_t bytes_least, bytes_most;
};

std::vector<Mix> all_mixes() {
  const std::vector<torii_collective> all = {TORII_ALLREDUCE,      TORII_BROADCAST, TORII_REDUCE, TORII_ALL_GATHER,
                                             TORII_REDUCE_SCATTER, TORII_ALLTOALL,  TORII_BARRIER};
  return {
      {"panels", {TORII_BROADCAST, TORII_REDUCE}, 8, 8 << 10},  // a factorisation of a matrix
      {"sums", {TORII_ALLREDUCE}, 8, 64 << 10},                 // a solver
      {"all-short", all, 8, 64 << 10},
      {"all-long", all, 64 << 10, 4 << 20},
  };
}

Sequence draw_mix(const Mix& mix, int ranks, Random random, int calls) {
  Sequence sequence;
  sequence.teams.push_back(all_of(ranks));
  for (int i = 0; i < calls; ++i) {
    SequenceCall call;
    call.collective = mix.collectives[below(random, mix.collectives.size())];
    call.type = TORII_F32;
    const std::size_t bytes = draw_bytes(random, mix.bytes_least, mix.bytes_most);
    const auto root = static_cast<int>(below(random, static_cast<std::size_t>(ranks)));
    call.count = count_of(call.collective, bytes, call.type, static_cast<std::size_t>(ranks));
    call.root = has_root(call.collective) ? root : 0;
    sequence.calls.push_back(std::move(call));
  }
  return sequence;
}

/// 400 lengths from 800 B up by 8.
std::vector<std::size_t> many_counts() {
  std::vector<std::size_t> counts(400);
  std::iota(counts.begin(), counts.end(), 100);
  return counts;
}

/// 14 lengths from 800 B to 416 KB, each 1.618 times the one before.
std::vector<std::size_t> long_counts() {
  std::vector<std::size_t> counts;
  for (int i = 0; i < 14; ++i) counts.push_back(static_cast<std::size_t>(std::lround(100 * std::pow(1.618, i))));
  return counts;
}

}  // namespace

std::vector<SequenceSource> own_sequences(int ranks, std::uint64_t seed, int calls) {
  std::vector<SequenceSource> sources;
  const std::vector<std::size_t> same(400, 100), many = many_counts(), few = long_counts();
  sources.push_back(lengths("same", TORII_BROADCAST, ranks, same, false));
  sources.push_back(lengths("broadcast", TORII_BROADCAST, ranks, many, false));
  sources.push_back(lengths("broadcast-roots", TORII_BROADCAST, ranks, many, true));
  sources.push_back(lengths("reduce-roots", TORII_REDUCE, ranks, many, true));
  sources.push_back(lengths("allreduce", TORII_ALLREDUCE, ranks, many, false));
  sources.push_back(lengths("broadcast-long", TORII_BROADCAST, ranks, few, false));
  sources.push_back(lengths("broadcast-long-roots", TORII_BROADCAST, ranks, few, true));
  sources.push_back(lengths("reduce-long-roots", TORII_REDUCE, ranks, few, true));
  sources.push_back(lengths("allreduce-long", TORII_ALLREDUCE, ranks, few, false));
  for (const auto& [name, bytes] : {std::pair{"128", std::size_t{128}}, {"4K", 4 << 10}, {"128K", 128 << 10}}) {
    sources.push_back(unequal(std::string("alltoallv-") + name, TORII_ALLTOALL, ranks, bytes, Random(seed)));
  }
  for (const auto& [name, bytes] : {std::pair{"128", std::size_t{128}}, {"4K", 4 << 10}, {"128K", 128 << 10}}) {
    sources.push_back(unequal(std::string("allgatherv-") + name, TORII_ALL_GATHER, ranks, bytes, Random(seed)));
  }
  sources.push_back(
      {"random", false, 1, 1 << 20, [drawn = draw_random(ranks, Random(seed), calls)](int) { return drawn; }});
  for (const Mix& mix : all_mixes()) {
    sources.push_back({mix.name, true, mix.bytes_least, mix.bytes_most, [mix, ranks, seed, calls](int pass) {
                         return draw_mix(mix, ranks, Random(seed + 1000003 * static_cast<std::uint64_t>(pass)), calls);
                       }});
  }
  return sources;
}

}  // namespace torii::perf
