// SPDX-License-Identifier: Apache-2.0
// An open file descriptor that no child process keeps.
#pragma once

#include <mutex>
#include <utility>

#include "runtime/base/descriptor.hpp"

namespace torii {

/// The other end of a connection sees the end of this process, even if a child lives on. exec closes the descriptor,
/// and a handler of fork closes it in the child, where this object then has none.
class OwnDescriptor {
 public:
  OwnDescriptor() noexcept = default;
  OwnDescriptor(OwnDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)), forks_(other.forks_) {}
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    OwnDescriptor taken(std::move(other));
    std::swap(number_, taken.number_);
    std::swap(forks_, taken.forks_);
    return *this;
  }
  ~OwnDescriptor();

  /// `make` returns a close-on-exec Descriptor, perhaps none, and leaves errno. No thread forks before the handler
  /// knows the descriptor. Throws Error{no_resource}, and what `make` throws.
  template <class Make>
  static OwnDescriptor of(const Make& make) {
    OwnDescriptor made;
    const std::lock_guard lock(no_fork());
    made.keep(make());
    return made;
  }

  bool open() const noexcept { return get() >= 0; }
  int get() const noexcept { return forks_ == forks_before_ ? number_ : -1; }

 private:
  /// A fork holds this lock from before to after. Throws Error{no_resource} if there are no handlers of fork.
  static std::mutex& no_fork();
  static void close_in_child() noexcept;
  void keep(Descriptor made);

  static int forks_before_;  ///< how many forks made this process, from the first process on
  int number_ = -1;
  int forks_ = forks_before_;
};

}  // namespace torii
