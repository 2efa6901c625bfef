// SPDX-License-Identifier: Apache-2.0
// Buffers: no rank stores where another one still reads. Equal segments of a block are equal bytes and different
// segments are different bytes. So these are questions about paths of weight 0.
#include <algorithm>
#include <tuple>

#include "collectives/proof/verify_checks.hpp"

namespace torii::verification {
namespace {

/// A step that reads a rank's own operand: the flow itself, or in place the receiver of a read_in_place stream. (By
/// value the sending step reads, but then its message orders it before that receiver.)
struct Read {
  std::int32_t rank;
  std::int32_t block;
  StepId step;
};

template <typename Access>
auto place_of(const Access& access) {
  return std::tuple(access.rank, access.block);
}

std::vector<Read> input_reads(const StepTable& table) {
  std::vector<Read> reads;
  for (StepId step = 0; step < table.step_count(); ++step) {
    const std::int32_t block = table.steps[step].block;
    const std::int32_t rank = table.rank_of(step);
    const bool reads_own = std::any_of(table.sources(step).begin(), table.sources(step).end(),
                                       [](const StepPort& source) { return source.stream == kOwnStream; });
    if (!reads_own) continue;
    bool in_place = false;
    for (const StepPort& target : table.targets(step)) {
      const JoinedStream& joined = table.streams[target.stream];
      if (joined.stream.delivery != Delivery::read_in_place) continue;
      in_place = true;
      reads.push_back({rank, block, table.consumer(joined, target.message)});
    }
    if (!in_place) reads.push_back({rank, block, step});
  }
  std::sort(reads.begin(), reads.end(), [](const Read& a, const Read& b) { return place_of(a) < place_of(b); });
  return reads;
}

std::string block_text(std::int32_t rank, std::int32_t block) {
  return "block " + std::to_string(block) + " of rank " + std::to_string(rank);
}

void check_writes_in_turn(const StepTable& table, const std::vector<ResultWrite>& writes, Precedence& precedence,
                          Faults& faults) {
  for (std::size_t i = 1; i < writes.size() && !faults.full(); ++i) {
    const ResultWrite& earlier = writes[i - 1];
    const ResultWrite& later = writes[i];
    if (place_of(earlier) != place_of(later)) continue;
    if (keeps_own(table, later.first)) {
      faults.add(table.text(later.first) + " puts the operand over the result " + block_text(later.rank, later.block));
    }
    if (earlier.last == later.first || !precedence.precedes(earlier.last, later.first, 0)) {
      faults.add("the result " + block_text(later.rank, later.block) +
                 " is written in no fixed order: " + table.text(earlier.last) + ", " + table.text(later.first));
    }
  }
}

void check_operands_outlive_readers(const StepTable& table, const std::vector<ResultWrite>& writes,
                                    Precedence& precedence, Faults& faults) {
  auto write = writes.begin();
  for (const Read& read : input_reads(table)) {
    while (write != writes.end() && place_of(*write) < place_of(read)) ++write;
    if (write == writes.end()) return;
    // The first write is enough: the others come after it. A step that reads and writes a place reads first. One that
    // only keeps the own operand finds it there and writes nothing.
    auto first = write;
    while (first != writes.end() && place_of(*first) == place_of(read) && keeps_own(table, first->first)) ++first;
    if (first == writes.end() || place_of(*first) != place_of(read) || faults.full()) continue;
    if (precedence.precedes(read.step, first->first, 0)) continue;
    faults.add("in place, " + table.text(first->first) + " may overwrite the operand " +
               block_text(read.rank, read.block) + " before it is read by " + table.text(read.step));
  }
}

void check_local_streams(const StepTable& table, const std::vector<ResultWrite>& writes, Precedence& precedence,
                         Faults& faults) {
  for (const JoinedStream& joined : table.streams) {
    if (joined.stream.delivery != Delivery::local) continue;
    for (int message = 0; message < joined.stream.messages_per_segment && !faults.full(); ++message) {
      const StepId producer = table.producer(joined, message);
      const StepId consumer = table.consumer(joined, message);
      const auto place = std::tuple(joined.sender, table.steps[producer].block);
      auto write = std::lower_bound(writes.begin(), writes.end(), place,
                                    [](const ResultWrite& w, const auto& wanted) { return place_of(w) < wanted; });
      while (write != writes.end() && write->last != producer) ++write;
      if (write == writes.end() || ++write == writes.end() || place_of(*write) != place) continue;
      if (precedence.precedes(consumer, write->first, 0)) continue;
      faults.add(table.text(write->first) + " may overwrite the result " +
                 block_text(joined.sender, table.steps[producer].block) + " before it is taken over by " +
                 table.text(consumer));
    }
  }
}

void check_lender_outlasts_reader(const StepTable& table, const JoinedStream& joined, Precedence& precedence,
                                  Faults& faults) {
  for (int message = 0; message < joined.stream.messages_per_segment; ++message) {
    const StepId consumer = table.consumer(joined, message);
    if (outlasts(table, joined.sender, consumer, precedence)) continue;
    faults.add(StepTable::text(joined) + ": the call of rank " + std::to_string(joined.sender) + " may end before " +
               table.text(consumer) + " has read its operand");
    return;
  }
}

}  // namespace

bool keeps_own(const StepTable& table, StepId step) {
  const auto sources = table.sources(step);
  // Only the first operand may be the result's memory.
  return sources.size() == 1 && sources[0].stream == kOwnStream && sources[0].message == 0;
}

bool outlasts(const StepTable& table, int rank, StepId step, Precedence& precedence) {
  const auto lanes = table.lanes_of_rank(rank);
  return std::any_of(lanes.begin(), lanes.end(), [&](const LaneSteps& lane) {
    return lane.first != lane.end && precedence.precedes(step, lane.end - 1, 0);
  });
}

std::vector<ResultWrite> result_writes(const StepTable& table, const Precedence& precedence) {
  std::vector<ResultWrite> writes;
  for (StepId step = 0; step < table.step_count(); ++step) {
    if (!table.flow_of(step).keep) continue;
    StepId first = step;
    const StepPort& source = table.sources(step).front();
    if (source.stream != kOwnStream && table.streams[source.stream].stream.delivery == Delivery::write_in_place) {
      first = table.producer(table.streams[source.stream], source.message);
    }
    writes.push_back({table.rank_of(step), table.steps[step].block, first, step});
  }
  std::vector<std::int32_t> turn(table.steps.size());
  for (std::size_t i = 0; i < precedence.order().size(); ++i)
    turn[precedence.order()[i]] = static_cast<std::int32_t>(i);
  std::sort(writes.begin(), writes.end(), [&](const ResultWrite& a, const ResultWrite& b) {
    return std::tuple(a.rank, a.block, turn[a.last]) < std::tuple(b.rank, b.block, turn[b.last]);
  });
  return writes;
}

void check_buffers(const StepTable& table, Precedence& precedence, Faults& faults, Proofs& proofs) {
  const std::vector<ResultWrite> writes = result_writes(table, precedence);
  proofs.writes = static_cast<int>(writes.size());
  check_writes_in_turn(table, writes, precedence, faults);
  check_operands_outlive_readers(table, writes, precedence, faults);
  check_local_streams(table, writes, precedence, faults);
}

void check_readers(const StepTable& table, const ExecutorRules& rules, Precedence& precedence, Faults& faults) {
  for (const JoinedStream& joined : table.streams) {
    if (faults.full()) return;
    if (rules.awaits(joined.stream)) {
      // By value the receiver counts each message when it takes it, so not when a call has ended.
      if (joined.stream.delivery == Delivery::read_in_place) continue;
      faults.add("at the end of its call rank " + std::to_string(joined.sender) + " waits for a reader of " +
                 StepTable::text(joined) + ", which has none");
    } else if (joined.stream.delivery == Delivery::read_in_place) {
      check_lender_outlasts_reader(table, joined, precedence, faults);
    }
  }
}

}  // namespace torii::verification
