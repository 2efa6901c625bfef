// SPDX-License-Identifier: Apache-2.0
// A Request that dies while its operation runs leaves the operation to its team: peers may still read the buffers.
#include "python/extension/request.hpp"

#include <new>
#include <string>
#include <vector>

#include "python/extension/errors.hpp"
#include "python/extension/refusal.hpp"

namespace torii_python {
namespace {

/// Why a run has failed. Each question makes an exception of its own from it. A kept exception would keep the frames of
/// its traceback alive, with the request among their variables.
struct Failure {
  torii_status status;
  std::string reason;
  std::vector<int> lost;
};

struct RequestObject {
  PyObject head;
  TeamObject* team;
  Operation* operation;  // nullptr once a started operation has ended: its buffers are free
  PyObject* answer;
  Failure* failure;  // of the last run; nullptr if it did not fail
  Handle handle;
  bool is_running;
  bool is_receive;
};

RequestObject* request_of(PyObject* self) { return reinterpret_cast<RequestObject*>(self); }

/// Notes that the operation has ended, and how. Another thread that asks meanwhile finds it running.
void end_request(RequestObject* self, torii_status status) {
  if (status != TORII_OK) self->failure = new Failure{status, torii_last_error(), lost_members(self->team->team)};
  Operation* const operation = self->handle.is_persistent ? nullptr : std::exchange(self->operation, nullptr);
  self->is_running = false;
  delete operation;  // an object that dies with its buffer may run code of Python, which finds all as it will be
}

/// The answer of an operation that has ended, or its failure.
PyObject* outcome(const RequestObject* self) {
  if (self->failure == nullptr) return Py_NewRef(self->answer);
  return raise_status(self->failure->status, self->failure->reason, self->failure->lost);
}

/// Hands what runs to the team. The caller has set no exception that may be lost.
void abandon(RequestObject* self) {
  TeamObject* const team = self->team;
  if (team->abandoned == nullptr) team->abandoned = new (std::nothrow) std::vector<Abandoned>;
  if (team->abandoned == nullptr) return;  // without memory the operation and its buffers stay for ever
  try {
    team->abandoned->push_back({self->handle, self->operation});
  } catch (const std::bad_alloc&) {
    return;
  }
  if (!self->is_running) return;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (PyErr_WarnEx(PyExc_ResourceWarning,
                   "a torii.Request was deleted while its operation runs; wait() for it. Its buffers stay locked",
                   1) != 0)
    PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, traceback);
}

void request_dealloc(PyObject* object) {
  RequestObject* const self = request_of(object);
  if (self->team == nullptr) {
    // A request that could not be made.
  } else if (!is_ours(self->team)) {
    // The operation is the parent's, or nobody moves it any more: its buffers are left as they are.
    if (!self->is_running) delete std::exchange(self->operation, nullptr);
  } else if (self->handle.request != nullptr &&
             (self->team->is_busy || (self->is_running && self->team->team != nullptr))) {
    abandon(self);
  } else {
    // An operation on a team that has been closed has ended with that team.
    bool done = false;
    if (self->is_running) test_request(self->handle, done);
    if (self->handle.request != nullptr) free_request(self->handle);
    delete std::exchange(self->operation, nullptr);
  }
  Py_CLEAR(self->answer);
  delete self->failure;
  Py_XDECREF(reinterpret_cast<PyObject*>(self->team));
  free_object(object);
}

PyObject* request_test(PyObject* object, PyObject*) {
  RequestObject* const self = request_of(object);
  if (self->is_running) {
    TeamUse use;
    if (!use.begin_for_request(self->team)) return nullptr;
    bool done = false;
    torii_status status = TORII_OK;
    {
      const Blocking blocking(self->team->team);
      status = test_request(self->handle, done);
    }
    if (!done && status != TORII_OK) return raise_status(status, self->team->team);
    if (!done) Py_RETURN_FALSE;
    end_request(self, status);
  }
  const Owned answer(outcome(self));
  if (!answer) return nullptr;
  Py_RETURN_TRUE;
}

/// Seconds of a timeout that may be None, which is -1.
bool read_seconds(PyObject* object, double& seconds) {
  seconds = -1;
  if (object == Py_None) return true;
  seconds = PyFloat_AsDouble(object);
  if (seconds == -1 && PyErr_Occurred() != nullptr) return false;
  return seconds >= 0 || value_error("timeout is %R; it must be None or at least 0 seconds", object);
}

PyObject* request_wait(PyObject* object, PyObject* args, PyObject* keywords) {
  const char* names[] = {"timeout", nullptr};
  PyObject* timeout = Py_None;
  double seconds = -1;
  if (PyArg_ParseTupleAndKeywords(args, keywords, "|O:wait", const_cast<char**>(names), &timeout) == 0) return nullptr;
  if (!read_seconds(timeout, seconds)) return nullptr;
  RequestObject* const self = request_of(object);
  if (!self->is_running) return outcome(self);
  TeamUse use;
  if (!use.begin_for_request(self->team)) return nullptr;
  bool done = false;
  torii_status status = TORII_OK;
  {
    Blocking blocking(self->team->team);
    status = wait_request(self->handle, seconds, blocking, done);
  }
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);  // of a signal handler; it has precedence
  if (done) end_request(self, status);
  if (type != nullptr) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  if (done) return outcome(self);
  if (status != TORII_OK) return raise_status(status, self->team->team);
  PyErr_Format(PyExc_TimeoutError, "the operation has not ended after %R s; it goes on", timeout);
  return nullptr;
}

