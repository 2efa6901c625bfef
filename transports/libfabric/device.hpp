// SPDX-License-Identifier: Apache-2.0
// A device that a provider has opened, and the memory that is registered with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/fabric/extent.hpp"
#include "transports/libfabric/api.hpp"
#include "transports/network/regions.hpp"

namespace torii::libfabric {

/// Throws if `code` is an error: no_resource if memory or files are short, otherwise unsupported, after which `auto`
/// tries another provider. `hint` follows the text of an unsupported step.
void check_opening(int code, const fi_info& info, const std::string& step, const std::string& hint = "");

/// Where registering pins memory, the engines of a rank share the device, and the arena is pinned once. The objects of
/// different engines are then used by different threads at once. Elsewhere a registration is an entry of a table. There
/// each engine has a device of its own, since providers over sockets drive all of a device's sockets together, under
/// one lock.
class Device {
 public:
  /// The provider pins what is registered.
  static bool pins(const fi_info& info) noexcept { return (info.domain_attr->mr_mode & FI_MR_ALLOCATED) != 0; }
  /// Whether engines may share it: the provider pins, binds no registration to one endpoint, and locks what endpoints
  /// have in common. FI_THREAD_COMPLETION would do, but efa (libfabric 1.22 to 2.1) does not lock it then.
  static bool is_shareable(const fi_info& info) noexcept;

  /// Throws Error as check_opening() does.
  Device(const Api& api, const fi_info& info);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Registers an extent of the arena, unless another engine of the device has done so. `endpoint` is the one that the
  /// provider may bind it to. One thread at a time calls this. Throws Error{no_resource}: the device refuses, or has
  /// kExtentsMost extents.
  void register_extent(std::byte* arena, const Extent& extent, fid_ep& endpoint);
  /// `what` ends the sentence of an error. Throws Error{no_resource}.
  Fid<fid_mr> register_memory(std::byte* base, std::size_t bytes, std::uint64_t access, fid_ep& endpoint,
                              const std::string& what);
  void deregister_extents() noexcept { regions_.clear(); }
  using Regions = transports::Regions<Fid<fid_mr>>;
  const Regions& regions() const noexcept { return regions_; }
  /// The address by which peers write to the first byte of registered memory: virtual, or 0.
  std::uint64_t remote_base(const std::byte* base) const noexcept {
    return (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uintptr_t>(base) : 0;
  }

  const fi_info& info() const noexcept { return *info_; }
  fid_fabric* fabric() const noexcept { return fabric_.get(); }
  fid_domain* domain() const noexcept { return domain_.get(); }
  bool is_shareable() const noexcept { return is_shareable(*info_); }
  bool binds_to_endpoint() const noexcept { return (info_->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0; }
  bool wants_local_keys() const noexcept { return (info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0; }
  /// Layered over ofi_rxm, which has faults of its own.
  bool is_over_rxm() const noexcept;
  /// "verbs;ofi_rxm on mlx5_0"
  std::string name() const;

  /// Stays open as long as the process: an endpoint of it does.
  void keep() noexcept { is_kept_ = true; }

 private:
  fid_mr* register_with_key(std::byte* base, std::size_t bytes, std::uint64_t access, const std::string& step);

  Info info_;
  // Closed from the last to the first.
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Regions regions_;
  std::atomic<bool> is_kept_ = false;
};

}  // namespace torii::libfabric
