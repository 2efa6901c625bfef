// SPDX-License-Identifier: Apache-2.0
// What happens when in a random run: calls begin and end, lanes move on, in random order and at random speeds.
#include "tests/support/verify_run.hpp"

#include "collectives/building/exchange_expansion.hpp"
#include "collectives/proof/verify_orders.hpp"
#include "tests/support/verify_interpreter.hpp"

namespace torii::verification {

void Interpreter::set_up() {
  const std::size_t cells = static_cast<std::size_t>(blocks_) * run_.segments;
  const bool all_same = chance(0.3);
  const std::size_t operands_max =
      request_.leaves == nullptr ? 1 : static_cast<std::size_t>(request_.leaves->operands_max());
  ranks_.resize(table_.plans.size());
  for (RankState& rank : ranks_) {
    rank.same_memory = all_same || chance(0.5);
    rank.input.resize(cells * operands_max);
    rank.result.resize(cells);
  }
  lanes_.resize(table_.lanes.size());
  claims_.resize(table_.steps.size() * run_.segments);
  for (const JoinedStream& joined : table_.streams) {
    StreamState state;
    const bool may =
        joined.stream.delivery == Delivery::read_in_place || joined.stream.delivery == Delivery::write_in_place;
    state.in_place = may && chance(0.6);
    state.slots.resize(slots_);
    state.consumed.assign(static_cast<std::size_t>(message_number(joined, 0, run_.calls, 0)), false);
    state.reads_left.assign(run_.calls, run_.segments * joined.stream.messages_per_segment);
    streams_.push_back(std::move(state));
  }
  draw_speeds();
}

void Interpreter::draw_speeds() {
  constexpr double kSpeeds[] = {1, 1, 0.2, 0.01};
  for (LaneState& lane : lanes_) lane.speed = kSpeeds[random_() % std::size(kSpeeds)];
}

void Interpreter::enter(int rank) {
  RankState& state = ranks_[rank];
  ++state.call;
  state.inside = true;
  for (int block = 0; block < blocks_; ++block) {
    if (!has_operand(request_, rank, owner_of(request_, table_.plans[0], block))) continue;
    for (int operand = 0; operand < operands(rank); ++operand) {
      const ExpressionId value = operand_of(request_, rank, operand, pool_);
      for (int segment = 0; segment < run_.segments; ++segment)
        input(rank, block, segment, operand).content = {state.call, block, segment, value};
    }
  }
  for (int lane = table_.first_lane_of_rank[rank]; lane < table_.first_lane_of_rank[rank + 1]; ++lane) {
    const bool empty = table_.lanes[lane].first == table_.lanes[lane].end;
    lanes_[lane].next.assign(run_.segments, 0);
    lanes_[lane].running.assign(run_.segments, false);
    lanes_[lane].segments_done = empty ? run_.segments : 0;
  }
}

void Interpreter::check_results(int rank) {
  const int call = ranks_[rank].call;
  if (request_.collective == Collective::barrier) {
    for (const RankState& other : ranks_) {
      if (other.call < call)
        fail("rank " + std::to_string(rank) + " leaves barrier " + std::to_string(call) + " before all have entered");
    }
    return;
  }
  for (int block = 0; block < blocks_; ++block) {
    if (!has_result(request_, rank, owner_of(request_, table_.plans[0], block))) continue;
    for (int segment = 0; segment < run_.segments; ++segment) {
      const Content& got = result(rank, block, segment).content;
      if (got.call == call && got.block == block && got.segment == segment &&
          got.value == expected_[result_number(request_, rank, block)])
        continue;
      fail("rank " + std::to_string(rank) + " ends call " + std::to_string(call) + " with a wrong result in block " +
           std::to_string(block) + " segment " + std::to_string(segment) +
           (got.value == kNoExpression ? "" : ": " + pool_.text(got.value)));
    }
  }
}

bool Interpreter::try_leave(int rank) {
  RankState& state = ranks_[rank];
  for (int lane = table_.first_lane_of_rank[rank]; lane < table_.first_lane_of_rank[rank + 1]; ++lane) {
    if (lanes_[lane].segments_done != run_.segments) return false;
  }
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    const JoinedStream& joined = table_.streams[s];
    const bool waits = joined.sender == rank && joined.stream.delivery == Delivery::read_in_place &&
                       joined.stream.is_awaited && streams_[s].in_place;
    if (waits && streams_[s].reads_left[state.call] != 0) return false;
  }
  check_results(rank);
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (table_.streams[s].receiver == rank) streams_[s].published = streams_[s].counted;
  }
  for (std::vector<Cell>* cells : {&state.input, &state.result}) {
    for (Cell& cell : *cells) {
      if (cell.readers != 0 || cell.written)
        fail("the call of rank " + std::to_string(rank) + " ends while its buffers are in use");
      cell.content = Content{};
    }
  }
  state.inside = false;
  if (state.call + 1 == run_.calls) ++ranks_finished_;
  return true;
}

