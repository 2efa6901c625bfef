// SPDX-License-Identifier: Apache-2.0
// Reads call records while their ranks write them.
#include "api/agreement/call_records.hpp"

#include <algorithm>

namespace torii {

std::optional<CallSnapshot> read_record(const TeamControl& control, std::uint64_t sequence) noexcept {
  const CallRecord& line = control.call_records[record_index(sequence)];
  if (line.sequence.load(std::memory_order_acquire) != sequence) return {};
  CallSnapshot snapshot;
  snapshot.sequence = sequence;
  snapshot.kind = line.kind.load(std::memory_order_acquire);
  snapshot.count = line.count.load(std::memory_order_acquire);
  snapshot.root = line.root.load(std::memory_order_acquire);
  // If the record was overwritten for a later call meanwhile, the fields that were read belong to no call. A field of a
  // later call brings the 0 before it along, so this look is too late for the number that was seen first.
  if (line.sequence.load(std::memory_order_relaxed) != sequence) return {};
  return snapshot;
}

bool has_recorded(const TeamControl& control, std::uint64_t sequence) noexcept {
  const auto line_shows = [=](const CallRecord& line) {
    return is_at_or_after(line.sequence.load(std::memory_order_acquire), sequence);
  };
  if (is_persistent(sequence)) return line_shows(control.call_records[record_index(sequence)]);
  return std::any_of(control.call_records, control.call_records + kSharedRecords, line_shows);
}

std::uint64_t last_recorded(const TeamControl& control) noexcept {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < kSharedRecords; ++i) {
    last = std::max(last, control.call_records[i].sequence.load(std::memory_order_acquire));
  }
  return last;
}

}  // namespace torii
