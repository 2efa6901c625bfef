// SPDX-License-Identifier: Apache-2.0
// Joining a job, and questions about it.
#include "python/extension/context.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "python/extension/blocking.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/farewell.hpp"
#include "python/extension/memory.hpp"

namespace torii_python {

PyTypeObject* context_type = nullptr;

namespace {

/// Copies what the function returned, which gives `bytes` bytes per rank.
bool copy_answers(PyObject* answers, int ranks, std::byte* all, std::size_t bytes) {
  // The object may say another length than it has when it is gone through, so only the tuple is asked.
  const Owned list(PySequence_Tuple(answers));
  if (!list) return false;
  const Py_ssize_t count = PyTuple_Size(list.get());
  if (count != ranks) return value_error("exchange returned %zd values; there are %d ranks", count, ranks);
  for (Py_ssize_t rank = 0; rank < count; ++rank) {
    char* text = nullptr;
    Py_ssize_t length = 0;
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(list.get(), rank), &text, &length) != 0) return false;
    if (static_cast<std::size_t>(length) != bytes) {
      return value_error("exchange returned %zd bytes for rank %zd; it must return the %zu bytes that this rank gave",
                         length, rank, bytes);
    }
    std::memcpy(all + static_cast<std::size_t>(rank) * bytes, text, bytes);
  }
  return true;
}

}  // namespace

int call_exchange(const void* mine, void* all, std::size_t bytes, void* data) {
  const auto* const exchange = static_cast<const Exchange*>(data);
  const PyGILState_STATE state = PyGILState_Ensure();
  bool is_good = false;
  if (PyErr_Occurred() == nullptr) {
    const Owned own(PyBytes_FromStringAndSize(static_cast<const char*>(mine), static_cast<Py_ssize_t>(bytes)));
    const Owned answers(own ? PyObject_CallFunctionObjArgs(exchange->function, own.get(), nullptr) : nullptr);
    is_good = answers && copy_answers(answers.get(), exchange->ranks, static_cast<std::byte*>(all), bytes);
  }
  PyGILState_Release(state);
  return is_good ? 0 : 1;
}

bool is_usable(const ContextObject* self) {
  if (self->context == nullptr) return value_error("the context has been closed");
  if (self->owner != getpid()) return value_error("the context belongs to the parent of this forked process");
  return true;
}

bool TeamMaking::begin(ContextObject* context) {
  if (context->makes_team) {
    PyErr_SetString(PyExc_RuntimeError,
                    "another thread is making a team of this context; one thread makes them, in the same order on all "
                    "ranks");
    return false;
  }
  context->makes_team = true;
  context_ = context;
  return true;
}

namespace {

PyObject* context_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  const char* names[] = {"settings", "rank", "ranks", "exchange", "memory_of", nullptr};
  const char* settings = nullptr;
  int rank = 0;
  int ranks = 0;
  PyObject* exchange = Py_None;
  PyObject* memory_of = Py_None;
  if (PyArg_ParseTupleAndKeywords(args, keywords, "|ziiOO:Context", const_cast<char**>(names), &settings, &rank, &ranks,
                                  &exchange, &memory_of) == 0) {
    return nullptr;
  }
  if (exchange != Py_None && PyCallable_Check(exchange) == 0) {
    PyErr_Format(PyExc_TypeError, "exchange is %R; it must be a function from bytes to a list of bytes", exchange);
    return nullptr;
  }
  if (memory_of != Py_None && PyObject_TypeCheck(memory_of, context_type) == 0) {
    PyErr_Format(PyExc_TypeError, "memory_of is %R; it must be a Context", memory_of);
    return nullptr;
  }
  if (memory_of != Py_None && !is_usable(context_of(memory_of))) return nullptr;
  if (ranks == 0 && rank != 0) {
    value_error("rank is %d, but ranks is not given", rank);
    return nullptr;
  }
  Owned object(reinterpret_cast<PyObject*>(allocate_object<ContextObject>(type)));
  if (!object) return nullptr;
  ContextObject* const self = context_of(object.get());
  self->owner = getpid();
  torii_context_options options = {};
  options.size = sizeof(options);
  options.settings = settings;
  options.idle = Blocking::idle;
  options.rank = rank;
  options.ranks = ranks;
  if (memory_of != Py_None) options.memory_of = context_of(memory_of)->context;
  if (exchange != Py_None) {
    self->exchange.function = Py_NewRef(exchange);
    self->exchange.ranks = ranks;
    options.exchange = call_exchange;
    options.exchange_data = &self->exchange;
  }
  torii_status status = TORII_OK;
  {
    const Blocking blocking(nullptr);
    status = torii_context_create(&options, &self->context);
  }
  if (self->context != nullptr) note_context(self->context);
  if (PyErr_Occurred() != nullptr) return nullptr;  // of the exchange function, which says more
  return status == TORII_OK ? object.release() : raise_status(status, nullptr);
}

