// SPDX-License-Identifier: Apache-2.0
// Groups of calls, as Team.group() makes them.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "python/extension/team.hpp"

namespace torii_python {

/// Calls of one thread that wait for the end of their group. The library hears of them at the end, in one go, so a
/// block of Python that raises leaves nothing half open.
struct Group {
  std::thread::id thread;
  std::vector<std::unique_ptr<Operation>> operations;  ///< in the order of the calls
  bool has_collectives = false;                        ///< also refused ones
  std::string refusal;                                 ///< why the first refused collective was refused
};

/// Whether calls of this thread join a group of the team.
inline bool is_in_group(const TeamObject* team) {
  return team->group != nullptr && team->group->thread == std::this_thread::get_id();
}
/// The call joins the group. Returns its answer, which is filled at the end of the group.
PyObject* join_group(TeamObject* team, std::unique_ptr<Operation> operation);
/// The same for a collective, from the arguments of _run.
PyObject* join_group(TeamObject* team, const Arguments& arguments);

/// Methods of _torii.Team: `_group_begin()`, `_group_end()` and `_group_drop(reason)`. The last two close the group
/// whatever they return; _group_drop makes none of its calls, and never raises.
PyObject* begin_group(PyObject* team, PyObject*);
PyObject* end_group(PyObject* team, PyObject*);
PyObject* drop_group(PyObject* team, PyObject* reason);

}  // namespace torii_python
