// SPDX-License-Identifier: Apache-2.0
// The request of `torii-info tune --check` or `-o FILE`: what to measure, and what this machine allows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/torii-info/tune_lines.hpp"

namespace torii::tools {

struct TuneRequest {
  bool check = false;
  std::string output;  ///< where the tune file goes; "-" is stdout
  double minutes = 5;
  int passes = 0;              ///< of --check; 0: 3
  std::string ranks;           ///< "2,4,8"; empty: 2, 4, 8 and so on up to the CPUs
  bool oversubscribe = false;  ///< ranks may outnumber the CPUs
  std::string collectives = "barrier,broadcast,reduce,allreduce,all_gather,reduce_scatter,alltoall,scatter,gather";
  std::string algorithms;  ///< a list; empty: all
  std::string least = "16", most = "16M";
  std::size_t factor = 4;
  int rounds = 7;         ///< in which candidates of a cell take turns; at most
  double block_ms = 2;    ///< the time of one candidate in a round
  std::string tune_file;  ///< of --check: the table to check; empty: TORII_TUNE_FILE's or the built-in one
  std::string raw;        ///< where the lines of tune_perf go; empty: nowhere
  std::string json;       ///< where the report goes; only to find out early that it cannot be written
  std::string command;    ///< the command line, for the tune file
};

/// The numbers of ranks in ascending order. Throws Error{invalid_argument} for a text that is no list, and
/// Error{unsupported} for more ranks than `cpus`, unless `oversubscribe`; with an empty text also if there are fewer
/// than 2 CPUs.
std::vector<int> read_ranks(const std::string& text, int cpus, bool oversubscribe);

/// The cells on so many ranks, short vectors first. Lengths below one element per block are all the same. Throws
/// Error{invalid_argument}.
std::vector<TuneCell> read_cells(const TuneRequest& request, int ranks);

/// Throws Error{invalid_argument} if flags contradict each other, name no algorithm, or name files that cannot be read
/// or written; Error{unsupported} in a job of several ranks.
void require_sense(const TuneRequest& request);

/// Takes settings that decide what runs, which is what is compared, out of the environment, and says so on stderr.
void clear_settings(const TuneRequest& request);

}  // namespace torii::tools
