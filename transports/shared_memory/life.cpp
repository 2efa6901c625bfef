// SPDX-License-Identifier: Apache-2.0
// A locked file. Process numbers would say less: they mean nothing in another process namespace, and stay the same
// after an exec.
#include "transports/shared_memory/life.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include "runtime/base/reason.hpp"
#include "runtime/base/status.hpp"

namespace torii::shared_memory {

Descriptor make_life() {
  Descriptor life(memfd_create("torii-life", MFD_CLOEXEC));
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  if (!life.open() || fcntl(life.get(), F_SETLK, &lock) != 0) {
    throw Error(Status::no_resource, "cannot make a locked memfd" + reason());
  }
  return life;
}

bool is_held(const Descriptor& life) noexcept {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  return fcntl(life.get(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace torii::shared_memory
