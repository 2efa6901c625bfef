// SPDX-License-Identifier: Apache-2.0
// _torii.Team: an ordered set of ranks, and the use of it by one thread at a time.
#pragma once

#include <torii/torii.h>

#include <string>
#include <vector>

#include "python/extension/context.hpp"
#include "python/extension/operation.hpp"
#include "python/extension/request_calls.hpp"

namespace torii_python {

/// An operation whose Request has died. Its buffers stay locked until it has ended.
struct Abandoned {
  Handle handle;
  Operation* operation;
};

struct Group;

struct TeamObject {
  PyObject head;
  torii_team* team;
  ContextObject* context;
  std::vector<Abandoned>* abandoned;
  Group* group;          // whose calls wait for its end (group.hpp); mostly nullptr
  std::string* refusal;  // of a group that ended while another thread was in a call (refusal.hpp); mostly nullptr
  bool is_busy;
};

inline TeamObject* team_of(PyObject* self) { return reinterpret_cast<TeamObject*>(self); }

/// The right to call the library with a team. Calls release the GIL, so another thread might come meanwhile.
class TeamUse {
 public:
  TeamUse() = default;
  TeamUse(const TeamUse&) = delete;
  TeamUse& operator=(const TeamUse&) = delete;
  ~TeamUse() {
    if (team_ == nullptr) return;
    if (team_->refusal != nullptr) deliver_refusal();
    team_->is_busy = false;
  }
  /// False, with an exception set, if the team is closed or another thread has it.
  bool begin(TeamObject* team);
  /// The same for a request of the team, which may outlive it.
  bool begin_for_request(TeamObject* team);

 private:
  /// Tells the library what refuse_later() has kept.
  void deliver_refusal();

  TeamObject* team_ = nullptr;
};

/// True if the library may be called for what is left of a team: not in a forked child, nor when the process leaves.
bool is_ours(const TeamObject* team);

/// Adds the type to the module. False, with an exception set, on failure.
bool add_team_type(PyObject* module);

}  // namespace torii_python
