// SPDX-License-Identifier: Apache-2.0
// Finds blocks for which two ranks give unequal lengths.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "api/running/failure_monitor.hpp"

namespace torii {

std::string FailureMonitor::fault_text(const LengthFault& fault) const {
  const std::string peer = members_.text(members_.member_of(fault.peer));
  const std::string own = members_.text(members_.rank());
  const std::string& sender = fault.comes_in ? peer : own;
  const std::string& receiver = fault.comes_in ? own : peer;
  if (fault.is_message) {
    return "calls differ: the messages from " + sender + " to " + receiver + " are not those that it awaits";
  }
  if (fault.is_earlier && fault.peer_bytes == 0 && fault.own_bytes == 0) {
    return sender + " has sent " + receiver +
           " a block that it did not expect: unequal lengths for a block between them";
  }
  const std::string sent = std::to_string(fault.comes_in ? fault.peer_bytes : fault.own_bytes);
  const std::string expected = std::to_string(fault.comes_in ? fault.own_bytes : fault.peer_bytes);
  return sender + " has " + sent + " bytes for " + receiver + ", which has " + expected +
         ": unequal lengths for a block between them";
}

/// Looks for a block to which its two ranks gave different lengths. Call records hold no lengths of blocks, so signals
/// are compared, also with the signatures of earlier calls: a rank whose block was empty then did not expect the
/// message that now stands before the awaited one.
std::optional<Finding> FailureMonitor::find_other_length(const OwnView& waiting_own) {
  for (const auto& channel : channels_) {
    if (channel->current == nullptr || !channel->execution.running()) continue;
    const Request& request = *channel->current;
    const std::function<bool(int)> has_ended = [&](int member) {
      return board_.completed_by(member) >= request.sequence;
    };
    std::array<std::uint32_t, kSharedRecords> earlier;
    std::size_t count = 0;
    for (std::uint64_t back = 0; back < std::min<std::uint64_t>(kSharedRecords, calls_.sequence()); ++back) {
      const std::optional<CallSnapshot> recorded = calls_.recorded(calls_.sequence() - back);
      if (!recorded || recorded->sequence >= request.sequence || recorded->count != kUnequalInRecord) continue;
      earlier[count++] = static_cast<std::uint32_t>(recorded->kind >> 32);
    }
    const LengthEvidence evidence = {{earlier.data(), count}, has_ended, waiting_own.waits_long()};
    if (!channel->execution.finds_other_length(evidence)) continue;
    // A peer that has ended this call may have refused it: its notice is visible by now.
    OwnView own = waiting_own;
    set_request(own, request);
    look_at_calls(request);
    if (auto found = find_refused_call(watched_, own)) return found;
    if (auto found = find_other_call(watched_, own)) return found;
    return transport_finding(channel->execution, request);
  }
  return {};
}

}  // namespace torii
