// SPDX-License-Identifier: Apache-2.0
// Maps a page that a forked child finds empty.
#include "runtime/base/page.hpp"

#include <sys/mman.h>

#include "runtime/base/status.hpp"

namespace torii {

void* map_page_wiped_on_fork() {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw Error(Status::no_resource, "cannot map a page");
  if (madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    munmap(page, kPageBytes);
    throw Error(Status::unsupported, "the kernel has no MADV_WIPEONFORK (Linux 4.14 or newer is needed)");
  }
  return page;
}

}  // namespace torii
