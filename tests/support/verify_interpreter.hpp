// SPDX-License-Identifier: Apache-2.0
// The interpreter behind run_randomly(). A step takes time: it begins (claims what it reads and writes) and ends
// (stores, signals, counts); whatever two steps claim at once against each other is a race.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/proof/verify_steps.hpp"
#include "tests/support/verify_run.hpp"

namespace torii::verification {

/// What stands in memory: the value of one segment of one block in one call. A call of -1 is a caller's scribble.
struct Content {
  int call = -1;
  int block = -1;
  int segment = -1;
  ExpressionId value = kNoExpression;
};

struct Cell {
  Content content;
  int readers = 0;
  bool written = false;  ///< somebody is writing it
};

struct Slot {
  std::int64_t message = -1;
  bool occupied = false;  ///< holds, or is about to hold, a message that nobody has consumed
  bool visible = false;
  std::vector<Content> contents = {};  ///< of each message of the bundle, the value as it travels
  void clear() {
    message = -1;
    occupied = visible = false;
    contents.clear();
  }
};

struct StreamState {
  bool in_place = false;
  std::vector<Slot> slots;
  std::vector<bool> consumed;   ///< by number of the bundle
  std::int64_t counted = 0;     ///< so many bundles have been consumed in order
  std::int64_t published = 0;   ///< the count that the sender knows
  std::vector<int> reads_left;  ///< read in place: per call, messages that the reader has not read yet
};

struct LaneState {
  std::vector<int> next;      ///< per segment, how many steps are done in this call
  std::vector<bool> running;  ///< per segment, whether the next step has begun
  int segments_done = 0;
  double speed = 1;
};

/// A begun step: what it claimed and what it will store.
struct Claim {
  Content rounded;
  ExpressionId wide = kNoExpression;
  std::vector<Cell*> read;
  std::vector<Cell*> written;
};

struct RankState {
  int call = -1;
  bool inside = false;
  bool same_memory = false;
  std::vector<Cell> input;   ///< block-major, one operand after the other; only the first may be the result too
  std::vector<Cell> result;  ///< unused when input and result are the same memory
};

/// SplitMix64. A random run mostly draws numbers, and std::mt19937_64 took half of its time.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t state_;
};

/// One random run. Ranks enter and leave calls, lanes begin and end steps, each when chance calls on it.
class Interpreter {
 public:
  Interpreter(const PlanRequest& request, const StepTable& table, std::span<const ExpressionId> expected,
              ExpressionPool& pool, const RandomRun& run)
      : request_(request),
        table_(table),
        expected_(expected),
        pool_(pool),
        run_(run),
        random_(run.seed),
        slots_(table.plans[0].slots),
        blocks_(table.blocks) {
    set_up();
  }

  /// Runs until every rank has left its last call; returns what went wrong first, or an empty string.
  std::string run_all() {
    constexpr int kIdleTriesMost = 200;
    int idle = 0;
    while (fault_.empty() && ranks_finished_ < ranks()) {
      if (random_() % 512 == 0) draw_speeds();
      if (try_somewhere(static_cast<int>(random_() % static_cast<std::uint64_t>(ranks())))) {
        idle = 0;
      } else if (++idle > kIdleTriesMost) {
        if (!try_everything()) return fault_.empty() ? deadlock_text() : fault_;
        idle = 0;
      }
    }
    return fault_;
  }

 private:
  int ranks() const { return static_cast<int>(table_.plans.size()); }
  bool chance(double probability) { return static_cast<double>(random_() >> 11) * 0x1p-53 < probability; }
  Cell& input(int rank, int block, int segment, int operand = 0) {
    return ranks_[rank].input[(operand * blocks_ + block) * run_.segments + segment];
  }
  int operands(int rank) const { return request_.leaves == nullptr ? 1 : request_.leaves->operands(rank); }
  Cell& result(int rank, int block, int segment) {
    RankState& state = ranks_[rank];
    return (state.same_memory ? state.input : state.result)[block * run_.segments + segment];
  }
  /// How many times the stream's slots are filled before this message's bundle.
  std::int64_t message_number(const JoinedStream& joined, int message, int call, int segment) const {
    return (std::int64_t{call} * run_.segments + segment) * joined.stream.bundles_per_segment() +
           message / joined.stream.bundle;
  }
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = "seed " + std::to_string(run_.seed) + ": " + what;
  }
  std::string at(StepId step, int segment) const {
    return table_.text(step) + " segment " + std::to_string(segment) + " of call " +
           std::to_string(ranks_[table_.rank_of(step)].call);
  }

  void set_up();
  void draw_speeds();
  bool try_somewhere(int rank);
  bool try_everything();
  bool try_segment(int lane, int segment);
  void enter(int rank);
  bool try_leave(int rank);
  bool is_slot_free(const JoinedStream& joined, const StreamState& state, std::int64_t number) const;
  void count(StreamState& state);
  bool sources_ready(StepId step, int segment) const;
  bool targets_ready(StepId step, int segment) const;
  void begin(StepId step, int segment);
  void end(StepId step, int segment);
  ExpressionId operand(StepId step, const StepPort& source, int segment, Claim& claim);
  void claim_read(Cell& cell, StepId step, int segment, Claim& claim);
  void claim_write(Cell& cell, StepId step, int segment, Claim& claim);
  void claim_targets(StepId step, int segment, Claim& claim);
  bool finds_it_there(StepId step) const;
  bool is_read_in_place(StepId step) const;
  void check_results(int rank);
  std::string deadlock_text() const;
  Claim& claim_of(StepId step, int segment) { return claims_[step * run_.segments + segment]; }

  const PlanRequest& request_;
  const StepTable& table_;
  std::span<const ExpressionId> expected_;
  ExpressionPool& pool_;
  RandomRun run_;
  RandomNumbers random_;
  int slots_;
  int blocks_;
  std::vector<RankState> ranks_;
  std::vector<LaneState> lanes_;
  std::vector<StreamState> streams_;
  std::vector<Claim> claims_;
  int ranks_finished_ = 0;
  std::string fault_;
};

}  // namespace torii::verification
