// SPDX-License-Identifier: Apache-2.0
// Calls as programs make them: each has another length, another root, or another collective than the call before.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace torii::perf {

/// One call, the same on all ranks.
struct SequenceCall {
  torii_collective collective = TORII_BARRIER;
  torii_type type = TORII_F64;
  torii_op op = TORII_SUM;
  int team = 0;           ///< of Sequence::teams
  std::size_t count = 0;  ///< elements; of a block, where there is one for each rank
  int root = 0;           ///< a member of the team
  bool in_place = false;  ///< allreduce, reduce, scan, exscan: the input is the result
  /// Elements of blocks with lengths of their own: from member i to member j at [i * members + j] of an alltoall, of
  /// member i's block at [i] of an all_gather, a gather and a scatter. Empty: blocks are equal.
  std::vector<int> counts;
};

struct Sequence {
  std::vector<std::vector<int>> teams;  ///< ranks of the members, ascending
  std::vector<SequenceCall> calls;
};

/// Where the calls of each pass come from: the same ones in every pass, or fresh ones of the same kind.
struct SequenceSource {
  std::string name;
  bool is_fresh = false;
  std::size_t bytes_least = 0, bytes_most = 0;  ///< of vectors; 0: not drawn
  std::function<Sequence(int pass)> pass;
};

/// The sequences that the program has itself; equal arguments give equal calls. `calls` of each mix.
std::vector<SequenceSource> own_sequences(int ranks, std::uint64_t seed, int calls);

/// Calls that record_calls.cpp recorded and merge_calls put in order. Throws Failure(kBadCommandLine), with the number
/// of the line, where the file is none or needs other than `ranks` ranks.
SequenceSource recorded_sequence(const std::string& path, int ranks);

}  // namespace torii::perf
