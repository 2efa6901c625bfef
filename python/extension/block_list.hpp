// SPDX-License-Identifier: Apache-2.0
// Lists of buffers as operands: one block for each rank, in a place of its own (torii/block_lists.h).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "python/extension/buffers.hpp"

namespace torii_python {

/// One side of a call. An entry that is None is an empty block.
class BlockList {
 public:
  struct Block {
    std::array<char, 32> name = {};  ///< such as "outs[2]"
    Buffer buffer;                   ///< not there if the entry is None
  };

  /// False, with an exception set that names the entry, if `list` has another length than `ranks`, or if an entry is
  /// no memory that may be used.
  bool acquire(PyObject* list, const char* name, int ranks, bool is_written);
  /// Fills what the library reads, when the size of an element is known.
  void set_lengths(std::size_t element_bytes);

  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }
  void* const* addresses() const { return addresses_.data(); }
  const std::size_t* counts() const { return counts_.data(); }

 private:
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<void*> addresses_;
  std::vector<std::size_t> counts_;
};

}  // namespace torii_python
