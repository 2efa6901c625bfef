// SPDX-License-Identifier: Apache-2.0
// Pairwise exchanges: each ordered pair of ranks has one ring, whose numbers go on from call to call, whatever plans
// these have. Blocks that go through slots have their payloads in the sender's outbox.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/execution/running_call.hpp"

namespace torii {

/// As a call begins: the numbers of its first messages, and of its buffer offers, are those after the calls before.
void take_numbers(InstalledPlan& plan) noexcept;

/// Takes an extent of the outbox for the blocks that may go through slots; `bytes` has their lengths by peer, 0 for all
/// others. In it a block has a place for each slot of the plan, or as many as the outbox has room for; all blocks have
/// equally many. One is enough, since its messages are taken in their order. False while messages of earlier calls
/// leave no room.
bool claim_blocks(RunningCall& call, std::span<const std::size_t> bytes) noexcept;

/// Before RunningCall::finish(): the numbers go on to the next call.
void hand_on_numbers(RunningCall& call) noexcept;

}  // namespace torii
