// SPDX-License-Identifier: Apache-2.0
// The two ends of a stream. Only this code knows slots and cells, payloads in the signal's line, credits and their
// groups, and the lines and credits of later slots. How rings send is in sending.hpp. A stream has slots and credits of
// its own, or it uses a standing ring of its channel (runtime/rings): then slots are the ring's entries, a count takes
// the place of credits, and payloads that are longer than a line are in the sender's outbox.
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

/// Which slot of its stream a message uses. All streams of a plan have equally many slots.
struct SlotOrder {
  std::uint64_t count = 1;
  std::uint64_t mask = 0;  ///< count - 1 where that is a mask and not 0

  SlotOrder() = default;
  explicit SlotOrder(int slots) noexcept
      : count(static_cast<std::uint64_t>(slots)), mask((count & (count - 1)) == 0 ? count - 1 : 0) {}
  std::uint64_t of(std::uint64_t message) const noexcept { return mask != 0 ? message & mask : message % count; }
};

/// The cells of a stream in which a call's messages are.
struct Cells {
  std::size_t bytes = 0;   ///< of one; 0: the messages are in slots
  std::size_t offset = 0;  ///< from the stream's first slot
  bool operator==(const Cells&) const = default;
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
  int peer = 0;         ///< rank in the context
  bool remote = false;  ///< the peer is on another node: all its messages go by value
  bool credits = true;
  bool leads = true;               ///< out: no earlier stream of its group holds the payload
  std::uint32_t credit_group = 1;  ///< so many consecutive messages share a credit
  std::uint32_t messages = 1;      ///< per segment; bundles, where there are any
  RingEngines engines;
  std::byte* slots = nullptr;          ///< in: own arena. out: the peer's slots; if remote the own send slots
  std::byte* payload_slots = nullptr;  ///< where payloads behind the signal's line are: `slots`, or the leader's
  std::size_t stride = 0;              ///< from one slot to the next
  std::uint64_t slots_offset = 0;      ///< in the receiver's arena
  std::byte* credit_words = nullptr;   ///< out: own arena; in, with `sleeping`: the sender's
  std::uint64_t credits_offset = 0;    ///< in the sender's arena
  /// The mark of Transport::sleeping(): words are stored without put(), and so arrive in order. nullptr: through put().
  const std::atomic<std::uint32_t>* sleeping = nullptr;
};

/// The common part of both ends. Message numbers never restart. They count from the installation of the plan, or on a
/// standing ring from the making of the team.
class Ring {
 public:
  Ring() = default;
  /// `standing`: one of the channel's, which outlasts the plan; then numbers count from its making.
  explicit Ring(const RingPlace& place, RingEnd* standing = nullptr) noexcept : place_(place), standing_(standing) {
    if (stands()) use({}, kLineBytes);
  }

  int peer() const noexcept { return place_.peer; }
  bool remote() const noexcept { return place_.remote; }
  const RingPlace& place() const noexcept { return place_; }
  /// For the installation of the plan.
  RingPlace& place() noexcept { return place_; }
  /// Whether it is one of the channel's standing rings within the node: its entries have no credits, but a count.
  bool stands() const noexcept { return standing_ != nullptr && !place_.remote; }
  /// The number of the first message of the call; before it the plan's calls had `segments_base` segments.
  std::uint64_t first(std::uint64_t segments_base) const noexcept {
    return standing_ != nullptr ? standing_->first : segments_base * place_.messages;
  }

  std::uint64_t first_standing() const noexcept { return standing_->first; }

