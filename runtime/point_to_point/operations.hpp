// SPDX-License-Identifier: Apache-2.0
// A send and a receive, as their callers keep them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/status.hpp"

namespace torii {

/// Of a receive: it takes what any rank sends, or whatever the tag.
inline constexpr int kAnyRank = -1;
inline constexpr int kAnyTag = -1;

/// What tells a send from others, and all that a receive needs to know of it before it takes the bytes.
struct Envelope {
  int from = 0;            ///< rank of the team
  int tag = 0;             ///< at least 0
  std::uint16_t type = 0;  ///< of the elements: compared, never understood
  std::size_t bytes = 0;
};

/// The caller sets all but `done` and `status`, and keeps the object and its bytes until it is done.
struct Send {
  int to = 0;
  Envelope envelope;
  const std::byte* data = nullptr;
  bool reachable = false;      ///< `data` is in the own arena
  std::int64_t offset = 0;     ///< there
  std::uint64_t number = 0;    ///< of an announced send, among those to its receiver
  bool done = false;           ///< the caller may change the bytes
  Status status = Status::ok;  ///< of a send that is done
};

struct Receive {
  int from = kAnyRank;
  int tag = kAnyTag;
  std::uint16_t type = 0;
  std::byte* data = nullptr;
  std::size_t room_bytes = 0;
  Envelope envelope;           ///< of the send that it has met
  std::size_t got_bytes = 0;   ///< of those in slots
  bool done = false;           ///< the bytes are there
  Status status = Status::ok;  ///< of a receive that is done

  bool accepts(const Envelope& sent) const noexcept {
    return (from == kAnyRank || from == sent.from) && (tag == kAnyTag || tag == sent.tag);
  }
};

}  // namespace torii
