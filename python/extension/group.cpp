// SPDX-License-Identifier: Apache-2.0
// Keeps the calls of a group until its end, and makes them then.
#include "python/extension/group.hpp"

#include <atomic>

#include "python/extension/blocking.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/refusal.hpp"
#include "python/extension/request_calls.hpp"

namespace torii_python {
namespace {

/// The first status that is not TORII_OK, and its reason.
struct Outcome {
  torii_status status = TORII_OK;
  std::string reason;
  void add(torii_status other) {
    if (status != TORII_OK || other == TORII_OK) return;
    status = other;
    reason = torii_last_error();
  }
};

/// Makes all calls. Without the GIL.
Outcome make_calls(torii_team* team, const Group& group) {
  Outcome pairs;
  Outcome outcome;
  outcome.add(torii_group_begin(team));
  if (outcome.status != TORII_OK) {
    if (group.has_collectives) torii_refuse(team, outcome.reason.c_str());
    return outcome;
  }
  if (!group.refusal.empty()) torii_refuse(team, group.refusal.c_str());
  for (const auto& operation : group.operations) {
    const torii_status status = run_operation(team, *operation);
    if (operation->pair.is_there) pairs.add(status);  // the end does not tell of those that did not start
  }
  outcome.add(torii_group_end(team));
  return outcome.status == TORII_OK ? pairs : outcome;
}

/// A with statement of Python. `number` is that of the group it has opened, 0 if none is open.
struct GroupObject {
  PyObject head;
  TeamObject* team;
  std::uint64_t number;
};

PyTypeObject* group_type = nullptr;

GroupObject* group_of(PyObject* self) { return reinterpret_cast<GroupObject*>(self); }

/// The group that the statement has opened, which is then open no more; nullptr if there is none.
std::unique_ptr<Group> take_group(GroupObject* self) {
  const std::uint64_t number = std::exchange(self->number, 0);
  const Group* const group = self->team->group;
  if (number == 0 || group == nullptr || group->number != number) return nullptr;
  return std::unique_ptr<Group>(std::exchange(self->team->group, nullptr));
}

/// Why a block was left, from what __exit__ is told. Never fails: the text of an exception may raise itself.
std::string reason_of(PyObject* type, PyObject* value) {
  const Owned name(PyObject_GetAttrString(type, "__name__"));
  std::string reason = "its group of calls was left by ";
  reason += name ? text_of(name.get()) : "an exception";
  PyErr_Clear();
  const std::string text = text_of(value);
  return text.empty() ? reason : reason + ": " + text;
}

PyObject* group_enter(PyObject* object, PyObject*) {
  static std::uint64_t groups = 0;
  GroupObject* const self = group_of(object);
  TeamObject* const team = self->team;
  TeamUse use;
  if (!use.begin(team)) return nullptr;
  if (is_in_group(team)) {
    value_error("this thread is in a group of the team already; groups do not nest");
    return nullptr;
  }
  if (team->group != nullptr) {
    PyErr_SetString(PyExc_RuntimeError,
                    "another thread is in a group of this team; give each thread a team of its own (Team.split)");
    return nullptr;
  }
  team->group = new Group;
  team->group->thread = thread_number();
  team->group->number = self->number = ++groups;
  Py_RETURN_NONE;
}

/// Makes the calls of a group that ends.
PyObject* end_group(TeamObject* team, const Group& group) {
  TeamUse use;
  if (!use.begin(team)) {
    if (group.has_collectives) refuse_later(team, "its group of calls ended while another thread was in a call");
    return nullptr;
  }
  Outcome outcome;
  {
    const Blocking blocking(team->team);
    outcome = make_calls(team->team, group);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal handler
  if (outcome.status != TORII_OK) return raise_status(outcome.status, outcome.reason, lost_members(team->team));
  Py_RETURN_NONE;
}

PyObject* group_exit(PyObject* object, PyObject* args) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  if (PyArg_ParseTuple(args, "OOO:__exit__", &type, &value, &traceback) == 0) return nullptr;
  TeamObject* const team = group_of(object)->team;
  const std::unique_ptr<Group> group = take_group(group_of(object));
  if (group == nullptr && type == Py_None) {
    value_error("the group is not open: its with statement has not begun, or has ended");
    return nullptr;
  }
  if (type == Py_None) return end_group(team, *group);
  if (group != nullptr && group->has_collectives) refuse_later(team, reason_of(type, value).c_str());
  Py_RETURN_NONE;
}

/// A statement that never came to its end, such as one of an ExitStack whose enter_context() was interrupted.
void group_dealloc(PyObject* object) {
  GroupObject* const self = group_of(object);
  const std::unique_ptr<Group> group = take_group(self);
  if (group != nullptr && group->has_collectives) refuse_later(self->team, "its group of calls was given up");
  Py_XDECREF(reinterpret_cast<PyObject*>(self->team));
  free_object(object);
}

PyMethodDef group_methods[] = {{"__enter__", entry<group_enter>, METH_NOARGS, nullptr},
                               {"__exit__", entry<group_exit>, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::uint64_t thread_number() {
  static std::atomic<std::uint64_t> threads = 0;
  thread_local const std::uint64_t number = ++threads;
  return number;
}

PyObject* join_group(TeamObject* team, std::unique_ptr<Operation> operation) {
  PyObject* const answer = Py_NewRef(operation->answer.get());
  team->group->operations.push_back(std::move(operation));
  return answer;
}

Joining::Joining(TeamObject* team) : team_(team), number_(team->group->number) { team->group->has_collectives = true; }

PyObject* Joining::end(std::unique_ptr<Operation> operation, bool is_good) {
  if (is_good && is_open()) return join_group(team_, std::move(operation));
  if (is_good) {
    PyErr_SetString(PyExc_RuntimeError, "the group of calls has ended while this call joined it");
    return nullptr;
  }
  const std::string reason = current_message();  // which may run code of Python, too
  if (is_open() && team_->group->refusal.empty()) team_->group->refusal = reason;
  return nullptr;
}

PyObject* make_group(PyObject* team, PyObject*) {
  auto* const self = allocate_object<GroupObject>(group_type);
  if (self != nullptr) self->team = team_of(Py_NewRef(team));
  return reinterpret_cast<PyObject*>(self);
}

bool add_group_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, slot(group_dealloc)},
                         {Py_tp_methods, group_methods},
                         {Py_tp_doc, const_cast<char*>("What Team.group() returns, for a with statement.")},
                         {0, nullptr}};
  PyType_Spec spec = {"torii._torii.Group", sizeof(GroupObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  group_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return group_type != nullptr && PyModule_AddObjectRef(module, "Group", reinterpret_cast<PyObject*>(group_type)) == 0;
}

}  // namespace torii_python
