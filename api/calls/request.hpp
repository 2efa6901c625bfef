// SPDX-License-Identifier: Apache-2.0
// One operation of a user, from its start to its end.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "api/calls/call_plan.hpp"
#include "api/calls/polling.hpp"
#include "runtime/base/status.hpp"

namespace torii {

struct PairCall;

/// Memory that a request keeps from one start to the next.
struct Copy {
  std::unique_ptr<std::byte[]> data;
  std::size_t bytes = 0;
  /// False when there is no memory.
  bool make_room(std::size_t needed_bytes) noexcept {
    if (bytes >= needed_bytes) return true;
    data.reset(new (std::nothrow) std::byte[needed_bytes]);
    bytes = data == nullptr ? 0 : needed_bytes;
    return data != nullptr;
  }
};

/// The memory with which a call runs where it cannot run with the caller's.
struct Copies {
  /// The input of an alltoall in place as it was at the start: results arrive before all of the input is sent.
  Copy input;
  Copy result;  ///< the sums of small floats that are made as float; `input` is then the input as float
  std::byte* operands = nullptr;  ///< folded from leaves, borrowed from ArenaCopies; nullptr: there are none
};

/// A call that has its place in the order of calls.
struct PlacedCall {
  CallPlan* call_plan = nullptr;
  std::size_t runs_on = 0;     ///< the channel
  std::uint64_t sequence = 0;  ///< in the order of calls on the shared channels, or persistent_sequence()
  /// CallHistory::salt() when the call was started. Persistent operations may be started in any order, so theirs is
  /// that of their preparation, and counts their own refused starts.
  std::uint32_t salt = 0;
};

struct Request : PlacedCall {
  enum class State : std::uint8_t { idle, queued, running, done };
  Request() = default;
  explicit Request(const CallDescription& described) noexcept : call(described) {}
  /// The request of a call that runs already.
  Request(const CallDescription& described, const PlacedCall& placed) noexcept
      : PlacedCall(placed), call(described), state(State::running) {}

  CallDescription call;
  int channel = -1;         ///< a persistent operation's own channel
  bool lacks_copy = false;  ///< copy_input() is still to be called: it began to wait for the places of rings
  bool persistent = false;
  State state = State::idle;
  Status status = Status::ok;
  std::uint32_t salt_prepared = 0;
  std::uint32_t starts_refused = 0;
  Copies copies;
  std::unique_ptr<UnequalBlocks> unequal;
  PairCall* pair = nullptr;               ///< of a send or a receive, which it outlives; nullptr: a collective
  std::vector<std::size_t> block_counts;  ///< to which the call's point, once they have been read
  bool is_started = false;  ///< by torii_start or torii_restart, so that a caller may wait for its end event
  torii_done_function on_done = nullptr;  ///< called once, when it ends
  void* on_done_data = nullptr;
  std::unique_ptr<Polling> polling;  ///< of a request with a deadline of its own, once it has been tested
  struct {
    std::int64_t turn = 0;       ///< as of Polling::is_turn_of()
    int suspect = -1;            ///< a departed member for which a start of this request seems to wait; -1: none
    std::uint64_t sequence = 0;  ///< of that start
    std::int64_t since_ns = 0;   ///< this rank has known both
  } checks;                      ///< the slow ones
  /// How long a wait for it without progress may last.
  std::int64_t timeout_ns(std::int64_t of_team) const noexcept {
    return call.extras.timeout_ns != 0 ? call.extras.timeout_ns : of_team;
  }
  std::size_t input_bytes() const noexcept { return unequal ? unequal->input_bytes : call_plan->input_bytes; }
  std::size_t result_bytes() const noexcept { return unequal ? unequal->result_bytes : call_plan->result_bytes; }
};

}  // namespace torii
