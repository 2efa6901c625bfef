// SPDX-License-Identifier: Apache-2.0
// Which engine carries the next message of a stream to another node: messages are assigned as credits come back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "runtime/plan/crediting.hpp"

namespace torii {

/// For one stream. A put that has left says nothing about the path: its bytes may be in a queue of the kernel or of a
/// switch. A credit says that the receiver has had the message, so engines are judged by credits alone. The next
/// message goes to the engine with the earliest expected end: (messages under way + 1) x time per message.
///
/// A slot is filled anew only after its own credit, so all slots soon wait for the one whose message is on the slowest
/// engine. With kSlotsLeast slots an engine at a tenth of the others' rate does its share and delays no message.
///
/// An engine begins with a few messages under way, and may have one more for each that has come back. Otherwise the
/// first engine that is known would be assigned all slots that are left, before the others are known.
class EngineBalancer {
 public:
  /// Streams with fewer slots take engines in rotation.
  static constexpr int kSlotsLeast = kSharedSlotsLeast;

  EngineBalancer(int slots, int engines);

  /// A call begins: nobody has looked since the last one, so the credits that have come meanwhile say nothing of how
  /// long their messages took. A call ends when its last messages have left, and the next one may begin much later.
  void resume() noexcept { resumes_ = true; }
  /// Takes in the credits that have come; `credits` are the stream's words, one per slot.
  void look(const std::byte* credits, std::int64_t now_ns) noexcept;
  /// Whether an engine may have one more message under way.
  bool has_room() const noexcept;
  /// Whether no credit has come for so long that a message should not wait for room any more. Its receiver may need it
  /// before it can take the others.
  bool has_waited(std::int64_t now_ns) const noexcept;
  /// The engine of the next message.
  int next() const noexcept;
  void sent(int engine, std::uint64_t message, std::int64_t now_ns) noexcept;
  /// The engine for a credit to the peer of this stream. It has the shortest wait (messages under way x time per
  /// message); of equal ones, the next after `turn`.
  int least_busy(std::uint64_t turn) const noexcept;

 private:
  struct Message {
    std::uint64_t number = 0;
    std::int64_t sent_ns = 0;
    int engine = -1;  ///< -1: its credit has been seen
  };
  struct Engine {
    std::uint32_t under_way = 0;
    std::uint32_t room = 2;        ///< so many may be under way, while others have room
    std::int64_t returned_ns = 0;  ///< when its last credit was seen
    double message_ns = 0;         ///< what a message takes it; 0: not known
  };

  bool is_known() const noexcept;
  void close(Message& message) noexcept;
  void time(Engine& engine, std::uint32_t messages, std::int64_t began_ns, std::int64_t now_ns) noexcept;

  std::vector<Message> by_slot_;
  std::array<Engine, kEnginesMax> engines_{};
  int engine_count_;
  std::size_t open_ = 0;       ///< messages whose credits have not been seen
  std::int64_t heard_ns_ = 0;  ///< when a credit was seen last, or the first message sent that waits for one
  bool resumes_ = false;       ///< no look yet in this call
};

}  // namespace torii
