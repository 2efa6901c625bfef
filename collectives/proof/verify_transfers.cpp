// SPDX-License-Identifier: Apache-2.0
// The two ranks of a transfer whose block uses no slots, as plans of their own. A segment there is a call here, and a
// message is an offer, a signal or a release. The questions to their graph are those to any plan's.
#include <set>
#include <vector>

#include "collectives/proof/verify_checks.hpp"

namespace torii::verification {
namespace {

constexpr int kSender = 0;
constexpr int kReceiver = 1;
constexpr int kOfferTag = 0;
constexpr int kBlockTag = 1;

/// The part of a block with whose end the block is complete; -1 after a fault.
int completing_part(std::size_t block_bytes, const ExecutorRules& rules, Faults& faults) {
  const std::string block = "a block of " + std::to_string(block_bytes) + " bytes";
  int part = 0;
  for (std::size_t done_bytes = 0; done_bytes < block_bytes; ++part) {
    const std::size_t part_bytes = portion_bytes(done_bytes, block_bytes);
    const bool completes = rules.completes(done_bytes, part_bytes, block_bytes);
    done_bytes += part_bytes;
    if (completes && done_bytes == block_bytes) return part;
    if (!completes) continue;
    faults.add(block + " is signalled when " + std::to_string(done_bytes) + " bytes of it are stored");
    return -1;
  }
  faults.add(block + " is never signalled");
  return -1;
}

/// Builds the two plans.
struct Pair {
  std::vector<Plan> plans{2};

  StreamEnd out(int rank, int tag) { return end(plans[static_cast<std::size_t>(rank)].out, 1 - rank, tag); }
  StreamEnd in(int rank, int tag) { return end(plans[static_cast<std::size_t>(rank)].in, 1 - rank, tag); }
  void flow(int rank, std::vector<StreamEnd> sources, std::vector<StreamEnd> targets, std::string_view label,
            int count = 1) {
    const Walk walk = {0, 1, count, count};
    plans[static_cast<std::size_t>(rank)].lanes[0].flows.push_back(
        {.walk = walk, .sources = std::move(sources), .targets = std::move(targets), .label = label});
  }

