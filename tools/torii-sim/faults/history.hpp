// SPDX-License-Identifier: Apache-2.0
// A history under faults: a job, what each of its ranks does step by step, and what goes wrong. A function of a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tools/torii-sim/faults/calls.hpp"
#include "transports/fibers/fibers.hpp"
#include "transports/fibers/wires.hpp"

namespace torii::faults {

/// The action of one rank at a step, instead of the call.
enum class Deviation : std::uint8_t {
  none,
  refused,  ///< makes Step::refused_calls() that are refused
  differs,  ///< makes Step::other
  aborts,   ///< aborts the team, then makes the call
  leaves_out
};

enum class Manner : std::uint8_t {
  blocking,
  started,    ///< waited for a few steps later
  persistent  ///< prepared, started and waited for twice
};

/// Where the vectors of a rank are.
enum class Memory : std::uint8_t { malloced, allocated, adopted };

/// A rank does not come to the call of that number before another one has made so many calls more, or waits for none.
struct Lag {
  int rank = 0;
  int at = 0;
  int calls = 0;
};

/// Calls in a row, between which ranks wait for nothing but what the library waits for.
struct Streak {
  int calls = 0;                 ///< 0: the step is one call
  std::vector<DrawnCall> turns;  ///< the seed of the step's call says which of them is made when
  int run = 1;                   ///< so many calls in a row are alike
  std::vector<Lag> lags;
  int odd_call = 0;  ///< the number of the one in which a rank deviates

  /// The place in `turns` of the call of that number, and the call with data of its own.
  std::size_t turn(std::uint64_t seed, int number) const;
  DrawnCall call(std::uint64_t seed, int number) const;
};

struct Step {
  std::size_t team = 0;  ///< 0: all ranks; otherwise a part, which an earlier step has made
  bool splits = false;   ///< makes part number `part` of team 0, by colours
  std::size_t part = 0;
  std::uint64_t colors = 0;  ///< bit r: the colour of rank r
  Manner manner = Manner::blocking;
  DrawnCall call;
  DrawnCall other;
  Streak streak;
  std::vector<Deviation> deviations;  ///< by rank of team 0
  std::vector<int> pauses_us;         ///< by rank, before the step
  std::vector<Memory> memory;         ///< by rank
  bool is_left_out = false;           ///< nobody does it

  /// How many calls in a row a rank makes that are refused: one, or a burst that is longer than peers remember runs.
  int refused_calls() const noexcept { return call.seed % 3 != 0 ? 1 : 2 + static_cast<int>(call.seed / 3 % 40); }
};

enum class FaultKind : std::uint8_t {
  dies,
  stops,
  loses_engine,
  cut_silently,
  lacks_memory  ///< is refused shared memory
};

/// The current activity of a rank.
enum class Phase : std::uint8_t {
  joining,
  making_team,
  splitting,
  calling,
  starting,
  preparing,
  waiting,
  refusing,  ///< makes a wrong call
  choosing_survivors,
  calling_survivors,
  computing,
  leaving
};
inline constexpr int kPhases = 12;
const char* text_of(Phase phase) noexcept;

struct Fault {
  FaultKind kind = FaultKind::dies;
  int rank = 0;
  /// dies, stops: at this point of the rank, counted from where it comes to `phase` for the time number `visit`.
  /// lacks_memory: at its request of this number from there on.
  std::uint64_t point = 1;
  Phase phase = Phase::joining;
  int visit = 0;
  fibers::Time time = 0;  ///< loses_engine, cut_silently: when; stops: for how long
  int engine = 0;
  int peer = -1;            ///< of a lost engine: -1: all peers
  std::uint64_t times = 1;  ///< lacks_memory: how often
};

/// The machines and the network.
struct Job {
  int ranks = 2;
  std::vector<int> nodes;  ///< by rank
  bool oversubscribed = true;
  fibers::WireModel wires;
  double timeout_s = 1;
  std::string settings;   ///< "NAME=value" lines, without those above
  std::string topology;   ///< of the team of all ranks; empty: as the context has it
  std::string algorithm;  ///< of the team of all ranks
  std::string determinism;
  std::string wire;
  bool adopts = false;           ///< some vectors are adopted memory, which takes longer than all else
  int odd_rank = -1;             ///< this rank wants another segment length than the others; -1: none
  bool is_odd_for_good = false;  ///< by its settings; otherwise by the options of its first attempt to make the team
  std::vector<fibers::Time> clock_offsets;  ///< by node
  std::vector<double> clock_drifts;         ///< by node
  bool several_nodes() const noexcept;
};

/// How ranks ask for survivors, when a team has failed. -1: no rank does so.
struct Asking {
  int refuses = -1;      ///< its first call on each team makes no sense
  int differs = -1;      ///< its first call on each team leaves out a rank that the others do not
  bool repeats = false;  ///< after a timeout they ask again, without those that have not come
};

struct History {
  std::uint64_t seed = 0;
  Job job;
  std::size_t teams = 1;
  std::vector<Step> steps;
  std::vector<Fault> faults;
  Asking asking;

  int ranks() const noexcept { return job.ranks; }
  fibers::Time deadline() const noexcept { return static_cast<fibers::Time>(job.timeout_s * fibers::kSecond); }
  /// A rank or message that is late by less than this is no fault.
  fibers::Time patience() const noexcept { return deadline() / 8; }
  /// Many calls are under way at once.
  bool is_busy() const noexcept { return seed % 4 == 0; }
  /// Ranks that are in one team with `rank`.
  std::vector<int> members(std::size_t team, int rank) const;
  /// True if calls of the rank's team at that index may fail: a member deviates, or something goes wrong with it.
  bool may_fail(std::size_t team, int rank) const;
  /// True if nothing goes wrong with the rank's team at that index but that calls differ, on one node: then the team
  /// may fail for no other reason.
  bool only_differs(std::size_t team, int rank) const;
  /// True if something goes wrong that lets any wait reach its deadline.
  bool may_time_out() const;
  /// True if something of these kinds is wrong with a rank.
  bool has(std::initializer_list<FaultKind> kinds) const;
};

History draw_history(std::uint64_t seed);
/// The steps alone, in which ranks may deviate and nothing else goes wrong. The team of all ranks is split at most
/// `parts_most` times.
History draw_calls(std::uint64_t seed, const Job& job, std::size_t parts_most);
/// The history in sentences, a line for each step and fault.
std::string text_of(const History& history);
const char* text_of(FaultKind kind) noexcept;

}  // namespace torii::faults
