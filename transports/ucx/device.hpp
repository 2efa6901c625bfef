// SPDX-License-Identifier: Apache-2.0
// A UCX context: the devices of a selection, and the memory that they have registered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/fabric/extent.hpp"
#include "transports/network/extent_table.hpp"
#include "transports/network/regions.hpp"
#include "transports/ucx/api.hpp"
#include "transports/ucx/providers.hpp"

namespace torii::ucx {

/// How engines work; equal on all ranks.
struct Manner {
  bool puts = false;         ///< longer payloads are put, see Writes::put()
  bool peer_errors = false;  ///< UCX watches the peers
  bool wakes = false;        ///< a descriptor for sleeping is wanted
};

/// A remote key as UCX packs it.
struct PackedKey {
  std::uint64_t bytes = 0;
  std::array<std::byte, 192> data{};
};
using ExtentTable = transports::ExtentTable<PackedKey>;

/// Memory that a context has registered.
class Mapped {
 public:
  Mapped() noexcept = default;
  /// Throws Error{no_resource}; `what` ends the sentence.
  Mapped(ucp_context_h context, std::byte* base, std::size_t bytes, const std::string& what);
  Mapped(Mapped&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), memory_(std::exchange(other.memory_, nullptr)) {}
  Mapped& operator=(Mapped&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~Mapped() {
    if (memory_ != nullptr) (void)ucp_mem_unmap(context_, memory_);
  }

  ucp_mem_h get() const noexcept { return memory_; }
  /// Throws Error.
  PackedKey key() const;

 private:
  ucp_context_h context_ = nullptr;
  ucp_mem_h memory_ = nullptr;
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

  /// Registers an extent of the arena, unless that was done, and adds it to the table. The first before any engine has
  /// a card of the device. One thread at a time calls this. Throws Error{no_resource}.
  void register_extent(std::byte* arena, const Extent& extent);
  using Regions = transports::Regions<Mapped>;
  const Regions& regions() const noexcept { return regions_; }
  /// The table that peers read; nullptr if engines do not put, since nothing is registered then.
  const ExtentTable* table() const noexcept { return table_; }
  /// The key of the table. Throws Error.
  PackedKey table_key() const { return table_memory_.key(); }
  const Manner& manner() const noexcept { return manner_; }
  ucp_context_h context() const noexcept { return context_.get(); }
  /// Some builds of UCX have no locks.
  bool is_shareable() const noexcept { return is_shareable_; }
  /// UCX's transports and devices, for messages.
  const std::string& name() const noexcept { return name_; }
  bool is_in_memory() const noexcept { return is_in_memory_; }
  /// The context lives as long as the process: a worker of it could not be destroyed.
  void keep() noexcept { (void)context_.release(); }

 private:
  void make_table();

  Manner manner_;
  std::string name_;
  bool is_in_memory_;  ///< no network is used
  bool is_shareable_ = false;
  Owner<ucp_context_h, ucp_cleanup> context_;
  ExtentTable* table_ = nullptr;
  Mapped table_memory_;
  Regions regions_;
};

}  // namespace torii::ucx
