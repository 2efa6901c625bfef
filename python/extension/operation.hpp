// SPDX-License-Identifier: Apache-2.0
// One call: its operands, checked and locked, and the torii_call that describes it.
#pragma once

#include <torii/torii.h>

#include <array>
#include <vector>

#include "python/extension/block_list.hpp"
#include "python/extension/buffers.hpp"
#include "python/extension/factor.hpp"

namespace torii_python {

/// The arguments of _torii.Team._run, _start and _prepare, in this order. None stands for an argument that a call does
/// not have.
struct Arguments {
  PyObject* collective;  ///< a number of torii_collective
  PyObject* input;
  PyObject* out;
  PyObject* op;
  PyObject* root;
  PyObject* dtype;
  PyObject* factor;  ///< of a premul_sum
  PyObject* counts;  ///< the blocks that go to other ranks, or come from them; of an alltoall those that go
  PyObject* displacements;
  PyObject* out_counts;  ///< alltoall only
  PyObject* out_displacements;
  PyObject* lists;  ///< not None: blocks are lists of arrays
};
constexpr int kArguments = sizeof(Arguments) / sizeof(PyObject*);

/// The arguments of a call of Python, of which the last ones may be left out. False, with TypeError set, if their
/// number is wrong.
bool read_arguments(PyObject* const* list, Py_ssize_t count, Arguments& arguments);

/// A send or a receive. Its buffer, count and type are those of `Operation::call`.
struct Pair {
  bool is_there = false;
  int peer = 0;
  int tag = 0;
  torii_received* received = nullptr;  ///< of a receive
  Owned owner;                         ///< the object that holds *received, which the library writes
};

struct Operation {
  Buffer input;
  Buffer result;
  BlockList inputs;
  BlockList results;
  Factor factor = {};
  Pair pair;
  Owned leaves;  ///< the object that holds `call.leaves`
  Owned answer;  ///< what the call returns: `out`, a new array, or None on a rank without a result
  torii_call call = {};
  std::array<std::vector<std::size_t>, 4> lengths;  ///< counts and displacements; the library copies them
};

/// Fills `operation` for a collective, and makes the array for the result if there is no `out`. False, with an
/// exception set that names the wrong value and what would be right.
bool describe(const torii_team* team, const Arguments& arguments, Operation& operation);

}  // namespace torii_python
