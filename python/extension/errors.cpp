// SPDX-License-Identifier: Apache-2.0
// Exceptions; the classes themselves are in torii/errors.py.
#include "python/extension/errors.hpp"

#include <cstdarg>
#include <string>
#include <vector>

namespace torii_python {

Hooks hooks;

namespace {

Owned tuple_of(const std::vector<int>& numbers) {
  Owned tuple(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (std::size_t i = 0; tuple && i < numbers.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), PyLong_FromLong(numbers[i]));
  }
  return tuple;
}

}  // namespace

std::vector<int> lost_members(const torii_team* team) {
  std::vector<int> lost;
  if (team != nullptr) {
    lost.resize(static_cast<std::size_t>(torii_team_ranks(team)));
    const int count = torii_team_lost(team, lost.data(), static_cast<int>(lost.size()));
    lost.resize(static_cast<std::size_t>(count < 0 ? 0 : count));
  }
  return lost;
}

PyObject* raise_status(torii_status status, const torii_team* team) {
  return raise_status(status, torii_last_error(), lost_members(team));
}

PyObject* raise_status(torii_status status, const std::string& reason, const std::vector<int>& lost) {
  const Owned members = tuple_of(lost);
  if (!members) return nullptr;
  const Owned error(PyObject_CallFunction(
      hooks.make_error, "iNO", static_cast<int>(status),
      PyUnicode_DecodeUTF8(reason.data(), static_cast<Py_ssize_t>(reason.size()), "replace"), members.get()));
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  return nullptr;
}

bool value_error(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  PyErr_FormatV(PyExc_ValueError, format, arguments);
  va_end(arguments);
  return false;
}

bool read_integer(PyObject* object, const char* name, Py_ssize_t& number) {
  if (PyIndex_Check(object) == 0) {
    PyErr_Format(PyExc_TypeError, "%s is %R; it must be an integer", name, object);
    return false;
  }
  number = PyNumber_AsSsize_t(object, nullptr);
  return number != -1 || PyErr_Occurred() == nullptr;
}

std::string text_of(PyObject* object) {
  const Owned text(PyObject_Str(object));
  // Lone surrogates, as in names of files, have no UTF-8.
  const Owned bytes(text ? PyUnicode_AsEncodedString(text.get(), "utf-8", "backslashreplace") : nullptr);
  const char* const begin = bytes ? PyBytes_AsString(bytes.get()) : nullptr;
  PyErr_Clear();
  return begin == nullptr ? std::string() : std::string(begin);
}

std::string current_message() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string text = value == nullptr ? std::string() : text_of(value);
  PyErr_Restore(type, value, traceback);
  return text.empty() ? "refused by the Python package" : text;
}

}  // namespace torii_python
