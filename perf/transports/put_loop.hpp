// SPDX-License-Identifier: Apache-2.0
// Two ranks that put numbered messages into each other's slots: one interface for torii's transport and for the bare
// loops beside which it is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/fabric/transport.hpp"

namespace torii::perf {

/// Where a loop's messages stand, equal on both ranks: `slots` slots for what comes, then as many for what goes. Each
/// is a line and room for `payload_bytes`; message n uses slot n mod `slots`.
struct SlotLayout {
  std::size_t slots = 1;
  std::size_t payload_bytes = 64;  ///< a multiple of 64

  std::size_t slot_bytes() const noexcept { return 64 + payload_bytes; }
  std::size_t incoming_offset(std::uint64_t number) const noexcept { return number % slots * slot_bytes(); }
  std::size_t outgoing_offset(std::uint64_t number) const noexcept {
    return slots * slot_bytes() + incoming_offset(number);
  }
  std::size_t bytes() const noexcept { return 2 * slots * slot_bytes(); }
};

/// One way to put. Memory for the slots is the caller's and alive until the loop is gone.
class PutLoop {
 public:
  explicit PutLoop(std::byte* memory) : memory_(memory) {}
  virtual ~PutLoop() = default;
  PutLoop(const PutLoop&) = delete;
  PutLoop& operator=(const PutLoop&) = delete;

  /// Both ranks, with nothing under way and a barrier before and after: lays the slots out anew, zeroed, and counts
  /// messages from 1 again. The memory must hold layout.bytes().
  virtual void begin(const SlotLayout& layout);
  /// Puts the next message, `bytes` from its outgoing slot. Throws Failure.
  void put(std::size_t bytes) { put_message(++put_, bytes); }
  /// Returns when the peer's next message of `bytes` stands in its slot. Throws Failure, kTimeout after 30 s.
  void wait(std::size_t bytes);
  /// Returns when nothing reads outgoing slots any more. Throws as wait().
  void drain();
  /// One look at what has come and what is under way.
  virtual void poll() = 0;

  const SlotLayout& layout() const noexcept { return layout_; }
  std::byte* outgoing(std::size_t slot) noexcept { return memory_ + layout_.outgoing_offset(slot) + 64; }
  /// Where a payload of that length arrives.
  virtual std::byte* incoming(std::size_t slot, std::size_t bytes) noexcept = 0;

  /// Called now and then while wait() sees nothing: moves what else this process has to move.
  std::function<void()> on_quiet;

 protected:
  virtual void put_message(std::uint64_t number, std::size_t bytes) = 0;
  /// One poll, then whether the message has come.
  virtual bool has_come(std::uint64_t number, std::size_t bytes) = 0;
  /// One poll, then whether all own messages have left their slots.
  virtual bool is_drained() = 0;
  std::byte* memory() const noexcept { return memory_; }

 private:
  template <class Done>
  void spin(const char* what, std::uint64_t number, const Done& done);

  std::byte* memory_;
  SlotLayout layout_;
  std::uint64_t put_ = 0;
  std::uint64_t got_ = 0;
};

/// Through a torii transport whose arena is `memory`.
class TransportLoop final : public PutLoop {
 public:
  TransportLoop(Transport& transport, std::byte* memory)
      : PutLoop(memory), transport_(transport), engines_(transport.capabilities().engines) {}
  void poll() override;
  std::byte* incoming(std::size_t slot, std::size_t bytes) noexcept override;

 protected:
  void put_message(std::uint64_t number, std::size_t bytes) override;
  bool has_come(std::uint64_t number, std::size_t bytes) override;
  bool is_drained() override;

 private:
  void check(Status status);

  Transport& transport_;
  int engines_;
};

}  // namespace torii::perf
