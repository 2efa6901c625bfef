// SPDX-License-Identifier: Apache-2.0
// What a step of a random run does to memory and slots.
#include "tests/support/verify_interpreter.hpp"

#include <algorithm>
#include <iterator>

namespace torii::verification {

bool Interpreter::sources_ready(StepId step, int segment) const {
  const int call = ranks_[table_.rank_of(step)].call;
  for (const StepPort& source : table_.sources(step)) {
    if (source.stream == kOwnStream) continue;
    const JoinedStream& joined = table_.streams[source.stream];
    const StreamState& state = streams_[source.stream];
    if (joined.stream.delivery == Delivery::read_in_place && state.in_place) {
      if (ranks_[joined.sender].call < call) return false;
      continue;
    }
    const std::int64_t number = message_number(joined, source.message, call, segment);
    const Slot& slot = state.slots[number % slots_];
    if (!slot.visible || slot.message != number) return false;
  }
  return true;
}

bool Interpreter::is_slot_free(const JoinedStream& joined, const StreamState& state, std::int64_t number) const {
  if (number < slots_) return true;
  if (run_.counts_every > 0 && joined.sender != joined.receiver) return state.published > number - slots_;
  return state.consumed[number - slots_];
}

void Interpreter::count(StreamState& state) {
  while (state.counted < std::ssize(state.consumed) && state.consumed[state.counted]) ++state.counted;
  if (state.counted - state.published >= run_.counts_every) state.published = state.counted;
}

bool Interpreter::targets_ready(StepId step, int segment) const {
  const int call = ranks_[table_.rank_of(step)].call;
  for (const StepPort& target : table_.targets(step)) {
    const JoinedStream& joined = table_.streams[target.stream];
    const StreamState& state = streams_[target.stream];
    if (joined.stream.delivery == Delivery::read_in_place && state.in_place) continue;
    if (joined.stream.delivery == Delivery::write_in_place && state.in_place && ranks_[joined.receiver].call < call)
      return false;
    const std::int64_t number = message_number(joined, target.message, call, segment);
    if (!is_slot_free(joined, state, number)) return false;
  }
  return true;
}

void Interpreter::claim_read(Cell& cell, StepId step, int segment, Claim& claim) {
  if (cell.written) fail(at(step, segment) + " reads what is being written");
  ++cell.readers;
  claim.read.push_back(&cell);
}

void Interpreter::claim_write(Cell& cell, StepId step, int segment, Claim& claim) {
  const auto own_reads = std::count(claim.read.begin(), claim.read.end(), &cell);
  if (cell.written || cell.readers != own_reads) fail(at(step, segment) + " writes what somebody else reads or writes");
  cell.written = true;
  claim.written.push_back(&cell);
}

bool Interpreter::finds_it_there(StepId step) const {
  const auto sources = table_.sources(step);
  if (sources.size() != 1) return false;
  if (sources[0].stream == kOwnStream) return sources[0].message == 0 && ranks_[table_.rank_of(step)].same_memory;
  return table_.streams[sources[0].stream].stream.delivery == Delivery::write_in_place &&
         streams_[sources[0].stream].in_place;
}

/// Whether the step has nothing to do because all its targets read the operand in place.
bool Interpreter::is_read_in_place(StepId step) const {
  const auto targets = table_.targets(step);
  return !targets.empty() && std::all_of(targets.begin(), targets.end(), [&](const StepPort& target) {
    return table_.streams[target.stream].stream.delivery == Delivery::read_in_place && streams_[target.stream].in_place;
  });
}

/// Claims the memory that holds a source and returns its value, kNoExpression for a token.
ExpressionId Interpreter::operand(StepId step, const StepPort& source, int segment, Claim& claim) {
  const int rank = table_.rank_of(step);
  const int block = table_.steps[step].block;
  const int call = ranks_[rank].call;
  Content got;
  if (source.stream == kOwnStream) {
    Cell& cell = input(rank, block, segment, source.message);
    claim_read(cell, step, segment, claim);
    got = cell.content;
  } else {
    const JoinedStream& joined = table_.streams[source.stream];
    StreamState& state = streams_[source.stream];
    const Delivery delivery = joined.stream.delivery;
    const bool in_result = delivery == Delivery::local || (delivery == Delivery::write_in_place && state.in_place);
    if (in_result || (delivery == Delivery::read_in_place && state.in_place)) {
      Cell& cell = in_result ? result(rank, block, segment)
                             : input(joined.sender, block, segment, joined.stream.operand_of(source.message));
      claim_read(cell, step, segment, claim);
      got = cell.content;
    } else {
      got = state.slots[message_number(joined, source.message, call, segment) % slots_]
                .contents[source.message % joined.stream.bundle];
      if (got.value == kNoExpression) return kNoExpression;
    }
  }
  if (request_.collective != Collective::barrier &&
      (got.call != call || got.block != block || got.segment != segment)) {
    fail(at(step, segment) + " reads what is not, or no longer, there");
  }
  return got.value;
}

void Interpreter::claim_targets(StepId step, int segment, Claim& claim) {
  const int rank = table_.rank_of(step);
  const int block = table_.steps[step].block;
  if (table_.flow_of(step).keep && !finds_it_there(step))
    claim_write(result(rank, block, segment), step, segment, claim);
  for (const StepPort& target : table_.targets(step)) {
    const JoinedStream& joined = table_.streams[target.stream];
    StreamState& state = streams_[target.stream];
    if (joined.stream.delivery == Delivery::read_in_place && state.in_place) continue;
    if (joined.stream.delivery == Delivery::write_in_place && state.in_place)
      claim_write(result(joined.receiver, block, segment), step, segment, claim);
    const std::int64_t number = message_number(joined, target.message, ranks_[rank].call, segment);
    Slot& slot = state.slots[number % slots_];
    if (target.message % joined.stream.bundle == 0) {
      if (slot.occupied)
        fail(at(step, segment) + " fills a slot of " + StepTable::text(joined) + " that is still in use");
      slot.message = number;
      slot.occupied = true;
      slot.visible = false;
      slot.contents.assign(static_cast<std::size_t>(joined.stream.bundle), Content{});
    } else if (slot.message != number || slot.visible) {
      fail(at(step, segment) + " adds to a bundle of " + StepTable::text(joined) + " that has not been begun");
    }
  }
}

void Interpreter::begin(StepId step, int segment) {
  const int rank = table_.rank_of(step);
  Claim& claim = claim_of(step, segment);
  claim = Claim{};
  if (is_read_in_place(step)) return;
  std::vector<ExpressionId> operands;
  for (const StepPort& source : table_.sources(step)) {
    const ExpressionId value = operand(step, source, segment, claim);
    if (value != kNoExpression) operands.push_back(value);
  }
  claim.rounded = {ranks_[rank].call, table_.steps[step].block, segment, kNoExpression};
  if (!operands.empty()) {
    const bool left = table_.flow_of(step).fold == Fold::left;
    claim.rounded.value = left ? pool_.fold(operands, true) : pool_.canonical(operands, true);
    claim.wide = left ? pool_.fold(operands, false) : pool_.canonical(operands, false);
  }
  claim_targets(step, segment, claim);
}

void Interpreter::end(StepId step, int segment) {
  const int call = ranks_[table_.rank_of(step)].call;
  Claim& claim = claim_of(step, segment);
  for (Cell* cell : claim.written) {
    cell->content = claim.rounded;
    cell->written = false;
  }
  for (Cell* cell : claim.read) --cell->readers;
  for (const StepPort& target : table_.targets(step)) {
    const JoinedStream& joined = table_.streams[target.stream];
    StreamState& state = streams_[target.stream];
    if (joined.stream.delivery == Delivery::read_in_place && state.in_place) continue;
    Slot& slot = state.slots[message_number(joined, target.message, call, segment) % slots_];
    if (slot.contents.empty()) continue;  // a fault that has been told
    Content& content = slot.contents[static_cast<std::size_t>(target.message % joined.stream.bundle)];
    content = claim.rounded;
    if (joined.stream.wide) content.value = claim.wide;
    slot.visible = joined.stream.ends_bundle(target.message);
  }
  for (const StepPort& source : table_.sources(step)) {
    if (source.stream == kOwnStream) continue;
    const JoinedStream& joined = table_.streams[source.stream];
    StreamState& state = streams_[source.stream];
    if (joined.stream.delivery == Delivery::read_in_place && state.in_place) {
      --state.reads_left[call];
      continue;
    }
    if (!joined.stream.ends_bundle(source.message)) continue;
    const std::int64_t number = message_number(joined, source.message, call, segment);
    state.slots[number % slots_].clear();
    state.consumed[number] = true;
    count(state);
  }
}

}  // namespace torii::verification
