// SPDX-License-Identifier: Apache-2.0
// Exchanges pages with mremap; userfaultfd stops writers meanwhile.
#include "transports/shared_memory/page_exchange.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/page.hpp"
#include "runtime/base/status.hpp"

namespace torii::shared_memory {
namespace {

[[noreturn]] void throw_refused(const char* what, std::size_t bytes) {
  const std::string reason = std::strerror(errno);
  throw Error(Status::no_resource, std::string("cannot ") + what + " " + std::to_string(bytes) + " bytes (" + reason +
                                       "); look at the limits of address space (ulimit -v) and of mappings "
                                       "(vm.max_map_count)");
}

/// The stack that the calling thread was started with, thread-local memory at its end included; empty if unknown.
AddressRange stack_of_thread() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {0, 0};
  void* lowest = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &lowest, &bytes);
  pthread_attr_destroy(&attributes);
  const auto first = reinterpret_cast<std::uintptr_t>(lowest);
  return {first, first + bytes};
}

/// A thread that writes to pages which it holds waits for itself. Stacks of threads may be memory from malloc, and so
/// may those of coroutines, of which only the current frame is known. No mapping of the process tells that they are
/// stacks.
void check_own_stack(AddressRange pages) {
  constexpr std::uintptr_t kBelow = 16384;  // what take_place() and all that it calls use at the most
  const auto meets = [&pages](AddressRange other) { return other.first < pages.end && pages.first < other.end; };
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (!meets({frame - kBelow, frame + kPageBytes}) && !meets(stack_of_thread())) return;
  throw Error(
      Status::unsupported,
      "the stack of the calling thread is on the pages of the memory, or next to them: give the buffer pages of "
      "its own (mmap, aligned_alloc)");
}

/// A userfaultfd that may hold faults of system calls too; if only root may have that, one for user code alone.
Descriptor open_faults() {
#ifdef SYS_userfaultfd
  Descriptor faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)));
#ifdef UFFD_USER_MODE_ONLY
  if (!faults.open()) faults = Descriptor(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
#endif
  return faults;
#else
  return Descriptor();
#endif
}

/// Makes writes to the range wait until `faults` is closed.
bool protect(const Descriptor& faults, AddressRange range) {
#if defined(UFFD_FEATURE_WP_HUGETLBFS_SHMEM)
  uffdio_api api = {};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
  if (ioctl(faults.get(), UFFDIO_API, &api) != 0) return false;
  uffdio_register with = {};
  with.range = {range.first, range.bytes()};
  with.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(faults.get(), UFFDIO_REGISTER, &with) != 0) return false;
  // A page that was never touched must exist before it can be protected.
  for (std::uintptr_t at = range.first; at < range.end; at += kPageBytes) {
    (void)*reinterpret_cast<const volatile char*>(at);
  }
  uffdio_writeprotect writes = {};
  writes.range = with.range;
  writes.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  return ioctl(faults.get(), UFFDIO_WRITEPROTECT, &writes) == 0;
#else
  return faults.open() && range.first == range.end;
#endif
}

}  // namespace

WriteHold::WriteHold(AddressRange range) noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &signals_before_);
  faults_ = open_faults();
  if (faults_.open() && !protect(faults_, range)) faults_ = Descriptor();
}

WriteHold::~WriteHold() {
  faults_ = Descriptor();  // wakes the writers
  pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
}

Replacement::Replacement(void* pages, std::size_t bytes) : pages_(pages), bytes_(bytes) {}

Replacement::Replacement(Replacement&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)), bytes_(other.bytes_) {}

Replacement::~Replacement() {
  if (pages_ != nullptr) munmap(pages_, bytes_);
}

Replacement Replacement::of_file(int fd, std::size_t offset, std::size_t bytes) {
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (pages == MAP_FAILED) throw_refused("map, to adopt them,", bytes);
  Replacement made(pages, bytes);
  if (madvise(pages, bytes, MADV_DONTFORK) != 0) throw_refused("keep from forked children", bytes);
  return made;
}

Replacement Replacement::of_private_memory(std::size_t bytes) {
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw_refused("get, to give adopted memory back,", bytes);
  return Replacement(pages, bytes);
}

void Replacement::take_place(std::uintptr_t place) {
  check_own_stack({place, place + bytes_});
  void* const old = reinterpret_cast<void*>(place);
  // Changes nothing, but tells hooks of other libraries on mremap to forget these pages.
  (void)mremap(old, bytes_, bytes_, 0);
  int refused = 0;
  {
    const WriteHold hold({place, place + bytes_});
    std::memcpy(pages_, old, bytes_);
    // By system call number. A hook may wait for a page that is held here, and the hook of UCX passes on four
    // arguments, not five. The kernel checks its limits before it releases the old pages.
    if (syscall(SYS_mremap, pages_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, old) == -1) refused = errno;
  }
  if (refused != 0) {
    errno = refused;
    throw_refused("put other pages under", bytes_);
  }
  pages_ = nullptr;
}

}  // namespace torii::shared_memory
