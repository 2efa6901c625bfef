// SPDX-License-Identifier: Apache-2.0
// The intervals of a team are in a capsule; leaves are the rows of an array, or come from a function.
#include "python/extension/leaves.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "python/extension/blocking.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/group.hpp"
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
  std::unique_ptr<Operation> operation = std::make_unique<Operation>();  ///< a group may take it
  Giving giving = {};
};

/// What the methods of Leaves give.
struct LeavesArguments {
  PyObject* array;
  PyObject* out;
  PyObject* dtype;
  Py_ssize_t own;  ///< leaves of this rank
};

/// Bytes of one leaf, the rows of the array; of a function, as many as `out` needs.
bool read_input(const LeavesArguments& arguments, std::size_t blocks, LeavesCall& leaves, std::size_t& bytes) {
  torii_call& call = leaves.operation->call;
  if (PyCallable_Check(arguments.array) != 0) {
    if (arguments.out == Py_None) {
      return value_error("out is None; with a function for the leaves it must be given");
    }
    bytes = leaves.operation->result.bytes() * blocks;
    leaves.giving.function = arguments.array;
    leaves.giving.bytes = bytes;
    call.leaf = Giving::call;
    call.leaf_data = &leaves.giving;
    return true;
  }
  Buffer& input = leaves.operation->input;
  if (!input.acquire(arguments.array, "array", false)) return false;
  const Py_buffer& view = input.view();
  if (view.ndim == 0 || view.shape[0] != arguments.own) {
    return value_error("array has %zd rows; it must have one for each of this rank's %zd leaves",
                       view.ndim == 0 ? Py_ssize_t{0} : view.shape[0], arguments.own);
  }
  bytes = static_cast<std::size_t>(view.itemsize);
  for (int i = 1; i < view.ndim; ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(view.shape[i]), &bytes)) {
      return value_error("a leaf of array has more bytes than there can be");
    }
  }
  call.input = input.address();
  return true;
}

/// A new array for the result, if this rank gets one and `out` is None.
bool make_leaves_result(const LeavesArguments& arguments, std::size_t blocks, Operation& operation) {
  const Py_buffer& view = operation.input.view();
  const auto divisor = static_cast<Py_ssize_t>(blocks);
  std::vector<Py_ssize_t> shape;
  for (int i = 1; i < view.ndim; ++i) shape.push_back(view.shape[i]);
  if (blocks > 1 && (shape.empty() || shape[0] % divisor != 0)) {
    return value_error("the second dimension of array is %zd; it must be a multiple of the %zu ranks",
                       shape.empty() ? Py_ssize_t{1} : shape[0], blocks);
  }
  if (!shape.empty()) shape[0] /= divisor;
  operation.answer = new_array(arguments.array, shape);
  return operation.answer && operation.result.acquire(operation.answer.get(), "out", true);
}

bool describe_leaves(const torii_team* team, const LeavesArguments& arguments, LeavesCall& leaves) {
  Operation& operation = *leaves.operation;
  torii_call& call = operation.call;
  const bool has_result = call.collective != TORII_REDUCE || torii_team_rank(team) == call.root;
  const std::size_t blocks = call.collective == TORII_REDUCE_SCATTER ? torii_team_ranks(team) : 1;
  operation.answer = Owned(Py_NewRef(has_result ? arguments.out : Py_None));
  if (arguments.out != Py_None && !operation.result.acquire(arguments.out, "out", true)) return false;
  std::size_t bytes = 0;
  if (!read_input(arguments, blocks, leaves, bytes)) return false;
  Element element;
  const bool has_input = operation.input.is_there();
  if (!find_element(has_input ? operation.input : operation.result, arguments.dtype, element)) return false;
  leaves.giving.dtype = arguments.dtype;
  leaves.giving.type = element.type;
  if (has_input && operation.result.is_there() &&
      !check_same_type(operation.result, arguments.dtype, element.type, "array")) {
    return false;
  }
  if (bytes % (blocks * element.bytes) != 0) {
    return value_error("a leaf has %zu elements; it must have a multiple of the %zu ranks", bytes / element.bytes,
                       blocks);
  }
  if (has_result && arguments.out == Py_None && !make_leaves_result(arguments, blocks, operation)) return false;
  if (operation.result.is_there() && operation.result.bytes() * blocks != bytes) {
    return value_error("out has %zu bytes; a leaf of %zu bytes needs %zu", operation.result.bytes(), bytes,
                       bytes / blocks);
  }
  call.size = sizeof(call);
  call.type = element.type;
  call.count = bytes / blocks / element.bytes;
  call.result = has_result ? operation.result.address() : nullptr;
  return true;
}

