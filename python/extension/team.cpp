// SPDX-License-Identifier: Apache-2.0
// Making teams, running operations on them, and questions about them.
#include "python/extension/team.hpp"

#include "python/extension/blocking.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/farewell.hpp"
#include "python/extension/group.hpp"
#include "python/extension/leaves.hpp"
#include "python/extension/redistribution.hpp"
#include "python/extension/refusal.hpp"
#include "python/extension/request.hpp"
#include "python/extension/send_recv.hpp"
#include "python/extension/team_options.hpp"

namespace torii_python {

bool TeamUse::begin(TeamObject* team) {
  return team->team == nullptr ? value_error("the team has been closed") : begin_for_request(team);
}

bool TeamUse::begin_for_request(TeamObject* team) {
  if (team->is_busy) {
    PyErr_SetString(PyExc_RuntimeError,
                    "another thread is in a call on this team, or this one is, below a signal handler; a team has one "
                    "caller at a time: give each thread a team of its own (Team.split with one color)");
    return false;
  }
  team->is_busy = true;
  team_ = team;
  if (team->abandoned != nullptr && !team->abandoned->empty()) sweep_abandoned(team);
  return true;
}

void TeamUse::deliver_refusal() {
  const std::unique_ptr<std::string> reason(std::exchange(team_->refusal, nullptr));
  if (team_->team != nullptr && is_ours(team_)) torii_refuse(team_->team, reason->c_str());
}

bool is_ours(const TeamObject* team) { return team->context->owner == getpid() && !is_leaving(); }

PyObject* refuse(TeamObject* team) {
  torii_refuse(team->team, current_message().c_str());
  return nullptr;
}

void refuse_later(TeamObject* team, const char* reason) {
  if (team->team == nullptr || !is_ours(team)) return;
  if (!team->is_busy) {
    torii_refuse(team->team, reason);
  } else if (team->refusal == nullptr) {
    try {
      team->refusal = new std::string(reason);
    } catch (const std::bad_alloc&) {
      // The other ranks wait up to their deadline then.
    }
  }
}

namespace {

bool is_open(const TeamObject* self) { return self->team != nullptr || value_error("the team has been closed"); }

/// A new team object without a team.
Owned make_team_object(PyTypeObject* type, ContextObject* context) {
  Owned object(reinterpret_cast<PyObject*>(allocate_object<TeamObject>(type)));
  if (object) {
    team_of(object.get())->context = reinterpret_cast<ContextObject*>(Py_NewRef(reinterpret_cast<PyObject*>(context)));
  }
  return object;
}

PyObject* team_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject* context = nullptr;
  if (PyArg_ParseTuple(args, "O!:Team", context_type, &context) == 0) return nullptr;
  ContextObject* const owner = reinterpret_cast<ContextObject*>(context);
  TeamOptions options;
  TeamMaking making;
  if (!is_usable(owner) || !read_team_options(keywords, options)) return nullptr;
  // Teams of named members may be made at any time, if their exchanges do not interfere.
  if (options.options.members == nullptr && !making.begin(owner)) return nullptr;
  Owned object = make_team_object(type, owner);
  if (!object) return nullptr;
  torii_status status = TORII_OK;
  {
    const Blocking blocking(nullptr);
    status = torii_team_create(owner->context, &options.options, &team_of(object.get())->team);
  }
  if (team_of(object.get())->team != nullptr) note_team(team_of(object.get())->team);
  if (PyErr_Occurred() != nullptr) return nullptr;  // of the exchange function, which says more
  return status == TORII_OK ? object.release() : raise_status(status, nullptr);
}

/// Ends what runs and gives the team up. `self` is not used by another thread.
torii_status end_team(TeamObject* self) {
  end_abandoned(self);
  const torii_status status = destroy_team(self->team);
  if (status == TORII_OK) self->team = nullptr;
  return status;
}

void team_dealloc(PyObject* object) {
  TeamObject* const self = team_of(object);
  if (self->context != nullptr && is_ours(self)) {
    if (self->team != nullptr) {
      end_team(self);
    } else if (self->abandoned != nullptr) {
      sweep_abandoned(self);  // all have ended with the team, which was closed
    }
  }
  delete self->abandoned;
  delete self->group;
  delete self->refusal;
  Py_XDECREF(reinterpret_cast<PyObject*>(self->context));
  free_object(object);
}

PyObject* team_close(PyObject* object, PyObject*) {
  TeamObject* const self = team_of(object);
  if (self->team == nullptr || !is_ours(self)) Py_RETURN_NONE;
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  if (self->group != nullptr) {
    return value_error("a group of the team is open; close the team behind its end") ? object : nullptr;
  }
  const torii_status status = end_team(self);
  if (status != TORII_OK) return raise_status(status, self->team);
  Py_RETURN_NONE;
}

PyObject* team_run(PyObject* object, PyObject* const* list, Py_ssize_t count) {
  TeamObject* const self = team_of(object);
  Arguments arguments = {};
  if (!read_arguments(list, count, arguments)) return nullptr;
  TeamUse use;
  if (!use.begin(self)) return nullptr;
  if (is_in_group(self)) {
    Joining joining(self);
    auto joined = std::make_unique<Operation>();
    const bool is_good = describe(self->team, arguments, *joined);
    return joining.end(std::move(joined), is_good);
  }
  Operation operation;
  if (!describe(self->team, arguments, operation)) return refuse(self);
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = run_operation(self->team, operation);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal handler
  return status == TORII_OK ? operation.answer.release() : raise_status(status, self->team);
}

/// A team of the class of `object`, made by `make` from options; None if `make` made none. `refuse_here` returns
/// nullptr if the options are wrong. A thread that comes while another one makes a team makes no call.
template <typename Make>
PyObject* derive_team(PyObject* object, PyObject* dict, Make&& make, PyObject* (*refuse_here)(TeamObject* team)) {
  TeamObject* const self = team_of(object);
  TeamMaking making;
  TeamOptions options;
  if (!making.begin(self->context)) return nullptr;
  if (!read_team_options(dict, options)) return refuse_here(self);
  Owned part = make_team_object(Py_TYPE(object), self->context);
  if (!part) return refuse_here(self);
  torii_status status = TORII_OK;
  {
    const Blocking blocking(self->team);
    status = make(self->team, &options.options, &team_of(part.get())->team);
  }
  if (team_of(part.get())->team != nullptr) note_team(team_of(part.get())->team);
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal handler
  if (status != TORII_OK) return raise_status(status, self->team);
  if (team_of(part.get())->team == nullptr) Py_RETURN_NONE;
  return part.release();
}

PyObject* team_split(PyObject* self, PyObject* args) {
  TeamUse use;
  if (!use.begin(team_of(self))) return nullptr;
  int color = 0;
  int key = 0;
  PyObject* dict = nullptr;
  if (PyArg_ParseTuple(args, "iiO:split", &color, &key, &dict) == 0) return refuse(team_of(self));
  const auto make = [&](torii_team* team, const torii_team_options* options, torii_team** part) {
    return torii_team_split(team, color, key, options, part);
  };
  return derive_team(self, dict, make, refuse);
}

PyObject* team_survivors(PyObject* self, PyObject* dict) {
  TeamUse use;
  if (!use.begin(team_of(self))) return nullptr;
  // No call of the team, which has failed.
  return derive_team(self, dict, torii_team_survivors, [](TeamObject*) { return static_cast<PyObject*>(nullptr); });
}

PyObject* team_abort(PyObject* self, PyObject* args) {
  const char* reason = "";
  if (PyArg_ParseTuple(args, "|s:abort", &reason) == 0 || !is_open(team_of(self))) return nullptr;
  const torii_status status = torii_team_abort(team_of(self)->team, reason);
  if (status != TORII_OK) return raise_status(status, team_of(self)->team);
  Py_RETURN_NONE;
}

PyObject* team_health(PyObject* self, PyObject*) {
  if (!is_open(team_of(self))) return nullptr;
  const torii_status status = torii_team_health(team_of(self)->team);
  return Py_BuildValue("is", static_cast<int>(status), status == TORII_OK ? "" : torii_last_error());
}

template <int Question(const torii_team*, int*, int)>
PyObject* team_list(PyObject* self, void*) {
  if (!is_open(team_of(self))) return nullptr;
  std::vector<int> members(static_cast<std::size_t>(torii_team_ranks(team_of(self)->team)));
  const int count = Question(team_of(self)->team, members.data(), static_cast<int>(members.size()));
  if (count < 0) return PyErr_NoMemory();
  Owned list(PyList_New(count));
  for (int i = 0; list && i < count; ++i) {
    PyList_SetItem(list.get(), i, PyLong_FromLong(members[static_cast<std::size_t>(i)]));
  }
  return list.release();
}

template <int Question(const torii_team*)>
PyObject* team_number(PyObject* self, void*) {
  return is_open(team_of(self)) ? PyLong_FromLong(Question(team_of(self)->team)) : nullptr;
}

PyObject* team_context(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(team_of(self)->context)); }

