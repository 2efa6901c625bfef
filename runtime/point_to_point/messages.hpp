// SPDX-License-Identifier: Apache-2.0
// The messages of point-to-point transfers, and how a rank exchanges them with a peer.
//
// A short send travels whole, in one message. A longer one is announced: its bytes stay with the sender until a receive
// has met it. The receiver then reads them where they are and sends a receipt, or requests them, and they come in
// parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/execution/running_call.hpp"
#include "runtime/plan/transfer_rules.hpp"

namespace torii {

enum class MessageKind : std::uint8_t {
  whole = 1,     ///< an envelope and all bytes
  announcement,  ///< an envelope, and where the bytes are
  request,       ///< of the receiver: send the bytes of announcement `bytes` in parts
  part,          ///< the next bytes of the first request that is not complete
  receipt,       ///< of the receiver: it has read the bytes of announcement `bytes`
};

/// At the beginning of each message.
struct Heading {
  MessageKind kind = MessageKind::whole;
  std::uint8_t reach = kByValue;  ///< announcement: an OfferKind
  std::uint16_t type = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;  ///< of the whole send or of the part; request and receipt: the announcement's number
};
/// Follows the heading of an announcement.
struct Announced {
  std::uint64_t number = 0;  ///< among those of the sender to this receiver, from 0 on
  std::uint64_t place = 0;   ///< kInArena: an offset in the sender's arena; kReadable: an address of its process
};
static_assert(sizeof(Heading) + sizeof(Announced) <= kInlineBytes, "announcements fit into the signal's line");

/// So many messages with long payloads may be on their way from a rank to another one.
inline constexpr int kPairPayloads = 8;
/// The most bytes of a place for payloads: those of a rank together take at most 1 MiB, or 64 bytes each.
std::size_t pair_place_bytes(int ranks) noexcept;

/// The words that two ranks of one node tell each other beside their messages, in a line of each other's memory.
class PairWords {
 public:
  /// Towards another node there are none.
  PairWords() = default;
  PairWords(std::byte* theirs, const std::byte* own) noexcept : theirs_(theirs), own_(own) {}

  /// This rank has failed: what it has announced is no longer there. Its caller may change the bytes from now on.
  void withdraw_announcements() noexcept;
  /// Asked after bytes that the peer has announced were read: they are right if this is false.
  bool has_peer_withdrawn() const noexcept;
  /// Tells the peer that its bytes are being read, and asks whether it has told so since the last time.
  void tell_reading() noexcept;
  bool is_peer_reading() noexcept;

 private:
  std::byte* theirs_ = nullptr;
  const std::byte* own_ = nullptr;
  std::uint64_t reads_told_ = 0;
  std::uint64_t reads_seen_ = 0;
};
/// The words take so many bytes.
inline constexpr std::size_t kPairWordsBytes = 2 * sizeof(std::uint64_t);

/// A message that has come.
struct Arrived {
  const std::byte* heading = nullptr;  ///< nullptr: none has
  const std::byte* payload = nullptr;
  std::size_t payload_most = 0;  ///< no more bytes fit where it is; at least those of an Announced
};
/// A message with so many bytes behind its heading fits into the signal's line.
inline constexpr std::size_t kPayloadInLineMost = kInlineBytes - sizeof(Heading);

/// The streams of a rank to and from one peer. Messages are sent, and taken, in the order of their numbers.
class PairStreams {
 public:
  struct Peer {
    int rank = 0;          ///< in the team
    int context_rank = 0;  ///< in the context
    bool remote = false;   ///< on another node
  };
  virtual ~PairStreams() = default;
  PairStreams(const PairStreams&) = delete;
  PairStreams& operator=(const PairStreams&) = delete;

  int rank() const noexcept { return peer_.rank; }
  int context_rank() const noexcept { return peer_.context_rank; }
  bool remote() const noexcept { return peer_.remote; }
  PairWords& words() noexcept { return words_; }

  /// Whether there is room for a message of so many bytes behind its heading.
  virtual bool may_send(const RunningCall& call, std::size_t bytes) noexcept = 0;
  /// May be called if may_send(). `bytes` follow the heading.
  virtual void send(RunningCall& call, const Heading& heading, const void* payload, std::size_t bytes) noexcept = 0;
  /// The next message, if it has come.
  virtual Arrived arrived(const RunningCall& call) const noexcept = 0;
  /// Gives back the room of the message that has arrived.
  virtual void take(RunningCall& call, const Arrived& message) noexcept = 0;

 protected:
  PairStreams(const Peer& peer, const PairWords& words) noexcept : peer_(peer), words_(words) {}

 private:
  const Peer peer_;
  PairWords words_;
};

}  // namespace torii
