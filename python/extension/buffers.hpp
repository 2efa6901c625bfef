// SPDX-License-Identifier: Apache-2.0
// Objects with the buffer protocol as operands, and the type of their elements.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "python/extension/python.hpp"

namespace torii_python {

/// Memory of a Python object, which can be neither freed nor resized while this exists. One stretch of bytes, in the
/// order of C.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  /// `name` is what messages call the object. False, with an exception set, if it is no such memory, or if it is
  /// read-only although `is_written`.
  bool acquire(PyObject* object, const char* name, bool is_written);
  /// The memory of `other`, which must live longer: asking NumPy for a buffer takes longer than a short call.
  bool borrow(const Buffer& other, PyObject* object, const char* name);
  void release();

  bool is_there() const { return is_there_; }
  const Py_buffer& view() const { return view_; }
  std::byte* address() const { return static_cast<std::byte*>(view_.buf); }
  std::size_t bytes() const { return static_cast<std::size_t>(view_.len); }
  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(view_.buf); }
  const char* name() const { return name_; }

 private:
  bool check_writable(PyObject* object);

  Py_buffer view_ = {};
  bool is_there_ = false;
  bool is_borrowed_ = false;
  const char* name_ = "";
};

/// The type of elements.
struct Element {
  torii_type type = TORII_U8;
  std::size_t bytes = 1;
};

/// Finds the element type of a buffer, which `dtype` names if it is not None: a name of torii or NumPy, a NumPy dtype,
/// or a number of torii_type. The buffer's items must have its size, or be single bytes.
bool find_element(const Buffer& buffer, PyObject* dtype, Element& element);
/// False, with ValueError set, if the items of the buffer are, or contain, pointers.
bool check_no_pointers(const Buffer& buffer);
/// False, with ValueError set, if the items are not of one type. Both may be of one that torii does not know.
bool check_same_items(const Buffer& array, const Buffer& out);
/// A new array of the kind of `like`, by the package's function, which knows NumPy. Without one an exception is set.
Owned new_array(PyObject* like, const std::vector<Py_ssize_t>& shape);
/// The type that `dtype` names.
bool find_type(PyObject* dtype, Element& element);

/// The operation that an object names: "sum", ... or a number of torii_op. User operations have no name here.
bool find_op(PyObject* object, torii_op& op);

/// Names of element types, in the order of their numbers, and of operations.
std::vector<std::string> type_names();
std::vector<std::string> op_names();

}  // namespace torii_python
