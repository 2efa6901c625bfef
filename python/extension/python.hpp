// SPDX-License-Identifier: Apache-2.0
// Python's stable ABI of version 3.11, and an owner of references. Every file of the extension includes it first.
#pragma once

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <new>
#include <utility>

namespace torii_python {

/// A reference that is given up at the end of the scope; nullptr is allowed.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* object) : object_(object) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    // The old object may run Python code when it dies, so it dies last.
    Owned old(std::exchange(object_, std::exchange(other.object_, nullptr)));
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// A function as Python calls it: C++ exceptions must not pass the interpreter's frames. `catch (...)` would also catch
/// the unwinding of a thread that the interpreter ends.
template <auto Function>
struct Entry;
template <typename... Arguments, PyObject* (*Function)(Arguments...)>
struct Entry<Function> {
  static PyObject* call(Arguments... arguments) {
    try {
      return Function(arguments...);
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
      return nullptr;
    }
  }
};
template <auto Function>
constexpr auto entry = &Entry<Function>::call;

/// A function of one of the C API's types, as the slots and the tables of methods take it.
template <typename Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}
template <typename Function>
PyCFunction method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

/// Makes an object of `type`, zeroed, with a reference to its type.
template <typename Object>
Object* allocate_object(PyTypeObject* type) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  return reinterpret_cast<Object*>(allocate(type, 0));
}
/// The end of every dealloc function: types made by PyType_FromSpec are counted by their objects.
inline void free_object(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

}  // namespace torii_python
