// SPDX-License-Identifier: Apache-2.0
// The two ends of a stream, on a standing ring of its channel (runtime/rings). Only this code knows entries, payloads
// in the signal's line, counts, and credits and their groups. How rings send is in sending.hpp. Within a node a count
// says which entries are free, and payloads that are longer than a line are in the sender's outbox; between nodes
// credits say so, and payloads follow the line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/fabric/words.hpp"
#include "runtime/plan/crediting.hpp"
#include "runtime/rings/ring_ends.hpp"

namespace torii {

class EngineBalancer;
struct RunningCall;

/// Which entry of its ring a message uses. Rings have a power of two of them.
struct EntryOrder {
  std::uint64_t count = 1;
  std::uint64_t of(std::uint64_t message) const noexcept { return message & (count - 1); }
};

/// Which of its ring's places in the outbox a message uses; there are any number of them.
struct PlaceOrder {
  std::uint64_t count = 1;
  std::uint64_t mask = 0;  ///< count - 1 where that is a mask and not 0

  PlaceOrder() = default;
  explicit PlaceOrder(std::uint64_t places) noexcept
      : count(places), mask((count & (count - 1)) == 0 ? count - 1 : 0) {}
  std::uint64_t of(std::uint64_t message) const noexcept { return mask != 0 ? message & mask : message % count; }
};

/// Which engines carry a stream's messages, and its credits back.
struct RingEngines {
  int first = 0;  ///< remote: `count` engines from this one on take turns
  int count = 1;
  bool in_rotation = false;            ///< remote: each message uses the engine whose turn it is in the whole call
  EngineBalancer* balancer = nullptr;  ///< of an out-stream whose engines balance their load; of an in-stream: that of
                                       ///< a stream to the same peer
};

/// The place of a stream, as its installation computes it.
struct RingPlace {
  int peer = 0;                  ///< rank in the context
  bool remote = false;           ///< the peer is on another node: all its messages go by value
  bool leads = true;             ///< out: no earlier stream of its group holds the payload
  std::uint32_t messages = 1;    ///< per segment; bundles, where there are any
  std::byte* entries = nullptr;  ///< in: own arena. out: the peer's, within the node
  std::size_t stride = 0;        ///< from one entry to the next
  // For a stream between nodes alone:
  std::uint32_t credit_group = 1;  ///< so many consecutive messages share a credit
  RingEngines engines;
  std::uint64_t entries_offset = 0;   ///< in the receiver's arena
  std::byte* credit_words = nullptr;  ///< out: own arena
  std::uint64_t credits_offset = 0;   ///< in: the sender's arena
};

/// The common part of both ends. Message numbers never restart: they count from the making of the team.
class Ring {
 public:
  Ring() = default;
  explicit Ring(const RingPlace& place, RingEnd& end) noexcept : place_(place), end_(&end) { use(EntryKind::line); }

  int peer() const noexcept { return place_.peer; }
  bool remote() const noexcept { return place_.remote; }
  const RingPlace& place() const noexcept { return place_; }
  /// For the installation of the plan.
  RingPlace& place() noexcept { return place_; }
  /// The number of the first message of the channel's call.
  std::uint64_t first() const noexcept { return end_->first; }
  /// From the first entry to that of the message.
  std::size_t offset(EntryOrder entries, std::uint64_t message) const noexcept {
    return entries.of(message) * place_.stride;
  }
  /// The place of the payload in the first entry, for messages of so many bytes (all of a bundle together).
  std::byte* first_payload(std::size_t bytes) const noexcept {
    return place_.entries + (is_inline(bytes) ? sizeof(std::uint64_t) : kLineBytes);
  }
  std::byte* payload(EntryOrder entries, std::uint64_t message, std::size_t bytes) const noexcept {
    return first_payload(bytes) + offset(entries, message);
  }
  /// Whether the payload is in the signal's own line.
  static bool is_inline(std::size_t bytes) noexcept { return bytes <= kInlineBytes; }
  /// From now on messages are in entries of that kind, if the peer is on this node.
  void use(EntryKind kind) noexcept {
    if (place_.remote) return;
    place_.entries = end_->entries[static_cast<std::size_t>(kind)];
    place_.stride = entry_bytes(kind);
  }

 protected:
  RingPlace place_;
  RingEnd* end_ = nullptr;
};

/// The sender's end.
class SendRing : public Ring {
 public:
  SendRing() = default;
  SendRing(const RingPlace& place, SendEnd& end) noexcept : Ring(place, end) {}