/// Gives the context up. False, with an exception set, if something of it is alive.
bool close_context(ContextObject* self) {
  if (self->context == nullptr || self->owner != getpid()) return true;
  if (self->memories != 0) {
    return value_error("%zd arrays or regions of the context are alive; delete them before the context is closed",
                       self->memories);
  }
  TeamMaking making;
  if (!making.begin(self)) return false;
  const torii_status status = destroy_context(self->context);
  if (status != TORII_OK) return raise_status(status, nullptr) != nullptr;
  self->context = nullptr;
  return true;
}

void context_dealloc(PyObject* object) {
  ContextObject* const self = context_of(object);
  // Teams and memory hold references, so they are gone.
  if (self->context != nullptr && self->owner == getpid() && !is_leaving()) destroy_context(self->context);
  Py_CLEAR(self->exchange.function);
  free_object(object);
}

PyObject* context_close(PyObject* self, PyObject*) {
  if (!close_context(context_of(self))) return nullptr;
  Py_RETURN_NONE;
}

template <int Question(const torii_context*)>
PyObject* context_number(PyObject* self, void*) {
  return is_usable(context_of(self)) ? PyLong_FromLong(Question(context_of(self)->context)) : nullptr;
}

/// The rank that an argument names. False, with IndexError set, if there is none.
bool read_rank(const ContextObject* self, PyObject* argument, int& rank) {
  const long value = PyLong_AsLong(argument);
  if (value == -1 && PyErr_Occurred() != nullptr) return false;
  const int ranks = torii_context_ranks(self->context);
  if (value < 0 || value >= ranks) {
    PyErr_Format(PyExc_IndexError, "rank is %ld; there are %d ranks", value, ranks);
    return false;
  }
  rank = static_cast<int>(value);
  return true;
}

PyObject* context_node(PyObject* self, PyObject* argument) {
  int rank = 0;
  if (!is_usable(context_of(self)) || !read_rank(context_of(self), argument, rank)) return nullptr;
  return PyLong_FromLong(torii_context_node(context_of(self)->context, rank));
}

PyObject* context_host(PyObject* self, PyObject* argument) {
  int rank = 0;
  if (!is_usable(context_of(self)) || !read_rank(context_of(self), argument, rank)) return nullptr;
  return PyUnicode_FromString(torii_context_host(context_of(self)->context, rank));
}

PyObject* context_engine_bytes(PyObject* self, void*) {
  if (!is_usable(context_of(self))) return nullptr;
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(torii_engine_bytes(context_of(self)->context, nullptr, 0)));
  torii_engine_bytes(context_of(self)->context, bytes.data(), static_cast<int>(bytes.size()));
  Owned list(PyList_New(static_cast<Py_ssize_t>(bytes.size())));
  for (std::size_t i = 0; list && i < bytes.size(); ++i) {
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), PyLong_FromUnsignedLongLong(bytes[i]));
  }
  return list.release();
}

PyObject* context_closed(PyObject* self, void*) { return PyBool_FromLong(context_of(self)->context == nullptr); }

PyMethodDef context_methods[] = {
    {"close", entry<context_close>, METH_NOARGS,
     "Leaves the job. Teams must be closed, and arrays and regions of the context deleted, before."},
    {"node", entry<context_node>, METH_O, "node(rank): the number of a rank's node; ranks of one node share memory."},
    {"host", entry<context_host>, METH_O, "host(rank): the name of a rank's host."},
    {"_allocate", entry<allocate_memory>, METH_O, "_allocate(bytes) -> Memory"},
    {"_adopt", entry<adopt_memory>, METH_O, "_adopt(buffer) -> Region"},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef context_questions[] = {
    {"rank", context_number<torii_context_rank>, nullptr, "The number of this process in its job, from 0.", nullptr},
    {"ranks", context_number<torii_context_ranks>, nullptr, "The number of processes of the job.", nullptr},
    {"nodes", context_number<torii_context_nodes>, nullptr, "The number of sets of ranks that share memory.", nullptr},
    {"local_rank", context_number<torii_context_local_rank>, nullptr, "This rank's place in its node, from 0.",
     nullptr},
    {"local_ranks", context_number<torii_context_local_ranks>, nullptr, "The number of ranks of this node.", nullptr},
    {"engine_bytes", entry<context_engine_bytes>, nullptr, "Bytes that each engine has put, as a list.", nullptr},
    {"closed", context_closed, nullptr, "Whether close() has been called.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

bool add_context_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, slot(entry<context_new>)},
                         {Py_tp_dealloc, slot(context_dealloc)},
                         {Py_tp_methods, context_methods},
                         {Py_tp_getset, context_questions},
                         {Py_tp_doc, const_cast<char*>("This process in its job.")},
                         {0, nullptr}};
  PyType_Spec spec = {"torii._torii.Context", sizeof(ContextObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots};
  context_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return context_type != nullptr &&
         PyModule_AddObjectRef(module, "Context", reinterpret_cast<PyObject*>(context_type)) == 0;
}

}  // namespace torii_python
