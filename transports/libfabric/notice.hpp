// SPDX-License-Identifier: Apache-2.0
// The remote completion data of a put: a line of the target's arena, and what the target does there.
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/fabric/words.hpp"

namespace torii::libfabric {

/// A signal travels inverted until the target's progress() inverts it back. A byte that has arrived differs from the
/// signal's byte, so the word that peers poll never equals the signal early, not even half written.
enum class NoticeAction : std::uint64_t {
  wake = 0,     ///< nothing: the word is already in place, and the entry wakes a sleeper
  publish = 1,  ///< invert the line's word
  join = 2,     ///< payload and signal travel separately and unordered: invert when the second one has arrived
};

constexpr std::uint64_t make_notice(NoticeAction action, std::uint64_t line_offset) noexcept {
  return line_offset / kLineBytes << 2 | static_cast<std::uint64_t>(action);
}
constexpr std::uint64_t action_bits(std::uint64_t notice) noexcept { return notice & 3; }
constexpr std::uint64_t line_of(std::uint64_t notice) noexcept { return notice >> 2; }

/// The largest arena whose lines fit into `data_bytes` of completion data: 64 GiB for 4 bytes.
constexpr std::uint64_t arena_bytes_max(std::uint64_t data_bytes) noexcept {
  return data_bytes >= 8 ? UINT64_MAX : (std::uint64_t{1} << (8 * data_bytes - 2)) * kLineBytes;
}

/// The bits that notices use for lines of that many bytes of an arena.
constexpr std::uint64_t notice_bits(std::uint64_t arena_bytes) noexcept {
  const std::uint64_t last = arena_bytes < kLineBytes ? 0 : arena_bytes - kLineBytes;
  return UINT64_MAX >> std::countl_zero(make_notice(NoticeAction::wake, last) | 3);
}

/// The bits above them in completion data of this size. An engine chooses them at random (its mark) and tells them to
/// its peers only. Completion data needs no memory key: without a mark, anybody who reaches the endpoint could have a
/// partly arrived word inverted.
constexpr std::uint64_t mark_bits(std::uint64_t arena_bytes, std::uint64_t data_bytes) noexcept {
  const std::uint64_t all = data_bytes >= 8 ? UINT64_MAX : (std::uint64_t{1} << (8 * data_bytes)) - 1;
  return all & ~notice_bits(arena_bytes);
}

}  // namespace torii::libfabric