PyObject* team_closed(PyObject* self, void*) { return PyBool_FromLong(team_of(self)->team == nullptr); }

PyObject* team_context_rank(PyObject* self, PyObject* member) {
  const long value = PyLong_AsLong(member);
  if ((value == -1 && PyErr_Occurred() != nullptr) || !is_open(team_of(self))) return nullptr;
  const int ranks = torii_team_ranks(team_of(self)->team);
  if (value >= 0 && value < ranks) {
    return PyLong_FromLong(torii_team_context_rank(team_of(self)->team, static_cast<int>(value)));
  }
  PyErr_Format(PyExc_IndexError, "member is %ld; the team has %d ranks", value, ranks);
  return nullptr;
}

/// _choose(collective, count, dtype, op, root): what would run, as a tuple.
PyObject* team_choose(PyObject* object, PyObject* args) {
  TeamObject* const self = team_of(object);
  int collective = 0;
  Py_ssize_t count = 0;
  PyObject* dtype = nullptr;
  PyObject* op = nullptr;
  int root = 0;
  Element element;
  torii_call call = {};
  TeamUse use;
  if (PyArg_ParseTuple(args, "inOOi:choose", &collective, &count, &dtype, &op, &root) == 0 ||
      !find_type(dtype, element) || !find_op(op, call.op) || !use.begin(self)) {
    return nullptr;
  }
  if (count < 0) return value_error("count is %zd; it must not be negative", count) ? object : nullptr;
  call.size = sizeof(call);
  call.collective = static_cast<torii_collective>(collective);
  call.count = static_cast<std::size_t>(count);
  call.type = element.type;
  call.root = root;
  // The plan depends on sizes and not on addresses; but a call without buffers would be refused.
  static Factor anywhere;
  call.input = call.result = anywhere.data();
  call.factor = anywhere.data();
  torii_choice choice = {};
  choice.size = sizeof(choice);
  const torii_status status = torii_choose(self->team, &call, &choice);
  if (status != TORII_OK) return raise_status(status, self->team);
  return Py_BuildValue("sssnii", choice.algorithm, choice.transport, choice.isa,
                       static_cast<Py_ssize_t>(choice.segment_bytes), choice.engines, choice.window);
}

