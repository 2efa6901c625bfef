// SPDX-License-Identifier: Apache-2.0
// The registry of regions. shared_memory::Adoption moves their pages.
#include "api/context/regions.hpp"

#include <string>
#include <utility>

#include "api/context/late_writers.hpp"
#include "runtime/base/status.hpp"
#include "transports/shared_memory/adoption.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii {

Regions::Regions(shared_memory::Arena& arena, LateWriters& late_writers)
    : arena_(arena), late_writers_(late_writers), adoption_(std::make_unique<shared_memory::Adoption>(arena)) {}

Regions::~Regions() = default;

Region* Regions::add(const void* address, std::size_t bytes, bool adopt) {
  std::uintptr_t end = 0;
  if (address == nullptr || bytes == 0 ||
      __builtin_add_overflow(reinterpret_cast<std::uintptr_t>(address), bytes, &end)) {
    throw Error(Status::invalid_argument, "cannot register " + std::to_string(bytes) + " bytes at " +
                                              shared_memory::hex(reinterpret_cast<std::uintptr_t>(address)) +
                                              "; give the address and length of memory of this process");
  }
  const bool adopted = adopt && !arena_.contains(address, bytes);
  auto made = std::make_unique<Region>(Region{address, bytes, adopted});
  Region* const handle = made.get();
  const std::lock_guard lock(mutex_);
  const auto at = regions_.emplace(handle, std::move(made)).first;
  if (!adopted) return handle;
  end_hold();
  try {
    adoption_->adopt(address, bytes);
  } catch (...) {
    regions_.erase(at);
    throw;
  }
  return handle;
}

void Regions::remove(Region* handle) {
  const std::lock_guard lock(mutex_);
  const auto at = regions_.find(handle);
  if (at == regions_.end()) {
    throw Error(Status::not_registered, "the region was not given by torii_register of this context, or is gone");
  }
  const Region region = *at->second;
  regions_.erase(at);
  if (!region.adopted) return;
  end_hold();
  adoption_->give_back(region.address, region.bytes);
}

void Regions::hold() noexcept {
  const std::lock_guard lock(hold_mutex_);
  adoption_->hold();
  is_held_ = true;
}

void Regions::end_hold() noexcept {
  if (!is_held_) return;
  const std::lock_guard lock(hold_mutex_);
  if (!is_held_ || late_writers_.may_write()) return;
  is_held_ = false;
  adoption_->end_hold();
}

std::optional<std::int64_t> Regions::find(const void* address, std::size_t bytes) const noexcept {
  return adoption_->find(address, bytes);
}

}  // namespace torii
