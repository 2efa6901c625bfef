// SPDX-License-Identifier: Apache-2.0
// The intervals of a team are in a capsule; leaves are the rows of an array, or come from a function.
#include "python/extension/leaves.hpp"

#include <cstring>

#include "python/extension/blocking.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/refusal.hpp"

namespace torii_python {
namespace {

constexpr const char* kCapsule = "torii.leaves";

void destroy_leaves(PyObject* capsule) {
  torii_leaves_destroy(static_cast<torii_leaves*>(PyCapsule_GetPointer(capsule, kCapsule)));
}

/// Two arrays of one call must have elements of one type. `of_others` names the other in the message.
bool check_same_type(const Buffer& buffer, PyObject* dtype, torii_type expected, const char* of_others) {
  Element element;
  if (!find_element(buffer, dtype, element)) return false;
  return element.type == expected ||
         value_error("%s has elements of type %s; %s has %s, and both must be equal", buffer.name(),
                     torii_type_name(element.type), of_others, torii_type_name(expected));
}

/// A function of Python that gives the leaves, and what each must be.
struct Giving {
  PyObject* function;
  std::size_t bytes;
  PyObject* dtype;
  torii_type type;

  bool give(std::size_t leaf, void* out) const {
    const Owned given(PyObject_CallFunction(function, "n", static_cast<Py_ssize_t>(leaf)));
    Buffer buffer;
    if (!given || !buffer.acquire(given.get(), "leaf", false)) return false;
    if (!check_same_type(buffer, dtype, type, "out")) return false;
    if (buffer.bytes() != bytes) {
      return value_error("leaf %zu has %zu bytes; it must have %zu, as out says", leaf, buffer.bytes(), bytes);
    }
    std::memcpy(out, buffer.address(), bytes);
    return true;
  }

  static int call(std::size_t leaf, void* out, void* data) {
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool is_given = static_cast<const Giving*>(data)->give(leaf, out);
    PyGILState_Release(state);
    return is_given ? 0 : 1;
  }
};

struct LeavesCall {
  Buffer input;
  Buffer result;
  Giving giving = {};
  torii_call call = {};
};

/// Bytes of one leaf, the rows of the array; of a function, as many as `out` needs.
bool read_input(PyObject* array, Py_ssize_t own, std::size_t result_bytes, LeavesCall& leaves, std::size_t& bytes) {
  if (PyCallable_Check(array) != 0) {
    if (!leaves.result.is_there()) return value_error("out is None; with a function for the leaves it must be given");
    bytes = result_bytes;
    leaves.giving.function = array;
    leaves.giving.bytes = bytes;
    leaves.call.leaf = Giving::call;
    leaves.call.leaf_data = &leaves.giving;
    return true;
  }
  if (!leaves.input.acquire(array, "array", false)) return false;
  const Py_buffer& view = leaves.input.view();
  if (view.ndim == 0 || view.shape[0] != own) {
    return value_error("array has %zd rows; it must have one for each of this rank's %zd leaves",
                       view.ndim == 0 ? Py_ssize_t{0} : view.shape[0], own);
  }
  bytes = static_cast<std::size_t>(view.itemsize);
  for (int i = 1; i < view.ndim; ++i) bytes *= static_cast<std::size_t>(view.shape[i]);
  leaves.call.input = leaves.input.address();
  return true;
}

bool describe_leaves(const torii_team* team, PyObject* array, PyObject* out, PyObject* dtype, Py_ssize_t own,
                     LeavesCall& leaves) {
  torii_call& call = leaves.call;
  const bool has_result = call.collective != TORII_REDUCE || torii_team_rank(team) == call.root;
  const std::size_t blocks = call.collective == TORII_REDUCE_SCATTER ? torii_team_ranks(team) : 1;
  if (out != Py_None && !leaves.result.acquire(out, "out", true)) return false;
  std::size_t bytes = 0;
  if (!read_input(array, own, leaves.result.bytes() * blocks, leaves, bytes)) return false;
  Element element;
  if (!find_element(leaves.input.is_there() ? leaves.input : leaves.result, dtype, element)) return false;
  leaves.giving.dtype = dtype;
  leaves.giving.type = element.type;
  if (leaves.input.is_there() && leaves.result.is_there() &&
      !check_same_type(leaves.result, dtype, element.type, "array")) {
    return false;
  }
  if (bytes % (blocks * element.bytes) != 0) {
    return value_error("a leaf has %zu elements; it must have a multiple of the %zu ranks", bytes / element.bytes,
                       blocks);
  }
  if (leaves.result.is_there() && leaves.result.bytes() * blocks != bytes) {
    return value_error("out has %zu bytes; a leaf of %zu bytes needs %zu", leaves.result.bytes(), bytes,
                       bytes / blocks);
  }
  call.size = sizeof(call);
  call.type = element.type;
  call.count = bytes / blocks / element.bytes;
  call.result = has_result && leaves.result.is_there() ? leaves.result.address() : nullptr;
  return !has_result || leaves.result.is_there() || value_error("out is None, but rank %d gets a result", call.root);
}

}  // namespace

PyObject* make_leaves(PyObject* object, PyObject* args) {
  Py_ssize_t all = 0;
  Py_ssize_t first = 0;
  Py_ssize_t count = 0;
  if (PyArg_ParseTuple(args, "nnn:leaves", &all, &first, &count) == 0) return nullptr;
  TeamObject* const self = team_of(object);
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  if (all < 0 || first < 0 || count < 0) {
    value_error("leaves is %zd, first %zd and count %zd; they must not be negative", all, first, count);
    return refuse(self);
  }
  torii_leaves* leaves = nullptr;
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = torii_leaves_create(self->team, static_cast<std::size_t>(all), static_cast<std::size_t>(first),
                                 static_cast<std::size_t>(count), &leaves);
  }
  if (PyErr_Occurred() != nullptr) {  // of a signal handler
    torii_leaves_destroy(leaves);
    return nullptr;
  }
  if (status != TORII_OK) return raise_status(status, self->team);
  PyObject* const capsule = PyCapsule_New(leaves, kCapsule, destroy_leaves);
  if (capsule == nullptr) torii_leaves_destroy(leaves);
  return capsule;
}

PyObject* run_leaves(PyObject* object, PyObject* args) {
  PyObject *capsule = nullptr, *array = nullptr, *out = nullptr, *op = nullptr, *dtype = nullptr;
  Py_ssize_t own = 0;
  int collective = 0;
  int root = 0;
  if (PyArg_ParseTuple(args, "OniOOOiO:leaves", &capsule, &own, &collective, &array, &out, &op, &root, &dtype) == 0) {
    return nullptr;
  }
  TeamObject* const self = team_of(object);
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  LeavesCall leaves;
  leaves.call.collective = static_cast<torii_collective>(collective);
  leaves.call.root = root;
  leaves.call.leaves = static_cast<torii_leaves*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (leaves.call.leaves == nullptr || !find_op(op, leaves.call.op) ||
      !describe_leaves(self->team, array, out, dtype, own, leaves)) {
    return refuse(self);
  }
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = torii_run(self->team, &leaves.call);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of the function, or of a signal handler
  return status == TORII_OK ? Py_NewRef(out) : raise_status(status, self->team);
}

}  // namespace torii_python
