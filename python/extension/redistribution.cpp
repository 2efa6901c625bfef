// SPDX-License-Identifier: Apache-2.0
// These calls block, so a signal handler that raises ends them only at their end.
#include "python/extension/redistribution.hpp"

#include <algorithm>
#include <vector>

#include "python/extension/blocking.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/refusal.hpp"

namespace torii_python {
namespace {

struct Transpose {
  Owned shape;
  std::vector<std::size_t> extents;
  std::vector<int> axes;
  Buffer input;
  Buffer result;
  Owned out;
};

bool read_shape(PyObject* shape, Transpose& call) {
  call.shape = Owned(PySequence_Tuple(shape));
  if (!call.shape) return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(call.shape.get()); ++i) {
    Py_ssize_t extent = 0;
    if (!read_integer(PyTuple_GetItem(call.shape.get(), i), "an extent of shape", extent)) return false;
    if (extent < 0) return value_error("shape is %R; extents must not be negative", call.shape.get());
    call.extents.push_back(static_cast<std::size_t>(extent));
  }
  return !call.extents.empty() || value_error("the array has no dimensions");
}

/// None reverses the dimensions.
bool read_axes(PyObject* axes, Transpose& call) {
  const std::size_t dimensions = call.extents.size();
  const Owned list(axes == Py_None ? PyTuple_New(0) : PySequence_Tuple(axes));
  if (!list) return false;
  if (axes != Py_None && PyTuple_Size(list.get()) != static_cast<Py_ssize_t>(dimensions)) {
    return value_error("axes has %zd values; the array has %zu dimensions", PyTuple_Size(list.get()), dimensions);
  }
  std::vector<bool> has(dimensions, false);
  for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i) {
    Py_ssize_t axis = 0;
    if (!read_integer(PyTuple_GetItem(list.get(), i), "an axis", axis)) return false;
    if (axis < 0 || static_cast<std::size_t>(axis) >= dimensions || has[static_cast<std::size_t>(axis)]) break;
    has[static_cast<std::size_t>(axis)] = true;
    call.axes.push_back(static_cast<int>(axis));
  }
  for (std::size_t i = dimensions; axes == Py_None && i > 0; --i) call.axes.push_back(static_cast<int>(i - 1));
  return call.axes.size() == dimensions ||
         value_error("axes is %R; it must have each of 0 to %zu once", list.get(), dimensions - 1);
}

/// Bytes of this rank's part of an array that is dealt by a dimension. False, with an exception set, if there are too
/// many.
bool find_part(const torii_team* team, const Transpose& call, std::size_t dealt, std::size_t& bytes) {
  bytes = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  torii_split(call.extents[dealt], torii_team_ranks(team), torii_team_rank(team), &first, &count);
  if (std::find(call.extents.begin(), call.extents.end(), std::size_t{0}) != call.extents.end()) return true;
  bytes = static_cast<std::size_t>(call.input.view().itemsize);
  for (std::size_t i = 0; i < call.extents.size(); ++i) {
    if (__builtin_mul_overflow(bytes, i == dealt ? count : call.extents[i], &bytes)) {
      return value_error("shape is %R; this rank's part has more bytes than there can be", call.shape.get());
    }
  }
  return true;
}

bool check_part(const torii_team* team, const Transpose& call, const Buffer& buffer, std::size_t dealt) {
  std::size_t needed = 0;
  if (!find_part(team, call, dealt, needed)) return false;
  return buffer.bytes() == needed ||
         value_error("%s has %zd bytes; this rank's part of an array with a first dimension of %zu has %zu",
                     buffer.name(), buffer.view().len, call.extents[dealt], needed);
}

