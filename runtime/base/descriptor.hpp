// SPDX-License-Identifier: Apache-2.0
// An open file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace torii {

class Descriptor {
 public:
  /// Takes over `fd`; -1 is none.
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Descriptor taken(std::move(other));
    std::swap(fd_, taken.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  bool open() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  /// The caller closes it.
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace torii
