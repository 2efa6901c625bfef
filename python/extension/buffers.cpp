// SPDX-License-Identifier: Apache-2.0
// Reads what the buffer protocol says of an object.
#include "python/extension/buffers.hpp"

#include "python/extension/errors.hpp"

namespace torii_python {

bool Buffer::acquire(PyObject* object, const char* name, bool is_written) {
  release();
  name_ = name;
  if (PyObject_CheckBuffer(object) == 0) {
    PyErr_Format(PyExc_TypeError, "%s is %R; it must be a NumPy array or another object with the buffer protocol", name,
                 reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return false;
  }
  if (PyObject_GetBuffer(object, &view_, PyBUF_FULL_RO) != 0) {
    const std::string reason = current_message();
    PyErr_Format(PyExc_BufferError,
                 "%s has no buffer of plain elements (%s); pass a view of it as integers of the same size, such as "
                 "%s.view('uint16'), and dtype=",
                 name, reason.c_str(), name);
    return false;
  }
  is_there_ = true;
  if (view_.suboffsets != nullptr || PyBuffer_IsContiguous(&view_, 'C') == 0) {
    release();
    return is_written
               ? value_error(
                     "%s is not contiguous in the order of C; it is written, so pass a contiguous array "
                     "and copy from it",
                     name)
               : value_error("%s is not contiguous in the order of C; pass numpy.ascontiguousarray(%s)", name, name);
  }
  return !is_written || check_writable(object);
}

bool Buffer::borrow(const Buffer& other, PyObject* object, const char* name) {
  release();
  name_ = name;
  view_ = other.view_;
  is_there_ = is_borrowed_ = true;
  return check_writable(object);
}

bool Buffer::check_writable(PyObject* object) {
  if (view_.readonly == 0) return true;
  release();
  PyErr_Format(PyExc_BufferError, "%s is read-only (%R); it is written, so it must be writable", name_,
               reinterpret_cast<PyObject*>(Py_TYPE(object)));
  return false;
}

void Buffer::release() {
  if (is_there_ && !is_borrowed_) PyBuffer_Release(&view_);
  is_there_ = is_borrowed_ = false;
}

}  // namespace torii_python
