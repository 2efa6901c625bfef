// SPDX-License-Identifier: Apache-2.0
// A UCX context: the devices of a selection, and the arena as they have it registered.
#pragma once

#include <cstddef>
#include <string>

#include "transports/ucx/api.hpp"
#include "transports/ucx/providers.hpp"

namespace torii::ucx {

/// How engines work; equal on all ranks.
struct Manner {
  bool puts = false;         ///< longer payloads are put, see Writes::put()
  bool peer_errors = false;  ///< UCX watches the peers
  bool wakes = false;        ///< a descriptor for sleeping is wanted
};

/// Engines that put share the device of their selection, so that its adapter pins the arena once, not for each engine.
/// Others have one each, and register nothing. Safe for the threads of several engines if is_shareable().
class Device {
 public:
  /// Throws Error.
  Device(const Selection& selection, const Manner& manner, int ranks);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Before any engine has a card of it. Throws Error.
  void register_arena(std::byte* arena, std::size_t bytes);
  /// The remote key of the arena, packed; empty if it is not registered. Throws Error.
  std::string arena_key() const;
  const Manner& manner() const noexcept { return manner_; }
  ucp_mem_h arena() const noexcept { return arena_memory_; }
  ucp_context_h context() const noexcept { return context_.get(); }
  /// Some builds of UCX have no locks.
  bool is_shareable() const noexcept { return is_shareable_; }
  /// UCX's transports and devices, for messages.
  const std::string& name() const noexcept { return name_; }
  bool is_in_memory() const noexcept { return is_in_memory_; }
  /// The context lives as long as the process: a worker of it could not be destroyed.
  void keep() noexcept {
    (void)context_.release();
    arena_memory_ = nullptr;
  }

 private:
  Manner manner_;
  std::string name_;
  bool is_in_memory_;  ///< no network is used
  bool is_shareable_ = false;
  Owner<ucp_context_h, ucp_cleanup> context_;
  ucp_mem_h arena_memory_ = nullptr;
};

}  // namespace torii::ucx
