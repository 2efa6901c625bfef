// SPDX-License-Identifier: Apache-2.0
// Where the executor leaves out a copy, a buffer offer or a wait. The executor follows these rules, and the verifier
// proves that nothing is missing (ExecutorRules).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/plan/plan.hpp"

namespace torii {

/// Whether a rank runs the plan as a linear program if its vector has one segment: the steps of one lane in their
/// order, without buffer offers. In an alltoall in place it then needs no copy of its input.
bool runs_as_list(const Plan& plan);

/// By out-stream: how many flows feed it.
std::vector<int> flows_feeding(const Plan& plan);

/// Whether two targets of a flow share one copy of their payload: the streams always carry the same. `feeding` is
/// flows_feeding(). To peers on other nodes they share the copy that is sent.
bool shares_payload(const Plan& plan, std::span<const int> feeding, StreamEnd a, StreamEnd b);

/// The uses of one block of a rank's vectors by a call.
struct BlockUse {
  int kept = 0;              ///< so many steps of a segment store it in the result
  bool is_sent = false;      ///< the own operand goes to another node
  bool overwritten = false;  ///< a step stores something else there, if operand and result are the same memory
};
/// By block. `is_remote` tells of an out-stream, by its index, whether it goes to another node.
std::vector<BlockUse> block_uses(const Plan& plan, const std::function<bool(int)>& is_remote);

/// Engines may send a result block from where it is kept: nothing else is stored there in the same call.
constexpr bool result_is_final(const BlockUse& use) noexcept { return use.kept <= 1; }
/// Engines may send the operand from where it is even if it is the result's memory.
constexpr bool operand_stays(const BlockUse& use) noexcept { return !(use.is_sent && use.overwritten); }
/// The same for a pairwise exchange. In a scatter or gather in place only the own block is both input and result.
constexpr bool exchange_operand_stays(const PairwiseExchange& exchange) noexcept {
  return exchange.from >= 0 || exchange.to >= 0;
}

/// Whether ranks combine no operand that they read in place. Only then may they take it from private memory: a kernel
/// cannot fold what a system call has yet to copy.
constexpr bool only_copies_operands(Collective collective) noexcept { return !combines(collective); }

/// Whether a rank makes a buffer offer to a peer in this call. `writes_result`: the peer writes into its result in
/// place. `by_value`: its operand goes by value, and the message in the slot says so. Without an offer its call may end
/// before the peer looks, so its next offer could overwrite one that is being read.
constexpr bool makes_offer(bool writes_result, bool by_value) noexcept { return writes_result || !by_value; }

/// Whether the call of a rank whose operand is read in place waits at its end for the reader's count. If not, the
/// plan's own messages make it wait.
constexpr bool awaits_reader(const Stream& stream) noexcept {
  return stream.delivery == Delivery::read_in_place && stream.is_awaited;
}

}  // namespace torii