PyObject* request_start(PyObject* object, PyObject*) {
  RequestObject* const self = request_of(object);
  if (!self->handle.is_persistent || self->handle.request == nullptr) {
    value_error(self->handle.is_persistent ? "the request has been freed"
                                           : "the request is not persistent: use prepare_... to run it again");
    return nullptr;
  }
  TeamUse use;
  if (!use.begin(self->team)) return nullptr;
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team->team);
    status = restart_request(self->handle);
  }
  if (status != TORII_OK) return raise_status(status, self->team->team);
  delete std::exchange(self->failure, nullptr);
  self->is_running = true;
  return Py_NewRef(object);
}

PyObject* request_free(PyObject* object, PyObject*) {
  RequestObject* const self = request_of(object);
  if (self->is_running) return value_error("the operation runs; wait for it first") ? object : nullptr;
  if (self->handle.request != nullptr) {
    TeamUse use;
    if (!use.begin_for_request(self->team)) return nullptr;
    const torii_status status = free_request(self->handle);
    if (status != TORII_OK) return raise_status(status, self->team->team);
  }
  delete std::exchange(self->operation, nullptr);
  Py_RETURN_NONE;
}

PyObject* request_cancel(PyObject* object, PyObject*) {
  RequestObject* const self = request_of(object);
  if (!self->is_receive) return value_error("only a request of start_recv() can be cancelled") ? object : nullptr;
  if (!self->is_running) Py_RETURN_FALSE;
  TeamUse use;
  if (!use.begin_for_request(self->team)) return nullptr;
  bool is_cancelled = false;
  const torii_status status = cancel_request(self->handle, is_cancelled);
  if (status != TORII_OK) return raise_status(status, self->team->team);
  if (!is_cancelled) Py_RETURN_FALSE;
  const Owned answer(std::exchange(self->answer, Py_NewRef(Py_None)));
  end_request(self, TORII_OK);
  Py_RETURN_TRUE;
}

PyObject* request_done(PyObject* self, void*) { return PyBool_FromLong(!request_of(self)->is_running); }
PyObject* request_team(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(request_of(self)->team)); }

/// Makes a request for a collective.
PyObject* make_request(PyObject* object, PyObject* const* list, Py_ssize_t count, bool is_persistent) {
  Arguments arguments = {};
  if (!read_arguments(list, count, arguments)) return nullptr;
  TeamObject* const team = team_of(object);
  TeamUse use;
  if (!use.begin(team)) return nullptr;
  auto operation = std::unique_ptr<Operation>(new (std::nothrow) Operation);
  if (operation == nullptr) PyErr_NoMemory();
  if (operation == nullptr || !describe(team->team, arguments, *operation)) return refuse(team);
  const Owned request = new_request();
  return request ? start_request_of(request.get(), object, std::move(operation), is_persistent) : refuse(team);
}

