// SPDX-License-Identifier: Apache-2.0
// The writes of an engine: active messages, and puts into the memory of peers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "transports/ucx/api.hpp"
#include "transports/ucx/message.hpp"
#include "transports/ucx/pool.hpp"
#include "transports/ucx/shared.hpp"
#include "transports/ucx/worker.hpp"

namespace torii::ucx {

/// Not thread-safe but for are_none_open(): the engine has the lock.
class Writes {
 public:
  Writes(Worker& worker, const Shared& shared);

  /// True if nothing is put to the peer through this engine any more.
  bool is_cut(int peer) const noexcept { return worker_.failures().is_cut(peer); }
  /// Something of a call goes to that peer.
  void use(int peer) noexcept { of(peer).is_used = true; }
  bool is_used(int peer) const noexcept { return peers_[static_cast<std::size_t>(peer)].is_used; }

  Status put(const Put& put) noexcept;
  /// One active message. A payload of up to kInlineBytes need not outlive the call.
  Status send(int peer, MessageId id, const Header& header, const std::byte* payload, std::size_t bytes,
              PutCount* owner = nullptr) noexcept;
  /// Counts as in flight until all puts to the peer have arrived.
  void flush(int peer) noexcept;

  /// Writes to a lost peer need not complete, and nobody waits for them.
  void let_go_of_lost() noexcept;
  /// Nobody waits for any write any more.
  void end() noexcept;
  bool are_none_open() const noexcept { return in_flight_.load(std::memory_order_acquire) == 0; }
  /// The same without writes to lost peers.
  bool is_quiet() const noexcept;

 private:
  struct Peer {
    std::uint32_t in_flight = 0;
    bool is_used = false;
    std::unique_ptr<ExtentTable> table;  ///< while it is being read
  };

  /// Memory that UCX reads until a write completes, and the state of the write.
  struct Operation {
    Writes* writes = nullptr;
    Operation* next_free = nullptr;
    int peer = 0;
    std::size_t bytes = 0;
    Header header{};
    std::array<std::byte, kInlineBytes> payload{};
    PutHold hold;
  };

  Peer& of(int peer) noexcept { return peers_[static_cast<std::size_t>(peer)]; }
  Operation* take(int peer, std::size_t bytes, PutCount* owner) noexcept;
  void read_table(int peer) noexcept;
  Status put_and_signal(const Put& put, const Connection::Place& payload_place,
                        const Connection::Place& signal_place) noexcept;
  Status put_bytes(Operation& operation, const std::byte* source, const Connection::Place& place, std::uint64_t offset,
                   ucp_mem_h memory) noexcept;
  /// Counts the operation, or ends it if UCX has completed it already or refused it.
  Status started(Operation& operation, ucs_status_ptr_t request) noexcept;
  void end(Operation& operation, Status status) noexcept;
  Status fail(int peer, ucs_status_t status, std::size_t bytes) const noexcept;

  static void on_sent(void* request, ucs_status_t status, void* operation);
  static void on_read(void* request, ucs_status_t status, void* operation);

  Worker& worker_;
  const Device& device_;
  Shared shared_;
  std::vector<Peer> peers_;
  Pool<Operation> operations_;
  std::atomic<std::size_t> in_flight_ = 0;
};

}  // namespace torii::ucx
