// SPDX-License-Identifier: Apache-2.0
// Opens a device, and registers memory as its provider wants it.
#include "transports/libfabric/device.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "runtime/base/secret.hpp"

namespace torii::libfabric {
namespace {

/// The most keys that are tried if a random key is taken; keys of some providers have one byte.
constexpr int kKeysMost = 64;

std::string name_of(const fi_info& info) {
  return std::string(info.fabric_attr->prov_name) + " on " + info.domain_attr->name;
}

}  // namespace

/// Too little memory and too few files are the user's to mend: another provider, which needs less, would only hide it.
void check_opening(int code, const fi_info& info, const std::string& step, const std::string& hint) {
  if (code == 0) return;
  const std::string text = "libfabric: " + step + " of " + name_of(info) + ": " + code_text(code);
  switch (-code) {
    case FI_ENOMEM:
    case FI_EAGAIN:
      throw Error(Status::no_resource, text + " (is the limit of locked memory low, ulimit -l?)");
    case EMFILE:
    case ENFILE:
      throw Error(Status::no_resource, text + " (raise the limit of open files, ulimit -n)");
    default:
      throw Error(Status::unsupported, text + hint);
  }
}

bool Device::is_shareable(const fi_info& info) noexcept {
  return pins(info) && (info.domain_attr->mr_mode & FI_MR_ENDPOINT) == 0 &&
         info.domain_attr->threading == FI_THREAD_SAFE;
}

Device::Device(const Api& api, const fi_info& info) : info_(fi_dupinfo(&info)) {
  if (info_ == nullptr) throw Error(Status::no_resource, "out of memory");
  fid_fabric* fabric = nullptr;
  check_opening(api.open_fabric(info_->fabric_attr, &fabric, nullptr), *info_, "opening the fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check_opening(fi_domain(fabric, info_.get(), &domain, nullptr), *info_, "opening the device");
  domain_.reset(domain);
}

Device::~Device() {
  deregister_extents();
  if (!is_kept_) return;
  (void)domain_.release();
  (void)fabric_.release();
}

bool Device::is_over_rxm() const noexcept {
  return std::string_view(info_->fabric_attr->prov_name).find("ofi_rxm") != std::string_view::npos;
}

std::string Device::name() const { return name_of(*info_); }

void Device::register_extent(std::byte* arena, const Extent& extent, fid_ep& endpoint) {
  if (regions_.find(extent.offset, extent.bytes) != nullptr) return;
  if (regions_.are_full()) {
    throw Error(Status::no_resource, "libfabric: " + name() + " has " + std::to_string(kExtentsMost) +
                                         " parts of the arena registered, the most that peers can know");
  }
  regions_.add(extent, register_memory(arena + extent.offset, extent.bytes, FI_WRITE | FI_REMOTE_WRITE, endpoint,
                                       "the arena (raise the limit of locked memory, ulimit -l)"));
}

Fid<fid_mr> Device::register_memory(std::byte* base, std::size_t bytes, std::uint64_t access, fid_ep& endpoint,
                                    const std::string& what) {
  const std::string step = "registering " + std::to_string(bytes) + " bytes for " + what;
  Fid<fid_mr> region(register_with_key(base, bytes, access, step));
  if (binds_to_endpoint()) {
    check(fi_mr_bind(region.get(), &endpoint.fid, 0), step, Status::no_resource);
    check(fi_mr_enable(region.get()), step, Status::no_resource);
  }
  if (fi_mr_key(region.get()) == FI_KEY_NOTAVAIL) throw Error(Status::no_resource, "libfabric: " + step + ": no key");
  return region;
}

/// With a random key of the length that the provider checks. Providers with FI_MR_PROV_KEY choose keys themselves and
/// ignore it.
fid_mr* Device::register_with_key(std::byte* base, std::size_t bytes, std::uint64_t access, const std::string& step) {
  const std::size_t key_bytes = std::clamp<std::size_t>(info_->domain_attr->mr_key_size, 1, sizeof(std::uint64_t));
  fid_mr* region = nullptr;
  int code = -FI_ENOKEY;
  for (int trial = 0; trial < kKeysMost && code == -FI_ENOKEY; ++trial) {
    const std::uint64_t key = random_secret() >> (64 - 8 * key_bytes);
    code = fi_mr_reg(domain_.get(), base, bytes, access, 0, key, 0, &region, nullptr);
  }
  check(code, step, Status::no_resource);
  return region;
}

}  // namespace torii::libfabric
