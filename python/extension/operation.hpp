// SPDX-License-Identifier: Apache-2.0
// One call of a collective: its operands, checked and locked, and the torii_call that describes it.
#pragma once

#include <torii/torii.h>

#include <array>
#include <vector>

#include "python/extension/buffers.hpp"

namespace torii_python {

/// What _torii.Team._run, _start and _prepare take, in this order. None stands for what a call does not have.
struct Arguments {
  PyObject* collective;  ///< a number of torii_collective
  PyObject* input;
  PyObject* out;
  PyObject* op;
  PyObject* root;
  PyObject* dtype;
  PyObject* counts;  ///< the blocks that go to other ranks, or come from them; of an alltoall those that go
  PyObject* displacements;
  PyObject* out_counts;  ///< alltoall only
  PyObject* out_displacements;
};
constexpr int kArguments = sizeof(Arguments) / sizeof(PyObject*);

/// The arguments of a call of Python. False, with TypeError set, if their number is wrong.
bool read_arguments(PyObject* const* list, Py_ssize_t count, Arguments& arguments);

struct Operation {
  Buffer input;
  Buffer result;
  Owned answer;  ///< what the call returns: `out`, a new array, or None on a rank without a result
  torii_call call = {};
  std::array<std::vector<std::size_t>, 4> lengths;  ///< counts and displacements; the library copies them
};

/// Fills `operation`, and makes the array for the result if there is no `out`. False, with an exception set that names
/// the wrong value and what would be right.
bool describe(const torii_team* team, const Arguments& arguments, Operation& operation);

}  // namespace torii_python
