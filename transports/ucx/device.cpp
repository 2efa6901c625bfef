// SPDX-License-Identifier: Apache-2.0
// Opens a UCX context and registers memory with it.
#include "transports/ucx/device.hpp"

#include <sys/mman.h>

#include <cstring>
#include <memory>

#include "runtime/base/page.hpp"
#include "transports/ucx/config.hpp"

namespace torii::ucx {
namespace {

constexpr std::size_t kTableBytes = (sizeof(ExtentTable) + kPageBytes - 1) / kPageBytes * kPageBytes;

}  // namespace

Device::Device(const Selection& selection, const Manner& manner, int ranks)
    : manner_(manner),
      name_(selection.devices.empty() ? selection.transports : selection.transports + " on " + selection.devices),
      is_in_memory_(selection.devices.empty()) {
  ucp_params_t wanted{};
  wanted.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME |
                      UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  wanted.features = UCP_FEATURE_AM;
  if (manner.puts) wanted.features |= UCP_FEATURE_RMA;
  if (manner.wakes) wanted.features |= UCP_FEATURE_WAKEUP;
  wanted.estimated_num_eps = static_cast<std::size_t>(ranks);
  wanted.name = "torii";
  wanted.mt_workers_shared = manner.puts ? 1 : 0;
  const Config config = make_config(selection, manner.puts);
  ucp_context_h context = nullptr;
  check(ucp_init(&wanted, config.get(), &context), "opening " + name_);
  context_.reset(context);
  ucp_context_attr_t got{};
  got.field_mask = UCP_ATTR_FIELD_THREAD_MODE;
  check(ucp_context_query(context, &got), "asking whether threads may share " + name_);
  is_shareable_ = got.thread_mode == UCS_THREAD_MODE_MULTI;
}

Device::~Device() {
  regions_.clear();
  table_memory_ = Mapped();
  if (table_ != nullptr) munmap(table_, kTableBytes);
}

/// In pages of its own, since devices register whole pages.
void Device::make_table() {
  void* const memory = mmap(nullptr, kTableBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_resource, "cannot map " + std::to_string(kTableBytes) + " bytes for a device");
  }
  table_ = static_cast<ExtentTable*>(memory);
  table_memory_ = Mapped(context_.get(), static_cast<std::byte*>(memory), kTableBytes, "its table");
}

void Device::register_extent(std::byte* arena, const Extent& extent) {
  if (regions_.find(extent.offset, extent.bytes) != nullptr) return;
  if (regions_.are_full()) {
    throw Error(Status::no_resource, "UCX: " + name_ + " has " + std::to_string(kExtentsMost) +
                                         " parts of the arena registered, the most that peers can know");
  }
  if (table_ == nullptr) make_table();
  Mapped memory(context_.get(), arena + extent.offset, extent.bytes, "the arena");
  const transports::RemoteExtent<PackedKey> row = {extent, reinterpret_cast<std::uintptr_t>(arena), memory.key()};
  (*table_)[regions_.all().size()] = transports::row_of(row);
  regions_.add(extent, std::move(memory));
}

Mapped::Mapped(ucp_context_h context, std::byte* base, std::size_t bytes, const std::string& what) : context_(context) {
  ucp_mem_map_params_t wanted{};
  wanted.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  wanted.address = base;
  wanted.length = bytes;
  wanted.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucs_status_t status = ucp_mem_map(context, &wanted, &memory_);
  if (status == UCS_OK) return;
  throw Error(Status::no_resource, "UCX: registering " + std::to_string(bytes) + " bytes for " + what +
                                       " (raise the limit of locked memory, ulimit -l): " + ucs_status_string(status));
}

PackedKey Mapped::key() const {
  void* packed = nullptr;
  PackedKey key;
  std::size_t bytes = 0;
  check(ucp_rkey_pack(context_, memory_, &packed, &bytes), "packing a key");
  const std::unique_ptr<void, GiveBack<ucp_rkey_buffer_release>> owner(packed);
  if (bytes > key.data.size()) {
    throw Error(Status::unsupported, "UCX: its keys have " + std::to_string(bytes) + " bytes; at most " +
                                         std::to_string(key.data.size()) + " are supported");
  }
  key.bytes = bytes;
  std::memcpy(key.data.data(), packed, bytes);
  return key;
}

}  // namespace torii::ucx
