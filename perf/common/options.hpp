// SPDX-License-Identifier: Apache-2.0
// The command line that all perf binaries share.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace torii::perf {

/// `shared` is no memory of the library: a mapping of the benchmark's own, where ranks read each other's vectors.
enum class Memory { malloced, allocated, adopted, shared };
enum class Timing { isolated, loop };

/// What a run shall do. Settings of the library are not interpreted here: they are handed on by name.
struct Options {
  torii_collective collective = TORII_ALLREDUCE;
  size_t begin_bytes = 8;
  size_t end_bytes = size_t{32} << 20;
  size_t factor = 4;
  size_t step_bytes = 0;  ///< 0: multiply by factor
  int iterations = 0;     ///< in each block; 0: as many as fit into a block's time
  int warm_up = 5;
  std::vector<torii_type> types = {TORII_F32};
  std::vector<torii_op> ops = {TORII_SUM};
  int root = 0;
  size_t leaves = 0;  ///< 0: an operand for each rank; otherwise so many leaves, dealt to the ranks in order
  bool check = true;
  int ranks = 0;  ///< start so many here; 0: join what the launcher offers
  Memory memory = Memory::malloced;
  bool in_place = false;
  bool bytes_per_pair = false;  ///< sizes are those of one rank's block for another
  Timing timing = Timing::isolated;
  bool hash = false;
  uint64_t seed = 1;
  std::string json;
  std::string csv;
  std::string topology;     ///< as asked, for the report
  std::string determinism;  ///< as asked, for the report
  std::string settings;     ///< "NAME=value" lines for the library
};

/// Reads a command line. Prints and returns false for --help and --version; throws Failure for a bad one.
bool parse_options(torii_collective collective, int argc, char** argv, Options& options);

/// The arguments without --ranks: what every started rank is given.
std::vector<std::string> arguments_for_ranks(int argc, char** argv);

const char* name(Memory memory);
const char* name(Timing timing);

}  // namespace torii::perf
