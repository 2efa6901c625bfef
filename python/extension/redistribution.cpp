// SPDX-License-Identifier: Apache-2.0
// These calls block, so a signal handler that raises ends them only at their end.
#include "python/extension/redistribution.hpp"

#include <vector>

#include "python/extension/blocking.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/refusal.hpp"

namespace torii_python {
namespace {

struct Transpose {
  std::vector<std::size_t> extents;
  std::vector<int> axes;
  Buffer input;
  Buffer result;
};

bool read_extents(PyObject* extents, PyObject* axes, Transpose& call) {
  const Py_ssize_t dimensions = PyTuple_Size(extents);
  if (dimensions < 0 || PyTuple_Size(axes) < 0) return false;
  if (PyTuple_Size(axes) != dimensions) {
    return value_error("axes has %zd values; the array has %zd dimensions", PyTuple_Size(axes), dimensions);
  }
  for (Py_ssize_t i = 0; i < dimensions; ++i) {
    const Py_ssize_t extent = PyLong_AsSsize_t(PyTuple_GetItem(extents, i));
    const long axis = PyLong_AsLong(PyTuple_GetItem(axes, i));
    if (PyErr_Occurred() != nullptr) return false;
    if (extent < 0) return value_error("extent %zd of the array is %zd; it must not be negative", i, extent);
    if (axis < 0 || axis >= dimensions)
      return value_error("axes[%zd] is %ld; it must be 0 to %zd", i, axis, dimensions - 1);
    call.extents.push_back(static_cast<std::size_t>(extent));
    call.axes.push_back(static_cast<int>(axis));
  }
  return dimensions > 0 || value_error("the array has no dimensions");
}

/// Bytes of this rank's part of an array that is dealt by a dimension of `rows`.
std::size_t part_bytes(const torii_team* team, const Transpose& call, std::size_t rows, std::size_t item_bytes) {
  std::size_t first = 0;
  std::size_t count = 0;
  torii_split(rows, torii_team_ranks(team), torii_team_rank(team), &first, &count);
  std::size_t bytes = count * item_bytes;
  if (rows == 0) return 0;
  std::size_t all = 1;
  for (const std::size_t extent : call.extents) all *= extent;
  return bytes * (all / rows);
}

bool check_part(const torii_team* team, const Transpose& call, const Buffer& buffer, std::size_t rows) {
  const std::size_t needed = part_bytes(team, call, rows, static_cast<std::size_t>(call.input.view().itemsize));
  return buffer.bytes() == needed ||
         value_error("%s has %zd bytes; this rank's part of an array with a first dimension of %zu has %zu",
                     buffer.name(), buffer.view().len, rows, needed);
}

}  // namespace

PyObject* transpose_array(PyObject* object, PyObject* args) {
  PyObject *array = nullptr, *out = nullptr, *extents = nullptr, *axes = nullptr;
  if (PyArg_ParseTuple(args, "OOO!O!:transpose", &array, &out, &PyTuple_Type, &extents, &PyTuple_Type, &axes) == 0) {
    return nullptr;
  }
  TeamObject* const self = team_of(object);
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  Transpose call;
  if (!read_extents(extents, axes, call) || !call.input.acquire(array, "array", false) ||
      !call.result.acquire(out, "out", true) || !check_no_pointers(call.input) ||
      !check_part(self->team, call, call.input, call.extents[0]) ||
      !check_part(self->team, call, call.result, call.extents[static_cast<std::size_t>(call.axes[0])])) {
    return refuse(self);
  }
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = torii_transpose_array(self->team, call.input.address(), call.result.address(), call.extents.data(),
                                   call.axes.data(), static_cast<int>(call.axes.size()),
                                   static_cast<std::size_t>(call.input.view().itemsize));
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal handler
  return status == TORII_OK ? Py_NewRef(out) : raise_status(status, self->team);
}

PyObject* permute_items(PyObject* object, PyObject* args) {
  PyObject *array = nullptr, *destinations = nullptr, *out = nullptr;
  if (PyArg_ParseTuple(args, "OOO:permute", &array, &destinations, &out) == 0) return nullptr;
  TeamObject* const self = team_of(object);
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  Buffer input;
  Buffer places;
  Buffer result;
  Element element;
  if (!input.acquire(array, "array", false) || !places.acquire(destinations, "destinations", false) ||
      !result.acquire(out, "out", true) || !check_no_pointers(input) || !find_element(places, Py_None, element)) {
    return refuse(self);
  }
  if (element.type != TORII_U64) {
    value_error("destinations has elements of type %s; they must be u64", torii_type_name(element.type));
    return refuse(self);
  }
  const auto items_of = [](const Buffer& buffer) {
    return static_cast<std::size_t>(buffer.view().ndim == 0 ? 1 : buffer.view().shape[0]);
  };
  const auto item_bytes = [&](const Buffer& buffer) {
    std::size_t bytes = static_cast<std::size_t>(buffer.view().itemsize);
    for (int i = 1; i < buffer.view().ndim; ++i) bytes *= static_cast<std::size_t>(buffer.view().shape[i]);
    return bytes;
  };
  if (items_of(input) * sizeof(std::uint64_t) != places.bytes() || item_bytes(input) != item_bytes(result)) {
    value_error(
        "array has %zu items of %zu bytes, out has items of %zu, destinations has %zu values; items must have "
        "one size, and a destination each",
        items_of(input), item_bytes(input), item_bytes(result), places.bytes() / sizeof(std::uint64_t));
    return refuse(self);
  }
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = torii_permute(self->team, input.address(), items_of(input),
                           reinterpret_cast<const std::uint64_t*>(places.address()), result.address(), items_of(result),
                           item_bytes(input));
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal handler
  return status == TORII_OK ? Py_NewRef(out) : raise_status(status, self->team);
}

PyObject* split_items(PyObject*, PyObject* args) {
  Py_ssize_t items = 0;
  int ranks = 0;
  int rank = 0;
  if (PyArg_ParseTuple(args, "nii:split", &items, &ranks, &rank) == 0) return nullptr;
  if (items < 0) {
    value_error("items is %zd; it must not be negative", items);
    return nullptr;
  }
  std::size_t first = 0;
  std::size_t count = 0;
  const torii_status status = torii_split(static_cast<std::size_t>(items), ranks, rank, &first, &count);
  if (status != TORII_OK) return raise_status(status, nullptr);
  return Py_BuildValue("nn", static_cast<Py_ssize_t>(first), static_cast<Py_ssize_t>(count));
}

}  // namespace torii_python