  /// The offset of the stream in the receiver's arena, for messages in cells and in slots.
  std::uint64_t stream_offset() const noexcept { return place_.slots_offset - cells_offset_; }
  /// From the first slot to that of the message.
  std::size_t offset(const SlotOrder& slots, std::uint64_t message) const noexcept {
    return slots.of(message) * place_.stride;
  }
  /// The place of the payload in the first slot, for messages of so many bytes (all of a bundle together).
  std::byte* first_payload(std::size_t bytes) const noexcept {
    return is_inline(bytes) ? place_.slots + sizeof(std::uint64_t) : place_.payload_slots + kLineBytes;
  }
  std::byte* payload(const SlotOrder& slots, std::uint64_t message, std::size_t bytes) const noexcept {
    return first_payload(bytes) + offset(slots, message);
  }
  /// Whether the payload is in the signal's own line.
  static bool is_inline(std::size_t bytes) noexcept { return bytes <= kInlineBytes; }
  /// From now on messages are in those cells, or in slots of so many bytes. Cells are for peers of the own node.
  void use(const Cells& cells, std::size_t slot_bytes) noexcept {
    if (stands()) {
      const EntryKind kind = cells.bytes == 0            ? EntryKind::line
                             : cells.bytes == kCellBytes ? EntryKind::cell
                                                         : EntryKind::wide_cell;
      place_.slots = standing_->entries[static_cast<std::size_t>(kind)];
      place_.stride = entry_bytes(kind);
      return;
    }
    if (place_.remote) return;
    place_.slots += cells.offset - cells_offset_;
    place_.slots_offset += cells.offset - cells_offset_;
    place_.stride = cells.bytes != 0 ? cells.bytes : slot_bytes;
    cells_offset_ = cells.offset;
  }

 protected:
  RingPlace place_;
  RingEnd* standing_ = nullptr;  ///< of a standing ring

 private:
  std::size_t cells_offset_ = 0;
};

/// The sender's end.
class SendRing : public Ring {
 public:
  SendRing() = default;
  explicit SendRing(const RingPlace& place, SendEnd* standing = nullptr) noexcept : Ring(place, standing) {}

  /// The end of the standing ring that it is, be it to another node.
  SendEnd& end() const noexcept { return *static_cast<SendEnd*>(standing_); }
  bool has_end() const noexcept { return standing_ != nullptr; }
  /// From the beginning of the outbox to the payload of a message that does not fit into its line.
  std::size_t payload_offset(const SlotOrder& payload_slots, std::uint64_t message) const noexcept {
    const SendEnd& ring = end();
    return ring.part + payload_slots.of(message - ring.first) * ring.payload_bytes;
  }

  /// `free_until` outlasts all rings of the stream.
  void keep_in(std::uint64_t& free_until, const SlotOrder& slots) noexcept {
    if (stands()) return;
    if (has_end()) {
      free_until_ = &end().known;
      looks_further_ = place_.engines.balancer != nullptr;
      return;
    }
    free_until_ = &free_until;
    *free_until_ = place_.engines.balancer == nullptr ? free_below(0, slots.count) : 0;
    looks_further_ = place_.engines.balancer != nullptr;
  }
  /// For messages of one segment each call, in the order of their numbers: what is known of later slots is used.
  void look_ahead(bool in_cells) noexcept {
    if (place_.sleeping == nullptr) return;
    looks_ahead_ = looks_further_ = true;
    claims_ = !in_cells;
  }

  /// Whether the entry of `message` on a standing ring is free, and its place in the outbox if it needs one.
  bool has_entry(const RunningCall& call, std::uint64_t message) const noexcept;
  /// Whether the slot of `message` is free.
  bool may_fill(const RunningCall& call, const SlotOrder& slots, std::uint64_t message) const noexcept {
    if (!place_.credits || message < *free_until_) return true;
    if (!is_credited(slots, message)) return false;
    if (looks_further_) look_further(call);
    return true;
  }
  /// Whether an engine has room for a message, or no credit has come for too long to wait for one.
  bool finds_engine(const RunningCall& call) const noexcept {
    return place_.engines.balancer == nullptr || has_room(call);
  }
  /// Whether the receiver has taken all messages up to this one, which has a credit of its own.
  bool is_taken(const SlotOrder& slots, std::uint64_t message) const noexcept {
    if (stands()) return end().is_taken_below(message + 1);
    return load_word(place_.credit_words + slots.of(message) * sizeof(std::uint64_t)) == message + 1;
  }
  /// Whether this stream's slots are those where the payload is stored.
  bool stores(std::size_t bytes) const noexcept { return is_inline(bytes) || place_.leads; }
  /// Tells the peer that the message is there. Its `bytes` are in the slot; to another node they leave from there, or
  /// from `from`. The status is bad if that failed.
  void signal(RunningCall& call, std::uint32_t signature, std::uint64_t message, std::size_t bytes,
              const std::byte* from = nullptr) const noexcept;
  /// The same on a standing ring.
  void signal_entry(RunningCall& call, std::uint32_t signature, std::uint64_t message,
                    std::size_t bytes) const noexcept;
  /// Within a rank: both ends are its own.
  void hand_over(const SlotOrder& slots, std::uint32_t signature, std::uint64_t message) const noexcept {
    store_word(place_.slots + offset(slots, message), signal_word(signature, message));
  }