PyMethodDef request_methods[] = {
    {"test", entry<request_test>, METH_NOARGS,
     "Whether the operation has ended. Moves the operations of the team a little. Raises what has failed."},
    {"wait", method(entry<request_wait>), METH_VARARGS | METH_KEYWORDS,
     "wait(timeout=None): waits for the end and returns the result. After `timeout` seconds it raises TimeoutError,\n"
     "and the operation goes on. Without timeout the deadline of the context holds (the setting TIMEOUT)."},
    {"start", entry<request_start>, METH_NOARGS, "Runs a persistent operation, made by prepare_..., once more."},
    {"cancel", entry<request_cancel>, METH_NOARGS,
     "Takes a receive of start_recv() back that has met no send, and returns True: the request has ended, its result\n"
     "is None. False if it has met one; then wait() for it. Waits for nobody."},
    {"free", entry<request_free>, METH_NOARGS,
     "Unlocks the buffers of a persistent operation that is not running. All ranks free in the same order."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef request_questions[] = {
    {"done", request_done, nullptr, "Whether the end of the operation has been seen by test() or wait().", nullptr},
    {"team", request_team, nullptr, "The team of the operation.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

Owned new_request() {
  return Owned(
      reinterpret_cast<PyObject*>(allocate_object<RequestObject>(reinterpret_cast<PyTypeObject*>(hooks.request))));
}

PyObject* start_request_of(PyObject* request, PyObject* object, std::unique_ptr<Operation> operation,
                           bool is_persistent) {
  RequestObject* const self = request_of(request);
  TeamObject* const team = team_of(object);
  self->handle.is_persistent = is_persistent;
  torii_status status = TORII_OK;
  {
    const Blocking blocking(team->team);
    status = start_request(team->team, *operation, self->handle);
  }
  if (self->handle.request != nullptr) {
    self->team = team_of(Py_NewRef(object));
    self->answer = operation->answer.release();
    self->is_receive = operation->pair.received != nullptr;
    self->operation = operation.release();
    self->is_running = !is_persistent;
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  return status == TORII_OK ? Py_NewRef(request) : raise_status(status, team->team);
}

PyObject* start_operation(PyObject* team, PyObject* const* arguments, Py_ssize_t count) {
  return make_request(team, arguments, count, false);
}

PyObject* prepare_operation(PyObject* team, PyObject* const* arguments, Py_ssize_t count) {
  return make_request(team, arguments, count, true);
}

bool sweep_abandoned(TeamObject* team) {
  // Objects that lose their buffers may run Python code, which may abandon more.
  std::vector<Abandoned> looked_at;
  looked_at.swap(*team->abandoned);
  bool has_freed = false;
  for (Abandoned& one : looked_at) {
    bool done = false;
    test_request(one.handle, done);
    if (!done) {
      team->abandoned->push_back(one);
      continue;
    }
    has_freed = true;
    if (one.handle.request != nullptr) free_request(one.handle);
    delete one.operation;
  }
  return has_freed;
}

void end_abandoned(TeamObject* team) {
  if (team->abandoned == nullptr) return;
  sweep_abandoned(team);
  if (team->abandoned->empty()) return;
  torii_team_abort(team->team, "a rank has closed the team while an operation ran");
  do {
    // Other threads may abandon more during each wait, so the list may move.
    for (std::size_t i = 0; i < team->abandoned->size(); ++i) {
      Handle handle = (*team->abandoned)[i].handle;
      bool done = false;
      {
        Blocking blocking(team->team);
        wait_request(handle, -1, blocking, done);
      }
      (*team->abandoned)[i].handle = handle;
    }
  } while (sweep_abandoned(team) && !team->abandoned->empty());
}

bool add_request_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, slot(request_dealloc)},
                         {Py_tp_methods, request_methods},
                         {Py_tp_getset, request_questions},
                         {Py_tp_doc, const_cast<char*>("A started or persistent operation.")},
                         {0, nullptr}};
  PyType_Spec spec = {"torii._torii.Request", sizeof(RequestObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  const Owned type(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, "Request", type.get()) == 0;
}

}  // namespace torii_python
