// SPDX-License-Identifier: Apache-2.0
// Puts and credits of a call, and the engines that carry them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/execution/running_call.hpp"

namespace torii {

/// Whether an engine should draw the stream's next message.
bool is_drawn(RunningCall& call, const InstalledStream& out) noexcept;
/// Gives a put to an engine, and counts. The source is a slot's payload, and goes to the same place in the peer's slot.
void post(RunningCall& call, Put& put, int engine) noexcept;
/// Gives a stream's message to the engine whose turn it is, or that draws the message.
void post_message(RunningCall& call, Put& put, const InstalledStream& out, std::uint64_t message) noexcept;
/// The engine of a message: towards another node one of the pair's own, otherwise (and on virtual time) the next of all
/// in rotation.
int engine_of(RunningCall& call, const InstalledStream& stream, std::uint64_t message) noexcept;
void credit(RunningCall& call, int peer, std::uint64_t credits_offset, std::uint64_t message) noexcept;
/// For a message that came through a slot: alone, or with the last one of its group to be taken.
void give_credit(RunningCall& call, InstalledStream& in, std::uint64_t message) noexcept;

}  // namespace torii
