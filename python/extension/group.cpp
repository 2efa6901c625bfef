// SPDX-License-Identifier: Apache-2.0
// Keeps the calls of a group until its end, and makes them then.
#include "python/extension/group.hpp"

#include "python/extension/blocking.hpp"
#include "python/extension/errors.hpp"
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

std::unique_ptr<Group> take_group(TeamObject* team) {
  return std::unique_ptr<Group>(std::exchange(team->group, nullptr));
}

}  // namespace

PyObject* join_group(TeamObject* team, std::unique_ptr<Operation> operation) {
  PyObject* const answer = Py_NewRef(operation->answer.get());
  team->group->has_collectives = team->group->has_collectives || !operation->pair.is_there;
  team->group->operations.push_back(std::move(operation));
  return answer;
}

PyObject* join_group(TeamObject* team, const Arguments& arguments) {
  auto operation = std::make_unique<Operation>();
  if (describe(team->team, arguments, *operation)) return join_group(team, std::move(operation));
  Owned holder;
  team->group->has_collectives = true;
  if (team->group->refusal.empty()) team->group->refusal = current_message(holder);
  return nullptr;
}

PyObject* begin_group(PyObject* object, PyObject*) {
  TeamObject* const team = team_of(object);
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
  team->group->thread = std::this_thread::get_id();
  Py_RETURN_NONE;
}

PyObject* end_group(PyObject* object, PyObject*) {
  TeamObject* const team = team_of(object);
  const std::unique_ptr<Group> group = take_group(team);
  if (group == nullptr) {
    value_error("the team is in no group: _group_begin() comes first");
    return nullptr;
  }
  TeamUse use;
  if (!use.begin(team)) return nullptr;
  Outcome outcome;
  {
    const Blocking blocking(team->team);
    outcome = make_calls(team->team, *group);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal handler
  if (outcome.status != TORII_OK) return raise_status(outcome.status, outcome.reason, team->team);
  Py_RETURN_NONE;
}

PyObject* drop_group(PyObject* object, PyObject* reason) {
  TeamObject* const team = team_of(object);
  const std::unique_ptr<Group> group = take_group(team);
  TeamUse use;
  if (group == nullptr || !group->has_collectives || team->team == nullptr || !use.begin(team)) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  const char* const text = PyUnicode_Check(reason) != 0 ? PyUnicode_AsUTF8AndSize(reason, nullptr) : nullptr;
  torii_refuse(team->team, text == nullptr ? "a group of calls was left by an exception" : text);
  PyErr_Clear();
  Py_RETURN_NONE;
}

}  // namespace torii_python
