// SPDX-License-Identifier: Apache-2.0
// The list of descriptors that a forked child closes, and the handlers of fork.
#include "runtime/base/own_descriptor.hpp"

#include <pthread.h>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

constinit std::mutex forks;  // nothing destroys it: a fork may come while static objects are destroyed

}  // namespace

constinit OwnDescriptor::Entry* OwnDescriptor::first_ = nullptr;

std::mutex& OwnDescriptor::no_fork() {
  static const int code = pthread_atfork([] { forks.lock(); }, [] { forks.unlock(); }, close_in_child);
  if (code != 0) throw Error(Status::no_resource, "out of memory");
  return forks;
}

/// The objects of the child have no descriptor any more.
void OwnDescriptor::close_in_child() noexcept {
  while (Entry* const entry = first_) {
    first_ = entry->after;
    entry->descriptor = Descriptor();
    entry->before = entry->after = nullptr;
  }
  forks.unlock();
}

void OwnDescriptor::Entry::enlist() noexcept {
  after = first_;
  if (after != nullptr) after->before = this;
  first_ = this;
}

OwnDescriptor::Entry::~Entry() {
  if (!descriptor.open()) return;
  const std::lock_guard lock(forks);
  (before != nullptr ? before->after : first_) = after;
  if (after != nullptr) after->before = before;
  descriptor = Descriptor();
}

}  // namespace torii