  SendEnd& end() const noexcept { return *static_cast<SendEnd*>(end_); }
  /// From the beginning of the outbox to the payload of a message that does not fit into its line.
  std::size_t payload_offset(const PlaceOrder& places, std::uint64_t message) const noexcept {
    const SendEnd& ring = end();
    return ring.part + places.of(message - ring.first) * ring.payload_bytes;
  }

  /// Within the node: whether the entry of `message` is free, and its place in the outbox if it needs one.
  bool has_entry(const RunningCall& call, std::uint64_t message) const noexcept;
  /// Between nodes: whether the entry of `message` is free.
  bool may_fill(const RunningCall& call, EntryOrder entries, std::uint64_t message) const noexcept {
    if (!is_credited(entries, message)) return false;
    if (place_.engines.balancer != nullptr) time_engines(call);
    return true;
  }
  /// Whether an engine has room for a message, or no credit has come for too long to wait for one.
  bool finds_engine(const RunningCall& call) const noexcept {
    return place_.engines.balancer == nullptr || has_room(call);
  }
  /// Whether the receiver has taken all messages up to this one; between nodes it has a credit of its own.
  bool is_taken(EntryOrder entries, std::uint64_t message) const noexcept {
    if (!remote()) return end().is_taken_below(message + 1);
    return load_word(place_.credit_words + entries.of(message) * sizeof(std::uint64_t)) == message + 1;
  }
  /// Whether the payload is stored for this stream.
  bool stores(std::size_t bytes) const noexcept { return is_inline(bytes) || place_.leads; }
  /// Between nodes: tells the peer that the message is there. Its `bytes` leave from RunningCall::payload(), or from
  /// `from`. The status is bad if that failed.
  void signal(RunningCall& call, std::uint32_t signature, std::uint64_t message, std::size_t bytes,
              const std::byte* from = nullptr) const noexcept;
  /// The same within the node, where the payload is in the entry or in the outbox.
  void signal_entry(RunningCall& call, std::uint32_t signature, std::uint64_t message,
                    std::size_t bytes) const noexcept;
  /// Within a rank: both ends are its own.
  void hand_over(EntryOrder entries, std::uint32_t signature, std::uint64_t message) const noexcept {
    store_word(place_.entries + offset(entries, message), signal_word(signature, message));
  }

 private:
  /// Whether the entry's last message, and with it its group, has been credited, in the word of the group's first
  /// entry.
  bool is_credited(EntryOrder entries, std::uint64_t message) const noexcept {
    if (message < entries.count) return true;
    const std::uint64_t group = place_.credit_group;
    const std::uint64_t first = awaited_group(message, entries.count, group);
    return load_word(place_.credit_words + entries.of(first) * sizeof(std::uint64_t)) == first + group;
  }
  void time_engines(const RunningCall& call) const noexcept;
  bool has_room(const RunningCall& call) const noexcept;
};

/// The receiver's end.
class ReceiveRing : public Ring {
 public:
  ReceiveRing() = default;
  ReceiveRing(const RingPlace& place, ReceiveEnd& end) noexcept : Ring(place, end) {}

  ReceiveEnd& end() const noexcept { return *static_cast<ReceiveEnd*>(end_); }
  bool arrived(EntryOrder entries, std::uint32_t signature, std::uint64_t message) const noexcept {
    return arrived_at(offset(entries, message), signature, message);
  }
  /// With the offset() of the message.
  bool arrived_at(std::size_t offset, std::uint32_t signature, std::uint64_t message) const noexcept {
    return load_word(place_.entries + offset) == signal_word(signature, message);
  }
  /// Within the node: where the sender says that the payload of an arrived message is, as an offset into its arena.
  /// `offset` is that of the message's entry.
  std::uint64_t outside_offset(std::size_t offset) const noexcept {
    std::uint64_t at = 0;
    std::memcpy(&at, place_.entries + offset + sizeof(std::uint64_t), sizeof(at));
    return at;
  }
  const std::byte* outside_payload(std::size_t offset) const noexcept {
    return end().sender_arena + outside_offset(offset);
  }
  /// Between nodes: gives back the entry of a message that has been taken, by a credit of its own, or with the last one
  /// of its group to be taken.
  void release(RunningCall& call, std::uint64_t message) const noexcept;
  /// The same within the node.
  void take(RunningCall& call, std::uint64_t message) const noexcept;
};

}  // namespace torii
