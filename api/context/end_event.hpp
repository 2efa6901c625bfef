// SPDX-License-Identifier: Apache-2.0
// A descriptor for event loops: it becomes readable when started operations end.
#pragma once

#include <atomic>
#include <mutex>

#include "runtime/base/descriptor.hpp"

namespace torii {

/// An eventfd, made when it is first asked for. All functions may be called from any thread.
class EndEvent {
 public:
  /// Throws Error{no_resource}.
  int descriptor();
  /// Whether there is a descriptor.
  bool is_watched() const noexcept { return descriptor_.load(std::memory_order_relaxed) >= 0; }
  /// Makes it readable.
  void ring() noexcept;

 private:
  std::mutex mutex_;  ///< held while the descriptor is made
  Descriptor owned_;
  std::atomic<int> descriptor_ = -1;
};

}  // namespace torii
