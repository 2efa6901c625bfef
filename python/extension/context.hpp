// SPDX-License-Identifier: Apache-2.0
// _torii.Context: this process in its job.
#pragma once

#include <torii/torii.h>
#include <unistd.h>

#include <cstddef>

#include "python/extension/python.hpp"

namespace torii_python {

/// A function of Python, `exchange(mine: bytes) -> a list of each rank's bytes`.
struct Exchange {
  PyObject* function;
  int ranks;
};
/// The torii_exchange that calls it; `data` is the Exchange. If it raises, the exception stays set in this thread.
int call_exchange(const void* mine, void* all, std::size_t bytes, void* data);

struct ContextObject {
  PyObject head;
  torii_context* context;
  Exchange exchange;    // the library calls it until the last team is made
  Py_ssize_t memories;  // objects that would lose their memory with the context
  pid_t owner;
  bool makes_team;  // a thread does, without the GIL
};

inline ContextObject* context_of(PyObject* self) { return reinterpret_cast<ContextObject*>(self); }

/// The right to make a team, which one thread of a context has at a time.
class TeamMaking {
 public:
  TeamMaking() = default;
  TeamMaking(const TeamMaking&) = delete;
  TeamMaking& operator=(const TeamMaking&) = delete;
  ~TeamMaking() {
    if (context_ != nullptr) context_->makes_team = false;
  }
  /// False, with RuntimeError set, if another thread has it.
  bool begin(ContextObject* context);

 private:
  ContextObject* context_ = nullptr;
};

/// False, with ValueError set, if the context has been closed, or belongs to the parent of this forked process.
bool is_usable(const ContextObject* self);

/// Adds the type to the module. False, with an exception set, on failure.
bool add_context_type(PyObject* module);
extern PyTypeObject* context_type;

}  // namespace torii_python