 private:
  static StreamEnd end(std::vector<Stream>& streams, int peer, int tag) {
    streams.push_back({.peer = peer, .tag = tag});
    return {static_cast<std::uint16_t>(streams.size() - 1), 0};
  }
};

/// Each rank makes its offer and then looks for the other's. The block goes in `parts`. Either the sender stores them
/// and signals the last, or the receiver reads them and releases the last. The sender waits for that release if the
/// rule says so.
std::vector<Plan> plans_of_pair(TransferWay way, int parts, const ExecutorRules& rules) {
  Pair pair;
  for (int rank = 0; rank < 2; ++rank) {
    Plan& plan = pair.plans[static_cast<std::size_t>(rank)];
    plan.rank = rank;
    plan.ranks = 2;
    plan.blocks = parts;
    plan.lanes.push_back({{}, 1});
    pair.flow(rank, {}, {pair.out(rank, kOfferTag)}, "offer");
    pair.flow(rank, {pair.in(rank, kOfferTag)}, {}, "see");
  }
  if (way == TransferWay::write_in_place) {
    pair.flow(kSender, {}, {}, "store", parts);
    pair.flow(kSender, {}, {pair.out(kSender, kBlockTag)}, "signal");
    pair.flow(kReceiver, {pair.in(kReceiver, kBlockTag)}, {}, "take");
  } else {
    pair.flow(kReceiver, {}, {}, "read", parts);
    if (rules.read(way)) {
      pair.flow(kReceiver, {}, {pair.out(kReceiver, kBlockTag)}, "release");
      pair.flow(kSender, {pair.in(kSender, kBlockTag)}, {}, "await");
    }
  }
  for (Plan& plan : pair.plans) {
    plan.in_streams_max = static_cast<int>(std::max(pair.plans[0].in.size(), pair.plans[1].in.size()));
    plan.out_streams_max = static_cast<int>(std::max(pair.plans[0].out.size(), pair.plans[1].out.size()));
  }
  return pair.plans;
}

StepId step_called(const StepTable& table, int rank, std::string_view label) {
  StepId found = kNoStep;
  for (StepId step = 0; step < table.step_count(); ++step) {
    if (table.rank_of(step) == rank && table.flow_of(step).label == label) found = step;
  }
  return found;
}

/// After so many offers the first line is used again. 0 after a fault.
int lines_in_turn(const ExecutorRules& rules, Faults& faults) {
  std::set<std::uint64_t> used;
  int lines = 0;
  for (; used.insert(rules.line(static_cast<std::uint64_t>(lines))).second; ++lines) {
    const std::uint64_t line = *used.rbegin();
    if (line < kOfferLines) continue;
    faults.add("a buffer offer of a pairwise exchange goes to line " + std::to_string(line) + " of " +
               std::to_string(kOfferLines));
    return 0;
  }
  for (std::uint64_t offer = 0; offer < 8 * kOfferLines; ++offer) {
    if (rules.line(offer) == rules.line(offer % static_cast<std::uint64_t>(lines))) continue;
    faults.add("buffer offer " + std::to_string(offer) + " of a pairwise exchange is not in the line whose turn it is");
    return 0;
  }
  return lines;
}

void check_pair(TransferWay way, int parts, int lines, const ExecutorRules& rules, Faults& faults) {
  PlanRequest request;
  request.collective = Collective::barrier;
  request.topology = Topology::node(2);
  const std::vector<Plan> plans = plans_of_pair(way, parts, rules);
  const StepTable table = tabulate(request, plans, faults);
  if (faults.any()) return;
  Precedence precedence(table, 1);
  if (!precedence.zero_cycle().empty()) return faults.add(precedence.zero_cycle());
  for (const int rank : {kSender, kReceiver}) {
    if (precedence.precedes(step_called(table, 1 - rank, "see"), step_called(table, rank, "offer"), lines)) continue;
    faults.add("a buffer offer of a pairwise exchange may overwrite that of " + std::to_string(lines) +
               " calls before, which the peer still reads");
  }
  if (way == TransferWay::write_in_place) {
    const StepId first = step_called(table, kSender, "signal") - parts;
    if (!precedence.precedes(step_called(table, kReceiver, "take"), first, 1)) {
      faults.add("a block may be written in place before the one of the call before is taken");
    }
  } else if (!outlasts(table, kSender, step_called(table, kReceiver, "read"), precedence)) {
    faults.add("the sender's call may end before its block is read in place");
  }
}

/// Both ends choose by the same offers. The way must be one that those allow.
void check_ways(const ExecutorRules& rules, Faults& faults) {
  for (const OfferKind reach : {kByValue, kInArena, kReadable}) {
    for (const bool can_write : {false, true}) {
      for (const bool prefers_reads : {false, true}) {
        PairwiseExchange exchange;
        exchange.prefers_reads = prefers_reads;
        const TransferWay way = rules.way(exchange, reach, can_write);
        const bool possible = way == TransferWay::through_slots || (way == TransferWay::write_in_place && can_write) ||
                              (way == TransferWay::read_in_place && reach == kInArena) ||
                              (way == TransferWay::read_privately && reach == kReadable);
        if (possible) continue;
        faults.add("a block goes by way " + std::to_string(static_cast<int>(way)) + ", which the offers " +
                   std::to_string(reach) + " and " + std::to_string(can_write ? 1 : 0) + " do not allow");
      }
    }
  }
}

}  // namespace

void check_transfers(const ExecutorRules& rules, Faults& faults) {
  check_ways(rules, faults);
  const int lines = lines_in_turn(rules, faults);
  if (faults.any()) return;
  constexpr int kPartsMost = 4;  // a first one, a last one, and those between, of which all are alike
  for (int parts = 1; parts <= kPartsMost && !faults.any(); ++parts) {
    for (const std::size_t rest_bytes : {std::size_t{1}, kPortionBytes - 1, kPortionBytes}) {
      const std::size_t block_bytes = static_cast<std::size_t>(parts - 1) * kPortionBytes + rest_bytes;
      if (completing_part(block_bytes, rules, faults) != parts - 1) return;
    }
    for (const TransferWay way :
         {TransferWay::write_in_place, TransferWay::read_in_place, TransferWay::read_privately}) {
      check_pair(way, parts, lines, rules, faults);
      if (faults.any()) return;
    }
  }
}

}  // namespace torii::verification
