// SPDX-License-Identifier: Apache-2.0
// A send and a receive, as their callers keep them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/status.hpp"

namespace torii {

/// A receive with these takes the send of any rank, or with any tag.
inline constexpr int kAnyRank = -1;
inline constexpr int kAnyTag = -1;

/// Tells a send from others; all that a receive needs to know of it before it takes the bytes.
struct Envelope {
  int from = 0;            ///< rank of the team
  int tag = 0;             ///< at least 0
  std::uint16_t type = 0;  ///< of the elements: compared, never understood
  std::size_t bytes = 0;
};

/// The common part of sends and receives. The caller keeps the object and its bytes until it is done.
struct PairOperation {
  bool done = false;                   ///< a send: the caller may change the bytes. A receive: they are there
  Status status = Status::ok;          ///< when it is done
  PairOperation* next_done = nullptr;  ///< as PointToPoint::take_done() gives them
  PairOperation* before = nullptr;     ///< the neighbours among those that are open
  PairOperation* behind = nullptr;
  void* owner = nullptr;  ///< for the caller
};

struct Send : PairOperation {
  int to = 0;
  Envelope envelope;
  const std::byte* data = nullptr;
  bool reachable = false;    ///< `data` is in the own arena
  std::int64_t offset = 0;   ///< there
  std::uint64_t number = 0;  ///< of an announced send, among those to its receiver
};

struct Receive : PairOperation {
  int from = kAnyRank;
  int tag = kAnyTag;
  std::uint16_t type = 0;
  std::byte* data = nullptr;
  std::size_t room_bytes = 0;
  Envelope envelope;          ///< of the send that it has met
  std::size_t got_bytes = 0;  ///< of a send that does not come whole

  bool accepts(const Envelope& sent) const noexcept {
    return (from == kAnyRank || from == sent.from) && (tag == kAnyTag || tag == sent.tag);
  }
  bool has_room_for(const Envelope& sent) const noexcept { return sent.bytes <= room_bytes && sent.type == type; }
};

}  // namespace torii