 private:
  /// Whether the slot's last message, and with it its group, has been credited, in the word of the group's first slot.
  bool is_credited(const SlotOrder& slots, std::uint64_t message) const noexcept {
    if (message < free_below(0, slots.count)) return true;
    const std::uint64_t group = place_.credit_group;
    const std::uint64_t first = awaited_group(message, slots.count, group);
    return load_word(place_.credit_words + slots.of(first) * sizeof(std::uint64_t)) == first + group;
  }
  void look_further(const RunningCall& call) const noexcept;
  bool has_room(const RunningCall& call) const noexcept;
  void put(RunningCall& call, std::uint64_t word, std::uint64_t message, std::size_t bytes,
           const std::byte* from) const noexcept;
  void claim(const SlotOrder& slots, std::uint64_t message, std::size_t bytes) const noexcept;

  std::uint64_t* free_until_ = nullptr;  ///< all messages below it may be sent, whatever the credits say
  bool looks_further_ = false;
  bool looks_ahead_ = false;
  bool claims_ = false;
};

/// The receiver's end.
class ReceiveRing : public Ring {
 public:
  ReceiveRing() = default;
  explicit ReceiveRing(const RingPlace& place, ReceiveEnd* standing = nullptr) noexcept : Ring(place, standing) {}

  /// The end of the standing ring that it is.
  ReceiveEnd& end() const noexcept { return *static_cast<ReceiveEnd*>(standing_); }
  /// `taken` has a count for each group of slots and outlasts all rings of the stream.
  void keep_in(std::uint8_t* taken) noexcept { taken_ = standing_ != nullptr ? end().in_group.data() : taken; }

  bool arrived(const SlotOrder& slots, std::uint32_t signature, std::uint64_t message) const noexcept {
    return arrived_at(offset(slots, message), signature, message);
  }
  /// With the offset() of the message.
  bool arrived_at(std::size_t offset, std::uint32_t signature, std::uint64_t message) const noexcept {
    return load_word(place_.slots + offset) == signal_word(signature, message);
  }
  /// On a standing ring: where the sender says that the payload of an arrived message is, as an offset into its arena.
  /// `offset` is that of the message's entry.
  std::uint64_t outside_offset(std::size_t offset) const noexcept {
    std::uint64_t at = 0;
    std::memcpy(&at, place_.slots + offset + sizeof(std::uint64_t), sizeof(at));
    return at;
  }
  const std::byte* outside_payload(std::size_t offset) const noexcept {
    return end().sender_arena + outside_offset(offset);
  }
  /// Gives back the slot of a message that has been taken, by a credit of its own, or with the last one of its group to
  /// be taken. For streams with credits.
  void release(RunningCall& call, std::uint64_t message) const noexcept;
  /// The same on a standing ring, whether or not the stream has credits.
  void take(RunningCall& call, std::uint64_t message) const noexcept;

 private:
  void put_credit(RunningCall& call, std::uint64_t message) const noexcept;

  std::uint8_t* taken_ = nullptr;
};

}  // namespace torii
