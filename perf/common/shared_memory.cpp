// SPDX-License-Identifier: Apache-2.0
// A memory file of rank 0, which the others open through /proc.
#include "perf/common/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace torii::perf {

SharedMemory::SharedMemory(const Job& job, size_t bytes) : bytes_(bytes) {
  map(job);
  const bool everywhere = job.sum(data_ != nullptr ? 0 : 1) == 0;
  if (!everywhere && data_ != nullptr) {
    munmap(data_, bytes_);
    data_ = nullptr;
  }
}

void SharedMemory::map(const Job& job) {
  std::array<char, 64> path{};
  int own = -1;
  if (job.rank() == 0) {
    own = memfd_create("torii_perf", MFD_CLOEXEC);
    if (own >= 0 && ftruncate(own, static_cast<off_t>(bytes_)) == 0) {
      std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", getpid(), own);
    }
  }
  job.broadcast(path.data(), path.size());
  const int file = path[0] == '\0' ? -1 : job.rank() == 0 ? own : open(path.data(), O_RDWR | O_CLOEXEC);
  if (file >= 0) {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) data_ = static_cast<std::byte*>(memory);
  }
  // The file lasts until all have opened it.
  job.barrier();
  if (file >= 0 && file != own) close(file);
  if (own >= 0) close(own);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace torii::perf
