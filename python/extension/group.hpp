// SPDX-License-Identifier: Apache-2.0
// Groups of calls, as Team.group() makes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "python/extension/team.hpp"

namespace torii_python {

/// Calls of one thread that wait for the end of their group. The library hears of them at the end, in one go, so a
/// block of Python that raises leaves nothing half open.
struct Group {
  std::uint64_t number = 0;                            ///< from 1; no two groups of the process have the same
  std::uint64_t thread = 0;                            ///< thread_number() of its thread
  std::vector<std::unique_ptr<Operation>> operations;  ///< in the order of the calls
  bool has_collectives = false;                        ///< also refused ones
  std::string refusal;                                 ///< why the first refused collective was refused
};

/// A number of the calling thread, from 1. Unlike a std::thread::id, no later thread has it.
std::uint64_t thread_number();

/// True if calls of this thread join a group of the team.
inline bool is_in_group(const TeamObject* team) {
  return team->group != nullptr && team->group->thread == thread_number();
}
/// The call joins the group. Returns its answer, which is filled at the end of the group.
PyObject* join_group(TeamObject* team, std::unique_ptr<Operation> operation);
/// A collective that joins the group of this thread. Made before its operands are looked at: they may run code of
/// Python, and that may end the group.
class Joining {
 public:
  explicit Joining(TeamObject* team);
  /// The call joins, and its answer is returned. If the operands are not good, the group is refused with the current
  /// exception, and nullptr returned.
  PyObject* end(std::unique_ptr<Operation> operation, bool is_good);

 private:
  bool is_open() const { return team_->group != nullptr && team_->group->number == number_; }

  TeamObject* team_;
  std::uint64_t number_;
};

/// A method of _torii.Team: `_group()` returns what a with statement takes. Python runs nothing between the moment in
/// which __enter__ opens the group and the one from which the statement calls __exit__. So an exception of a signal
/// handler leaves no group open. __exit__ closes the group whatever it returns.
PyObject* make_group(PyObject* team, PyObject*);

/// Adds the type of _group() to the module. False, with an exception set, on failure.
bool add_group_type(PyObject* module);

}  // namespace torii_python
