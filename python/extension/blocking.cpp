// SPDX-License-Identifier: Apache-2.0
// A waiting thread takes the GIL every 50 ms for a moment, to run signal handlers. Calls that take less never do.
#include "python/extension/blocking.hpp"

#include <cxxabi.h>
#include <unistd.h>

namespace torii_python {
namespace {

/// The innermost blocking call of this thread. A handler may make calls on other teams, so calls can be nested.
thread_local Blocking* innermost = nullptr;

/// An interpreter that ends makes a daemon thread exit here, by an unwinding. The unwinding must not pass a destructor
/// or the library: both end the whole process then. Such a thread waits for the end of the process, as from Python 3.14
/// on.
void take_gil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

}  // namespace

Blocking::Blocking(torii_team* team) : team_(team), outer_(innermost), state_(PyEval_SaveThread()), checked_() {
  innermost = this;
}

Blocking::~Blocking() {
  innermost = outer_;
  take_gil(state_);
}

void Blocking::idle(void*) {
  if (innermost != nullptr) innermost->check_signals();
}

bool Blocking::check_signals() {
  if (is_interrupted_) return true;
  const Clock::time_point now = Clock::now();
  if (checked_ == Clock::time_point()) checked_ = now;  // the first look: the clock is not read in short calls
  if (now - checked_ < kSignalsEvery) return false;
  take_gil(state_);
  is_interrupted_ = PyErr_CheckSignals() != 0;
  state_ = PyEval_SaveThread();
  checked_ = Clock::now();
  if (is_interrupted_ && team_ != nullptr) torii_team_abort(team_, "interrupted by a signal handler that raised");
  return is_interrupted_;
}

}  // namespace torii_python
