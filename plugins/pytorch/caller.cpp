// SPDX-License-Identifier: Apache-2.0
// In PyTorch 1.13 a group is not told whether its caller waits. The caller's frame says so: torch.distributed's
// functions have an argument async_op. A wrong guess costs time only: an operation that nobody waits for gets a thread.
#include "plugins/pytorch/caller.hpp"

#include <cstring>

namespace torii_torch {
namespace {

PyObject* caller_file = nullptr;

/// A reference to the variable, or nullptr without an exception.
PyObject* local_variable(PyFrameObject* frame, const char* name) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* const value = PyFrame_GetVarString(frame, name);
#else
  PyObject* const locals = PyFrame_GetLocals(frame);
  PyObject* const value = locals == nullptr ? nullptr : PyMapping_GetItemString(locals, name);
  Py_XDECREF(locals);
#endif
  if (value == nullptr) PyErr_Clear();
  return value;
}

bool frame_waits(PyFrameObject* frame) {
  PyCodeObject* const code = PyFrame_GetCode(frame);
  bool waits = false;
  // All functions of a module share the text of its file's name.
  if (code->co_filename == caller_file) {
    const char* const name = PyUnicode_AsUTF8(code->co_name);
    if (name != nullptr && (std::strcmp(name, "send") == 0 || std::strcmp(name, "recv") == 0)) {
      waits = true;
    } else if (PyObject* const value = local_variable(frame, "async_op")) {
      waits = value == Py_False;
      Py_DECREF(value);
    }
  }
  Py_DECREF(code);
  return waits;
}

}  // namespace

void set_caller_file(PyObject* name) {
  PyObject* const before = caller_file;
  caller_file = Py_NewRef(name);
  Py_XDECREF(before);
}

bool python_caller_waits() {
  if (Py_IsInitialized() == 0 || PyGILState_GetThisThreadState() == nullptr) return false;
  const PyGILState_STATE state = PyGILState_Ensure();
  PyFrameObject* const frame = caller_file == nullptr ? nullptr : PyEval_GetFrame();
  const bool waits = frame != nullptr && frame_waits(frame);
  PyGILState_Release(state);
  return waits;
}

}  // namespace torii_torch
