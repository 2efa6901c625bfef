// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of a machine map, made without the library that is measured.
#pragma once

#include <cstddef>

#include "perf/common/job.hpp"

namespace torii::perf {

class SharedMemory {
 public:
  /// Collective; all ranks give the same size. Rank 0's file is opened by the others through /proc; where that is
  /// refused to any of them, all have none. Its bytes are 0 at first.
  SharedMemory(const Job& job, size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }  ///< nullptr: there is none

 private:
  void map(const Job& job);

  size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace torii::perf
