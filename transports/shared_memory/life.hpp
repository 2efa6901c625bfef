// SPDX-License-Identifier: Apache-2.0
// By what the processes of one node see whether one of them lives.
#pragma once

#include "runtime/base/descriptor.hpp"

namespace torii::shared_memory {

/// An empty memfd on which this process holds a record lock. The kernel takes the lock from a process that ends or
/// execs, and gives it to no child. The process must open the file only once, because the kernel takes all its locks on
/// a file when it closes any descriptor of it. So it is another file than the arena, which each fork opens again for
/// adopted pages, with locks for the child. Throws Error{no_resource}.
Descriptor make_life();

/// Whether the process that made it still has it. To be asked in another process. One system call.
bool is_held(const Descriptor& life) noexcept;

}  // namespace torii::shared_memory
