// SPDX-License-Identifier: Apache-2.0
// Makes and rings the descriptor for event loops.
#include "api/context/end_event.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "runtime/base/cancellation.hpp"
#include "runtime/base/status.hpp"

namespace torii {

int EndEvent::descriptor() {
  const std::lock_guard lock(mutex_);
  if (!owned_.open()) {
    owned_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!owned_.open()) {
      throw Error(Status::no_resource,
                  "cannot make a descriptor for events: " + std::generic_category().message(errno));
    }
    descriptor_.store(owned_.get(), std::memory_order_relaxed);
  }
  return owned_.get();
}

void EndEvent::ring() noexcept {
  const CancellationHeld held;
  // It fails when nobody has read it for very long: then it is readable all the same.
  (void)eventfd_write(descriptor_.load(std::memory_order_relaxed), 1);
}

}  // namespace torii
