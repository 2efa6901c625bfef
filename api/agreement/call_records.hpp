// SPDX-License-Identifier: Apache-2.0
// The call records in TeamControl: written by their rank, read by mates that are stuck.
#pragma once

#include <cstdint>
#include <optional>

#include "api/agreement/team_control.hpp"

namespace torii {

/// Writes the fields of `told` except CallSnapshot::completed.
inline void write_record(TeamControl& control, const CallSnapshot& told) noexcept {
  CallRecord& line = control.call_records[record_index(told.sequence)];
  // A reader takes the fields only between two equal looks at the sequence; release stores keep this order everywhere.
  line.sequence.store(0, std::memory_order_relaxed);
  line.count.store(told.count, std::memory_order_release);
  line.kind.store(told.kind, std::memory_order_release);
  line.root.store(told.root, std::memory_order_release);
  line.sequence.store(told.sequence, std::memory_order_release);
}

/// The record of that call; nothing if a later call has replaced it.
std::optional<CallSnapshot> read_record(const TeamControl& control, std::uint64_t sequence) noexcept;

/// True when `shown` is that call, or a later one of the same order.
constexpr bool is_at_or_after(std::uint64_t shown, std::uint64_t sequence) noexcept {
  return is_persistent(shown) == is_persistent(sequence) && shown >= sequence;
}
/// True when the call records contain that call, or a later one of the same order.
bool has_recorded(const TeamControl& control, std::uint64_t sequence) noexcept;
/// The last call on the shared channels that the call records contain; 0: none.
std::uint64_t last_recorded(const TeamControl& control) noexcept;

}  // namespace torii
