// SPDX-License-Identifier: Apache-2.0
// One operation of a user, from its start to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/team/call_plan.hpp"
#include "runtime/base/status.hpp"

namespace torii {

/// The few words that describe most calls, as the caller of the C interface wrote them and not yet checked. The buffers
/// are not adjacent, unlike in torii_call: compilers copy adjacent words in one load. A load of two words that were
/// just stored one by one waits until both reach the cache.
struct CallKey {
  int collective = 0;
  int type = 0;
  int op = 0;
  int root = 0;
  const void* input = nullptr;
  std::size_t count = 0;
  void* result = nullptr;
};

struct Request {
  enum class State : std::uint8_t { idle, queued, running, done };
  CallArguments arguments;
  CallPlan* call_plan = nullptr;
  int channel = -1;  ///< a persistent operation's own channel
  bool persistent = false;
  State state = State::idle;
  Status status = Status::ok;
  std::uint64_t sequence = 0;  ///< in the order of calls on the shared channels, or persistent_sequence()
  std::size_t runs_on = 0;     ///< the channel
  /// CallHistory::salt() when the call was started. Persistent operations may be started in any order, so theirs is
  /// that of their preparation, and counts their own refused starts.
  std::uint32_t salt = 0;
  std::uint32_t salt_prepared = 0;
  std::uint32_t starts_refused = 0;
  /// The input of an alltoall in place as it was at the start: results arrive before all of the input is sent.
  std::unique_ptr<std::byte[]> input_copy;
  std::size_t input_copy_bytes = 0;
  /// The sums of small floats that are made as float; `input_copy` is then the input as float.
  std::unique_ptr<std::byte[]> result_copy;
  std::size_t result_copy_bytes = 0;
  std::unique_ptr<UnequalBlocks> unequal;
  std::vector<std::size_t> block_counts;  ///< to which the arguments' point, once they have been read
  std::size_t input_bytes() const noexcept { return unequal ? unequal->input_bytes : call_plan->input_bytes; }
  std::size_t result_bytes() const noexcept { return unequal ? unequal->result_bytes : call_plan->result_bytes; }
};

}  // namespace torii