/// This rank's part of the result, or memory for it if `out` is None.
bool take_part(const torii_team* team, PyObject* array, PyObject* out, Transpose& call) {
  const auto dealt = static_cast<std::size_t>(call.axes[0]);
  if (out != Py_None) {
    call.out = Owned(Py_NewRef(out));
    return call.result.acquire(out, "out", true) && check_no_pointers(call.result) &&
           check_same_items(call.input, call.result) && check_part(team, call, call.result, dealt);
  }
  std::size_t bytes = 0;
  if (!find_part(team, call, dealt, bytes)) return false;
  std::vector<Py_ssize_t> shape;
  for (const int axis : call.axes)
    shape.push_back(static_cast<Py_ssize_t>(call.extents[static_cast<std::size_t>(axis)]));
  std::size_t first = 0;
  std::size_t count = 0;
  torii_split(call.extents[dealt], torii_team_ranks(team), torii_team_rank(team), &first, &count);
  shape[0] = static_cast<Py_ssize_t>(count);
  call.out = new_array(array, shape);
  return call.out && call.result.acquire(call.out.get(), "out", true) && check_part(team, call, call.result, dealt);
}

/// The bytes of an item, which is all of an array but its first dimension. False, with an exception set, if there are
/// too many.
bool find_item_bytes(const Buffer& buffer, std::size_t& bytes) {
  bytes = static_cast<std::size_t>(buffer.view().itemsize);
  for (int i = 1; i < buffer.view().ndim; ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(buffer.view().shape[i]), &bytes)) {
      return value_error("an item of %s has more bytes than there can be", buffer.name());
    }
  }
  return true;
}

struct Permutation {
  Buffer input;
  Buffer places;
  Buffer result;
  std::size_t item_bytes = 0;

  static std::size_t items_of(const Buffer& buffer) {
    return static_cast<std::size_t>(buffer.view().ndim == 0 ? 1 : buffer.view().shape[0]);
  }
  std::size_t destinations() const { return places.bytes() / sizeof(std::uint64_t); }
};

bool describe_permutation(PyObject* array, PyObject* destinations, PyObject* out, Permutation& call) {
  Element element;
  std::size_t out_bytes = 0;
  if (!call.input.acquire(array, "array", false) || !call.places.acquire(destinations, "destinations", false) ||
      !call.result.acquire(out, "out", true) || !check_no_pointers(call.input) || !check_no_pointers(call.result) ||
      !check_same_items(call.input, call.result) || !find_element(call.places, Py_None, element) ||
      !find_item_bytes(call.input, call.item_bytes) || !find_item_bytes(call.result, out_bytes)) {
    return false;
  }
  if (element.type != TORII_U64) {
    return value_error("destinations has elements of type %s; they must be u64", torii_type_name(element.type));
  }
  const std::size_t items = Permutation::items_of(call.input);
  return (items == call.destinations() && call.item_bytes == out_bytes) ||
         value_error(
             "array has %zu items of %zu bytes, out has items of %zu, destinations has %zu values; items must have "
             "one size, and a destination each",
             items, call.item_bytes, out_bytes, call.destinations());
}

}  // namespace

PyObject* transpose_array(PyObject* object, PyObject* args) {
  PyObject *array = nullptr, *out = nullptr, *shape = nullptr, *axes = nullptr;
  if (PyArg_ParseTuple(args, "OOOO:transpose", &array, &out, &shape, &axes) == 0) return nullptr;
  TeamObject* const self = team_of(object);
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  Transpose call;
  const bool is_good = describes([&] {
    return read_shape(shape, call) && read_axes(axes, call) && call.input.acquire(array, "array", false) &&
           check_no_pointers(call.input) && check_part(self->team, call, call.input, 0) &&
           take_part(self->team, array, out, call);
  });
  if (!is_good) return refuse(self);
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = torii_transpose_array(self->team, call.input.address(), call.result.address(), call.extents.data(),
                                   call.axes.data(), static_cast<int>(call.axes.size()),
                                   static_cast<std::size_t>(call.input.view().itemsize));
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal handler
  return status == TORII_OK ? call.out.release() : raise_status(status, self->team);
}

PyObject* permute_items(PyObject* object, PyObject* args) {
  PyObject *array = nullptr, *destinations = nullptr, *out = nullptr;
  if (PyArg_ParseTuple(args, "OOO:permute", &array, &destinations, &out) == 0) return nullptr;
  TeamObject* const self = team_of(object);
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  Permutation call;
  if (!describe_permutation(array, destinations, out, call)) return refuse(self);
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = torii_permute(self->team, call.input.address(), call.destinations(),
                           reinterpret_cast<const std::uint64_t*>(call.places.address()), call.result.address(),
                           Permutation::items_of(call.result), call.item_bytes);
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
