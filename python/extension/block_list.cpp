// SPDX-License-Identifier: Apache-2.0
// Reads lists of buffers.
#include "python/extension/block_list.hpp"

#include <cstdio>

#include "python/extension/errors.hpp"

namespace torii_python {

bool BlockList::acquire(PyObject* list, const char* name, int ranks, bool is_written) {
  // A string or an array is a sequence too, but of what it holds.
  if (PyList_Check(list) == 0 && PyTuple_Check(list) == 0) {
    PyErr_Format(PyExc_TypeError, "%s is %R; it must be a list of arrays, one for each of %d ranks", name,
                 reinterpret_cast<PyObject*>(Py_TYPE(list)), ranks);
    return false;
  }
  const Owned entries(PySequence_Tuple(list));
  if (!entries) return false;
  const Py_ssize_t count = PyTuple_Size(entries.get());
  if (count != ranks) {
    return value_error("%s has %zd arrays; it must have one for each of %d ranks", name, count, ranks);
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    blocks_.push_back(std::make_unique<Block>());
    Block& block = *blocks_.back();
    // std::to_string() would export a symbol of the standard library.
    std::snprintf(block.name.data(), block.name.size(), "%s[%zd]", name, i);
    PyObject* const entry = PyTuple_GetItem(entries.get(), i);
    if (entry != Py_None && !block.buffer.acquire(entry, block.name.data(), is_written)) return false;
  }
  return true;
}

void BlockList::set_lengths(std::size_t element_bytes) {
  for (const auto& block : blocks_) {
    addresses_.push_back(block->buffer.is_there() ? block->buffer.address() : nullptr);
    counts_.push_back(block->buffer.is_there() ? block->buffer.bytes() / element_bytes : 0);
  }
}

}  // namespace torii_python
