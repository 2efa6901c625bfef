// SPDX-License-Identifier: Apache-2.0
// The puts that arrive at an engine as messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/fabric/words.hpp"
#include "transports/ucx/api.hpp"
#include "transports/ucx/message.hpp"
#include "transports/ucx/pool.hpp"
#include "transports/ucx/shared.hpp"
#include "transports/ucx/worker.hpp"

namespace torii::ucx {

/// Stores payloads and publishes their signals, in calls of the worker. Not thread-safe: the engine has the lock.
class Arrivals {
 public:
  /// Takes the worker's messages that carry puts. Throws Error.
  Arrivals(Worker& worker, const Shared& shared);
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// Whether UCX is storing a payload anywhere, or in that part of the arena.
  bool are_any() const noexcept;
  bool is_arriving(std::uint64_t offset, std::size_t bytes) const noexcept;

 private:
  /// A payload that is being fetched into the arena after its header has arrived.
  struct Arrival {
    Arrivals* arrivals = nullptr;
    Arrival* next_free = nullptr;
    Header header{};
    std::size_t bytes = 0;  ///< 0: nothing is being fetched
  };

  ucs_status_t take(const Header& header, void* data, std::size_t bytes, bool is_here) noexcept;
  void publish(const Header& header) noexcept { store_word(shared_.arena + header.signal_offset, header.signal); }

  static ucs_status_t on_put(void* arrivals, const void* header, std::size_t header_bytes, void* data,
                             std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t on_piece(void* arrivals, const void* header, std::size_t header_bytes, void* data,
                               std::size_t bytes, const ucp_am_recv_param_t* how);
  static void on_arrived(void* request, ucs_status_t status, std::size_t bytes, void* arrival);

  Worker& worker_;
  Shared shared_;
  Pool<Arrival> fetched_;
};

}  // namespace torii::ucx
