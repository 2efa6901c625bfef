// SPDX-License-Identifier: Apache-2.0
// Opens a UCX context and registers memory with it.
#include "transports/ucx/device.hpp"

#include <memory>

#include "transports/ucx/config.hpp"

namespace torii::ucx {

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
  const Config config = make_config(selection);
  ucp_context_h context = nullptr;
  check(ucp_init(&wanted, config.get(), &context), "opening " + name_);
  context_.reset(context);
  ucp_context_attr_t got{};
  got.field_mask = UCP_ATTR_FIELD_THREAD_MODE;
  check(ucp_context_query(context, &got), "asking whether threads may share " + name_);
  is_shareable_ = got.thread_mode == UCS_THREAD_MODE_MULTI;
}

Device::~Device() {
  if (arena_memory_ != nullptr) (void)ucp_mem_unmap(context_.get(), arena_memory_);
}

void Device::register_arena(std::byte* arena, std::size_t bytes) {
  ucp_mem_map_params_t what{};
  what.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  what.address = arena;
  what.length = bytes;
  what.memory_type = UCS_MEMORY_TYPE_HOST;
  check(ucp_mem_map(context_.get(), &what, &arena_memory_),
        "registering " + std::to_string(bytes) +
            " bytes for the arena (lower TORII_ARENA, or raise the limit of locked memory, ulimit -l)");
}

std::string Device::arena_key() const {
  if (arena_memory_ == nullptr) return {};
  void* key = nullptr;
  std::size_t bytes = 0;
  check(ucp_rkey_pack(context_.get(), arena_memory_, &key, &bytes), "packing the arena's key");
  const std::unique_ptr<void, GiveBack<ucp_rkey_buffer_release>> owner(key);
  return {static_cast<const char*>(key), bytes};
}

}  // namespace torii::ucx
