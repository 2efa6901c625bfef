// SPDX-License-Identifier: Apache-2.0
// One path through UCX: a worker of a device, its writes, and what arrives through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "transports/ucx/arrivals.hpp"
#include "transports/ucx/liveness.hpp"
#include "transports/ucx/shared.hpp"
#include "transports/ucx/worker.hpp"
#include "transports/ucx/writes.hpp"

namespace torii::ucx {

/// Thread-safe behind its own lock; UCX is asked for no locks of its own, unless engines share the device.
class Engine {
 public:
  /// Opens a worker. If the engine puts, the device has the arena registered. Throws Error.
  Engine(std::shared_ptr<Device> device, int number, const Shared& shared);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// See Worker.
  std::string card() const { return worker_.card(); }
  /// Connects to the peers' engines of the same number. Throws Error.
  void connect(const std::vector<std::string>& cards);

  /// Registers one more extent, if no other engine of the device has done so. Throws Error{no_resource}.
  void pin(const Extent& extent);
  Status put(const Put& put) noexcept;
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept;
  /// Moves what UCX holds and handles messages; does nothing if another thread does so. False if there was nothing.
  bool progress() noexcept;
  /// True if nothing reads a source any more, except for puts to lost peers.
  bool drained() noexcept;
  /// Asks every peer that received puts to confirm that all have arrived; confirmed() says whether they have.
  void flush() noexcept;
  bool confirmed() noexcept;
  /// See Liveness.
  void greet(int peer) noexcept;
  bool is_greeted(int peer) noexcept;
  void take_leave(int peer) noexcept;
  bool has_left(int peer) noexcept;
  /// UCX watches connections by itself, for all engines.
  static bool probe(int, std::int64_t) noexcept { return true; }
  void doubt(int peer, std::int64_t now_ns) noexcept;
  /// Whether UCX is storing a payload in that part of the arena.
  bool is_arriving(std::uint64_t offset, std::size_t bytes) noexcept;
  /// Ends all operations and takes no more: puts do nothing.
  void close() noexcept;

  /// Becomes readable when progress() has something to do; -1 if none was wanted.
  int wait_descriptor() const noexcept { return worker_.wait_descriptor(); }
  /// False if progress() has to be called before anybody polls wait_descriptor().
  bool may_sleep(int& most_us) noexcept;

 private:
  Shared shared_;
  Worker worker_;
  bool is_closed_ = false;  ///< guarded by mutex_

  std::mutex mutex_;
  Writes writes_;
  Arrivals arrivals_;
  Liveness liveness_;
  std::uint32_t seen_changes_ = 0;  ///< of the states of the peers
};

}  // namespace torii::ucx