/// A function writes leaves when its call starts, and calls of a group start at its end.
bool check_no_function(const torii_call& call) {
  return call.leaf == nullptr ||
         value_error("array is a function; calls of a group start at its end, so make this call outside of the group");
}

bool read_root(const torii_team* team, PyObject* object, int& root) {
  Py_ssize_t value = 0;
  if (!read_integer(object, "root", value)) return false;
  if (value < 0 || value >= torii_team_ranks(team)) {
    return value_error("root is %R; the team has ranks 0 to %d", object, torii_team_ranks(team) - 1);
  }
  root = static_cast<int>(value);
  return true;
}

/// The leaves of a capsule, and how many this rank has: what the object of Python says of itself may have been changed.
torii_leaves* leaves_of(PyObject* capsule, Py_ssize_t& own) {
  auto* const leaves = static_cast<torii_leaves*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (leaves != nullptr) own = reinterpret_cast<Py_ssize_t>(PyCapsule_GetContext(capsule));
  return leaves;
}

struct Interval {
  Py_ssize_t all = 0;
  Py_ssize_t first = 0;
  Py_ssize_t count = 0;
};

/// `first` and `count` may be None: leaves are then dealt as torii_split does.
bool read_interval(const torii_team* team, PyObject* all, PyObject* first, PyObject* count, Interval& interval) {
  if (!read_integer(all, "leaves", interval.all)) return false;
  std::size_t dealt_first = 0;
  std::size_t dealt_count = 0;
  torii_split(static_cast<std::size_t>(std::max(interval.all, Py_ssize_t{0})), torii_team_ranks(team),
              torii_team_rank(team), &dealt_first, &dealt_count);
  interval.first = static_cast<Py_ssize_t>(dealt_first);
  interval.count = static_cast<Py_ssize_t>(dealt_count);
  if (first != Py_None && !read_integer(first, "first", interval.first)) return false;
  if (count != Py_None && !read_integer(count, "count", interval.count)) return false;
  return (interval.all >= 0 && interval.first >= 0 && interval.count >= 0) ||
         value_error("leaves is %zd, first %zd and count %zd; they must not be negative", interval.all, interval.first,
                     interval.count);
}

}  // namespace

PyObject* make_leaves(PyObject* object, PyObject* args) {
  PyObject *all = nullptr, *first = nullptr, *count = nullptr;
  if (PyArg_ParseTuple(args, "OOO:leaves", &all, &first, &count) == 0) return nullptr;
  TeamObject* const self = team_of(object);
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  Interval interval;
  if (!read_interval(self->team, all, first, count, interval)) return refuse(self);
  torii_leaves* leaves = nullptr;
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = torii_leaves_create(self->team, static_cast<std::size_t>(interval.all),
                                 static_cast<std::size_t>(interval.first), static_cast<std::size_t>(interval.count),
                                 &leaves);
  }
  if (PyErr_Occurred() != nullptr) {  // of a signal handler
    torii_leaves_destroy(leaves);
    return nullptr;
  }
  if (status != TORII_OK) return raise_status(status, self->team);
  const Owned capsule(PyCapsule_New(leaves, kCapsule, destroy_leaves));
  if (!capsule) {
    torii_leaves_destroy(leaves);
    return nullptr;
  }
  PyCapsule_SetContext(capsule.get(), reinterpret_cast<void*>(interval.count));
  return Py_BuildValue("Onn", capsule.get(), interval.first, interval.count);
}

PyObject* run_leaves(PyObject* object, PyObject* args) {
  PyObject *capsule = nullptr, *op = nullptr, *root = nullptr;
  LeavesArguments arguments = {};
  int collective = 0;
  if (PyArg_ParseTuple(args, "OiOOOOO:leaves", &capsule, &collective, &arguments.array, &arguments.out, &op, &root,
                       &arguments.dtype) == 0) {
    return nullptr;
  }
  TeamObject* const self = team_of(object);
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  std::optional<Joining> joining;
  if (is_in_group(self)) joining.emplace(self);
  LeavesCall leaves;
  Operation& operation = *leaves.operation;
  operation.call.collective = static_cast<torii_collective>(collective);
  operation.leaves = Owned(Py_NewRef(capsule));
  operation.call.leaves = leaves_of(capsule, arguments.own);
  const bool is_good = describes([&] {
    return operation.call.leaves != nullptr && find_op(op, operation.call.op) &&
           read_root(self->team, root, operation.call.root) && describe_leaves(self->team, arguments, leaves) &&
           (!joining || check_no_function(operation.call));
  });
  if (joining) return joining->end(std::move(leaves.operation), is_good);
  if (!is_good) return refuse(self);
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = torii_run(self->team, &operation.call);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of the function, or of a signal handler
  return status == TORII_OK ? operation.answer.release() : raise_status(status, self->team);
}

}  // namespace torii_python
