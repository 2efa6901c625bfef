// SPDX-License-Identifier: Apache-2.0
// The steps and streams of a whole plan set as flat tables: what the verifier, its random runs and the drawer work on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/proof/executor_rules.hpp"
#include "runtime/plan/expression.hpp"
#include "runtime/plan/plan.hpp"

namespace torii::verification {

/// A step is one (rank, lane, flow, place in the flow's walk). It happens once per segment. Numbers run through a lane
/// in the order in which the lane runs, so the successor of a step in its lane is the next number.
using StepId = std::int32_t;
inline constexpr StepId kNoStep = -1;

struct Step {
  std::int32_t lane;   ///< index into StepTable::lanes
  std::int32_t flow;   ///< index into the lane's flows
  std::int32_t place;  ///< position in the flow's walk
  std::int32_t block;
};

struct LaneSteps {
  std::int32_t rank;
  std::int32_t lane;  ///< index into the plan's lanes
  StepId first;
  StepId end;
  std::int32_t window;
};

/// A stream with both ends. Message n of a segment is message `first_message + n` of the tables below.
struct JoinedStream {
  std::int32_t sender;
  std::int32_t receiver;
  Stream stream;               ///< as the sender's plan has it (`peer` is the receiver)
  std::int32_t first_message;  ///< into StepTable::producer_of and consumer_of
};

/// A source or target of a step: which stream and which message of the segment, or kOwnStream and which operand.
struct StepPort {
  std::int32_t stream;
  std::int32_t message;
};
inline constexpr std::int32_t kOwnStream = -1;

struct StepTable {
  std::span<const Plan> plans;
  /// Steps count blocks as the plans do, but in an alltoall by pairs: block `sender * ranks + receiver`. The place of
  /// that block is `receiver` in the sender's input and `sender` in the receiver's result. A flow that only forwards a
  /// block names its receiver.
  std::int32_t blocks = 0;
  std::vector<Step> steps;
  std::vector<LaneSteps> lanes;
  std::vector<std::int32_t> first_lane_of_rank;  ///< ranks + 1 entries
  std::vector<JoinedStream> streams;
  std::vector<StepId> producer_of;
  std::vector<StepId> consumer_of;
  std::vector<StepPort> ports;
  std::vector<std::int32_t> first_source;  ///< steps + 1 entries, into `ports`: sources of step i, then its targets
  std::vector<std::int32_t> first_target;

  std::int32_t step_count() const { return static_cast<std::int32_t>(steps.size()); }
  int rank_of(StepId step) const { return lanes[static_cast<std::size_t>(steps[step].lane)].rank; }
  const LaneSteps& lane_of(StepId step) const { return lanes[static_cast<std::size_t>(steps[step].lane)]; }
  const Flow& flow_of(StepId step) const {
    const LaneSteps& lane = lane_of(step);
    return plans[lane.rank].lanes[lane.lane].flows[steps[step].flow];
  }
  std::span<const StepPort> sources(StepId step) const {
    return std::span(ports).subspan(first_source[step], first_target[step] - first_source[step]);
  }
  std::span<const StepPort> targets(StepId step) const {
    return std::span(ports).subspan(first_target[step], first_source[step + 1] - first_target[step]);
  }
  std::span<const LaneSteps> lanes_of_rank(int rank) const {
    return std::span(lanes).subspan(first_lane_of_rank[rank], first_lane_of_rank[rank + 1] - first_lane_of_rank[rank]);
  }
  StepId producer(const JoinedStream& joined, int message) const { return producer_of[joined.first_message + message]; }
  StepId consumer(const JoinedStream& joined, int message) const { return consumer_of[joined.first_message + message]; }

  /// "rank 3 lane 0 flow 1 (up tree 0) block 2"
  std::string text(StepId step) const;
  /// "stream 3 -> 5 tag 1"
  static std::string text(const JoinedStream& joined);
};

/// The rank whose block, or a part of it, `block` is; -1 where blocks are no rank's. In an alltoall the pair.
int owner_of(const PlanRequest& request, const Plan& plan, int block);
/// Whether a rank has an operand at the start, or a result at the end, of a collective, for a block of this owner.
bool has_operand(const PlanRequest& request, int rank, int owner);
/// The value of a rank's operand: its leaf, or E over the leaves of its subtree of that number.
ExpressionId operand_of(const PlanRequest& request, int rank, int operand, ExpressionPool& pool);
bool has_result(const PlanRequest& request, int rank, int owner);
/// The number of an expression in Verdict::result_expression: of a block, or where every rank has its own, of a rank.
inline std::size_t result_number(const PlanRequest& request, int rank, int block) {
  return static_cast<std::size_t>(is_prefix(request.collective) ? rank : block);
}

/// Collects sentences and stops collecting when there are enough to see what is wrong.
class Faults {
 public:
  explicit Faults(std::vector<std::string>& sentences, std::size_t most = 20) : sentences_(sentences), most_(most) {}
  void add(std::string sentence) {
    if (!full()) sentences_.push_back(std::move(sentence));
  }
  bool full() const { return sentences_.size() >= most_; }
  bool any() const { return !sentences_.empty(); }

 private:
  std::vector<std::string>& sentences_;
  std::size_t most_;
};

/// The block of a step that only passes one on in an alltoall, until its source has told which it is.
inline constexpr std::int32_t kPassedOn = -1;
/// Finds out whose blocks are passed on: those of the messages that bring them. Their flows name the receiver.
void name_passed_on(StepTable& table, Faults& faults);
/// By `rules`, one message of each bundle carries the signal, and its taking counts. It is produced last: its slot is
/// whole when the signal goes. It is taken last: the slot is empty when it counts.
void check_bundles(const StepTable& table, const ExecutorRules& rules, Faults& faults);

/// Builds the tables. A step that cannot be tabulated or breaks a rule of structure is reported. The rules: the ends of
/// every stream are equal, every message of a segment is produced once and consumed once, and blocks are equal at both
/// ends. Flows with read_in_place, write_in_place and local streams have the right forms, walks stay inside the blocks,
/// and maxima are right. The tables are usable only when no fault was added.
StepTable tabulate(const PlanRequest& request, std::span<const Plan> plans, Faults& faults,
                   const ExecutorRules& rules = {});

}  // namespace torii::verification
