// SPDX-License-Identifier: Apache-2.0
// Maps and registers the own memory of an engine.
#include "transports/libfabric/own_memory.hpp"

#include <sys/mman.h>

#include "runtime/base/page.hpp"

namespace torii::libfabric {

OwnMemory::OwnMemory(int ranks, std::size_t bounce_bytes)
    : ranks_(ranks), bytes_(round_up(front_bytes() + bounce_bytes, kPageBytes)) {
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_resource, "cannot map " + std::to_string(bytes_) + " bytes for an engine");
  }
  base_ = static_cast<std::byte*>(memory);
}

OwnMemory::~OwnMemory() {
  region_.reset();
  munmap(base_, bytes_);
}

void OwnMemory::register_with(Device& device, fid_ep& endpoint) {
  region_ = device.register_memory(base_, bytes_, FI_READ | FI_WRITE | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE,
                                   endpoint, "an engine's own memory (raise the limit of locked memory, ulimit -l)");
}

}  // namespace torii::libfabric