bool Interpreter::try_somewhere(int rank) {
  RankState& state = ranks_[rank];
  if (!state.inside) {
    if (state.call + 1 == run_.calls || !chance(0.2)) return false;
    enter(rank);
    return true;
  }
  const int first = table_.first_lane_of_rank[rank];
  const int lanes = table_.first_lane_of_rank[rank + 1] - first;
  if (lanes != 0) {
    const int lane = first + static_cast<int>(random_() % static_cast<std::uint64_t>(lanes));
    const int segment = static_cast<int>(random_() % static_cast<std::uint64_t>(run_.segments));
    if (chance(lanes_[lane].speed) && try_segment(lane, segment)) return true;
  }
  return try_leave(rank);
}

bool Interpreter::try_everything() {
  for (int rank = 0; rank < ranks(); ++rank) {
    RankState& state = ranks_[rank];
    if (!state.inside) {
      if (state.call + 1 == run_.calls) continue;
      enter(rank);
      return true;
    }
    for (int lane = table_.first_lane_of_rank[rank]; lane < table_.first_lane_of_rank[rank + 1]; ++lane) {
      for (int segment = 0; segment < run_.segments; ++segment) {
        if (try_segment(lane, segment)) return true;
      }
    }
    if (try_leave(rank)) return true;
  }
  return false;
}

bool Interpreter::try_segment(int lane_number, int segment) {
  const LaneSteps& steps = table_.lanes[lane_number];
  LaneState& lane = lanes_[lane_number];
  const int length = steps.end - steps.first;
  if (lane.next[segment] == length) return false;
  const StepId step = steps.first + lane.next[segment];
  if (lane.running[segment]) {
    end(step, segment);
    lane.running[segment] = false;
    if (++lane.next[segment] == length) ++lane.segments_done;
    return true;
  }
  if (segment >= steps.window && lane.next[segment - steps.window] != length) return false;
  if (!sources_ready(step, segment) || !targets_ready(step, segment)) return false;
  begin(step, segment);
  lane.running[segment] = true;
  return true;
}

std::string Interpreter::deadlock_text() const {
  std::string text = "seed " + std::to_string(run_.seed) + ": deadlock";
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    const LaneSteps& steps = table_.lanes[lane];
    const int length = steps.end - steps.first;
    for (int segment = 0; segment < static_cast<int>(lanes_[lane].next.size()); ++segment) {
      if (lanes_[lane].next[segment] < length)
        return text + "; among others waits " + at(steps.first + lanes_[lane].next[segment], segment);
    }
  }
  return text;
}

}  // namespace torii::verification

namespace torii {

std::string run_randomly(const PlanRequest& request, std::span<const Plan> plans,
                         std::span<const ExpressionId> expected, ExpressionPool& pool, const RandomRun& run) {
  std::vector<std::string> sentences;
  verification::Faults faults(sentences);
  if (have_exchanges(plans, faults)) {
    const std::vector<Plan> expanded =
        expand_exchanges(plans, run.seed % 2 == 0 ? Delivery::read_in_place : Delivery::write_in_place);
    return run_randomly(request, expanded, expected, pool, run);
  }
  const verification::StepTable table = verification::tabulate(request, plans, faults);
  if (faults.any()) return sentences.front();
  RandomRun adjusted = run;
  if (request.collective == Collective::barrier) adjusted.segments = 1;
  return verification::Interpreter(request, table, expected, pool, adjusted).run_all();
}

}  // namespace torii
