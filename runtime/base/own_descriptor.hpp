// SPDX-License-Identifier: Apache-2.0
// An open file descriptor that no child process keeps.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "runtime/base/descriptor.hpp"

namespace torii {

/// The other end of a connection sees the end of this process, even if a child lives on: exec closes the descriptor,
/// and a handler of fork closes it in the child.
class OwnDescriptor {
 public:
  OwnDescriptor() noexcept = default;
  OwnDescriptor(OwnDescriptor&&) noexcept = default;
  OwnDescriptor& operator=(OwnDescriptor&&) noexcept = default;
  ~OwnDescriptor() = default;

  /// `make` returns a close-on-exec Descriptor, perhaps none, and leaves errno. No thread forks before the handler
  /// knows the descriptor. Throws Error{no_resource}, and what `make` throws.
  template <class Make>
  static OwnDescriptor of(const Make& make) {
    OwnDescriptor made;
    made.entry_ = std::make_unique<Entry>();
    const std::lock_guard lock(no_fork());
    made.entry_->descriptor = make();
    if (made.open()) made.entry_->enlist();
    return made;
  }

  bool open() const noexcept { return get() >= 0; }
  int get() const noexcept { return entry_ == nullptr ? -1 : entry_->descriptor.get(); }

 private:
  /// An element of the list of all open ones.
  struct Entry {
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry();
    void enlist() noexcept;

    Descriptor descriptor;
    Entry* before = nullptr;
    Entry* after = nullptr;
  };

  /// A fork holds this lock from before to after. Throws Error{no_resource} if there are no handlers of fork.
  static std::mutex& no_fork();
  static void close_in_child() noexcept;

  static Entry* first_;
  std::unique_ptr<Entry> entry_;
};

}  // namespace torii
