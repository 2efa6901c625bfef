// SPDX-License-Identifier: Apache-2.0
// Reads what the buffer protocol says of an object.
#include "python/extension/buffers.hpp"

#include "python/extension/errors.hpp"

namespace torii_python {
namespace {

/// `object.name`, or nothing; no exception is set then.
Owned attribute_of(PyObject* object, const char* name) {
  Owned value(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value;
}

/// Sets BufferError for an array whose elements have no format, and says which view of it has one.
void refuse_elements(PyObject* object, const char* name) {
  const std::string reason = current_message();
  PyErr_Clear();
  const Owned dtype = attribute_of(object, "dtype");
  const Owned kind = dtype ? attribute_of(dtype.get(), "kind") : Owned();
  const std::string letter = kind ? text_of(kind.get()) : "";
  if (letter == "M" || letter == "m") {  // NumPy's datetime64 and timedelta64
    PyErr_Format(PyExc_BufferError, "%s has no buffer of plain elements (%s); pass %s.view('int64')", name,
                 reason.c_str(), name);
    return;
  }
  const Owned size = dtype ? attribute_of(dtype.get(), "itemsize") : Owned();
  const long bytes = size ? PyLong_AsLong(size.get()) : 0;
  PyErr_Clear();
  PyErr_Format(PyExc_BufferError,
               bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8
                   ? "%s has no buffer of plain elements (%s); pass %s.view('uint%ld') and dtype="
                   : "%s has no buffer of plain elements (%s); pass a view of %s as integers, and dtype=",
               name, reason.c_str(), name, bytes * 8);
}

}  // namespace

bool Buffer::acquire(PyObject* object, const char* name, bool is_written) {
  release();
  name_ = name;
  if (PyObject_CheckBuffer(object) == 0) {
    PyErr_Format(PyExc_TypeError, "%s is %R; it must be a NumPy array or another object with the buffer protocol", name,
                 reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return false;
  }
  if (PyObject_GetBuffer(object, &view_, PyBUF_FULL_RO) != 0) {
    refuse_elements(object, name);
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

Owned new_array(PyObject* like, const std::vector<Py_ssize_t>& shape) {
  Owned list(PyList_New(0));
  for (const Py_ssize_t extent : shape) {
    const Owned number(list ? PyLong_FromSsize_t(extent) : nullptr);
    if (!number || PyList_Append(list.get(), number.get()) != 0) return Owned();
  }
  return list ? Owned(PyObject_CallFunctionObjArgs(hooks.new_result, like, list.get(), nullptr)) : Owned();
}

}  // namespace torii_python
