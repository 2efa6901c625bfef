// SPDX-License-Identifier: Apache-2.0
// Objects in module variables and cycles may outlive the interpreter, so their contexts and teams are noted here.
#include "python/extension/farewell.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

namespace torii_python {
namespace {

struct Alive {
  std::vector<torii_context*> contexts;
  std::vector<torii_team*> teams;
  pid_t owner = 0;  // a forked child must not touch what it inherits
  bool is_leaving = false;
};
Alive alive;

template <typename Thing>
void note(std::vector<Thing*>& list, Thing* thing) {
  if (alive.owner != getpid()) alive = {{}, {}, getpid(), alive.is_leaving};
  list.push_back(thing);
}

/// Called without an interpreter.
void say_goodbye() {
  if (alive.is_leaving || alive.owner != getpid()) return;
  for (torii_team* const team : alive.teams) torii_team_destroy(team);
  for (torii_context* const context : alive.contexts) torii_context_destroy(context);
}

}  // namespace

void note_context(torii_context* context) { note(alive.contexts, context); }
void note_team(torii_team* team) { note(alive.teams, team); }

torii_status destroy_context(torii_context* context) {
  const torii_status status = torii_context_destroy(context);
  if (status == TORII_OK) std::erase(alive.contexts, context);
  return status;
}

torii_status destroy_team(torii_team* team) {
  const torii_status status = torii_team_destroy(team);
  if (status == TORII_OK) std::erase(alive.teams, team);
  return status;
}

void leave_without_goodbye() { alive.is_leaving = true; }
bool is_leaving() { return alive.is_leaving; }

bool register_farewell() {
  if (Py_AtExit(say_goodbye) == 0) return true;
  PyErr_SetString(PyExc_RuntimeError, "the interpreter has no place for another function that runs at its end");
  return false;
}

}  // namespace torii_python
