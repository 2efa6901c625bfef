// SPDX-License-Identifier: Apache-2.0
// The rules of the executor that a proof is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/plan/plan.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "runtime/plan/shortcuts.hpp"
#include "runtime/plan/transfer_rules.hpp"

namespace torii {

/// The rules by which the executor uses rings, bundles messages, and leaves out copies, waits and signals. It calls the
/// same functions (runtime/plan). Tests plant wrong ones.
struct ExecutorRules {
  // ring_rules.hpp
  int (*ring)(std::span<const Stream> streams, std::size_t stream) = ring_of;
  int (*published)(int slots, int slots_least) = published_every;
  // plan.hpp
  bool (*ends_bundle)(const Stream& stream, int position) = [](const Stream& stream, int position) {
    return stream.ends_bundle(position);
  };
  // shortcuts.hpp
  bool (*as_list)(const Plan& plan) = runs_as_list;
  bool (*shared)(const Plan& plan, std::span<const int> feeding, StreamEnd a, StreamEnd b) = shares_payload;
  bool (*result_final)(const BlockUse& use) = result_is_final;
  bool (*operand_kept)(const BlockUse& use) = operand_stays;
  bool (*exchange_operand_kept)(const PairwiseExchange& exchange) = exchange_operand_stays;
  bool (*only_copies)(Collective collective) = only_copies_operands;
  bool (*offers)(bool writes_result, bool by_value) = makes_offer;
  bool (*awaits)(const Stream& stream) = awaits_reader;
  // transfer_rules.hpp
  TransferWay (*way)(const PairwiseExchange& exchange, std::uint64_t reach, bool can_write) = way_of;
  bool (*read)(TransferWay way) = is_read;
  std::uint64_t (*line)(std::uint64_t offers_made) = line_of_offer;
  bool (*completes)(std::size_t done_bytes, std::size_t part_bytes, std::size_t block_bytes) = completes_block;
};

}  // namespace torii
