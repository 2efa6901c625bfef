// SPDX-License-Identifier: Apache-2.0
// Maps other pages under existing addresses, with the same contents.
#pragma once

#include <csignal>
#include <cstddef>

#include "runtime/base/descriptor.hpp"
#include "transports/shared_memory/mappings.hpp"

namespace torii::shared_memory {

/// Pages mapped aside that will replace others. Everything that can be refused is requested here, before the others are
/// touched.
class Replacement {
 public:
  /// [offset, offset + bytes) of `fd`, shared, and absent in a forked child. Throws Error{no_resource}.
  static Replacement of_file(int fd, std::size_t offset, std::size_t bytes);
  /// Private anonymous memory. Throws Error{no_resource}.
  static Replacement of_private_memory(std::size_t bytes);
  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  ~Replacement();

  /// Copies the contents of the pages at `place`, as many bytes, and replaces them in one step. If the kernel grants
  /// userfaultfd, threads that write there meanwhile wait and then write into the new pages. Does not allocate, because
  /// such a thread may hold the allocator's lock. Throws Error{no_resource}, or {unsupported} if this thread's stack is
  /// there; the old pages then remain.
  void take_place(std::uintptr_t place);

 private:
  explicit Replacement(void* pages, std::size_t bytes);
  void* pages_;
  std::size_t bytes_;
};

/// While this object lives, writes of other threads to a range wait, if the kernel grants that. Signals of this thread
/// always wait, because a handler that writes there would wait for itself.
class WriteHold {
 public:
  explicit WriteHold(AddressRange range) noexcept;
  ~WriteHold();
  WriteHold(const WriteHold&) = delete;
  WriteHold& operator=(const WriteHold&) = delete;
  bool granted() const noexcept { return faults_.open(); }

 private:
  sigset_t signals_before_;
  Descriptor faults_;
};

}  // namespace torii::shared_memory