PyMethodDef team_methods[] = {
    {"close", entry<team_close>, METH_NOARGS,
     "Gives the team up. Not collective. Requests must have ended; a second close does nothing."},
    {"abort", entry<team_abort>, METH_VARARGS,
     "abort(reason=''): ends every call on the team, on all ranks, with torii.Aborted. From any thread."},
    {"context_rank", entry<team_context_rank>, METH_O, "context_rank(member): the rank in the context of a member."},
    {"_run", method(entry<team_run>), METH_FASTCALL, nullptr},
    {"_start", method(entry<start_operation>), METH_FASTCALL, nullptr},
    {"_prepare", method(entry<prepare_operation>), METH_FASTCALL, nullptr},
    {"_send", method(entry<send_array>), METH_FASTCALL, nullptr},
    {"_recv", method(entry<recv_array>), METH_FASTCALL, nullptr},
    {"_start_send", method(entry<start_send>), METH_FASTCALL, nullptr},
    {"_start_recv", method(entry<start_recv>), METH_FASTCALL, nullptr},
    {"_group", entry<make_group>, METH_NOARGS, nullptr},
    {"_split", entry<team_split>, METH_VARARGS, nullptr},
    {"_survivors", entry<team_survivors>, METH_O, nullptr},
    {"_health", entry<team_health>, METH_NOARGS, nullptr},
    {"_choose", entry<team_choose>, METH_VARARGS, nullptr},
    {"_transpose", entry<transpose_array>, METH_VARARGS, nullptr},
    {"_permute", entry<permute_items>, METH_VARARGS, nullptr},
    {"_make_leaves", entry<make_leaves>, METH_VARARGS, nullptr},
    {"_run_leaves", entry<run_leaves>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef team_questions[] = {
    {"rank", team_number<torii_team_rank>, nullptr, "This rank's number in the team, from 0.", nullptr},
    {"ranks", team_number<torii_team_ranks>, nullptr, "The number of members.", nullptr},
    {"lost", entry<team_list<torii_team_lost>>, nullptr,
     "The members that are known to be lost, ascending. From any thread.", nullptr},
    {"absent", entry<team_list<torii_team_absent>>, nullptr,
     "The members that the last Timeout of the team names: they did not come, or did not move. Equal on all ranks.",
     nullptr},
    {"most_in_flight", team_number<torii_most_in_flight>, nullptr,
     "The most messages of one alltoall, scatter or gather that were under way at once.", nullptr},
    {"context", team_context, nullptr, "The context of the team.", nullptr},
    {"closed", team_closed, nullptr, "Whether close() has been called.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

bool add_team_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, slot(entry<team_new>)},
                         {Py_tp_dealloc, slot(team_dealloc)},
                         {Py_tp_methods, team_methods},
                         {Py_tp_getset, team_questions},
                         {Py_tp_doc, const_cast<char*>("An ordered set of ranks.")},
                         {0, nullptr}};
  PyType_Spec spec = {"torii._torii.Team", sizeof(TeamObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  const Owned type(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, "Team", type.get()) == 0;
}

}  // namespace torii_python
