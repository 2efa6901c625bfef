// SPDX-License-Identifier: Apache-2.0
// The module torii._torii. Everything pleasant is in the Python files of the package.
#include "python/extension/buffers.hpp"
#include "python/extension/context.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/farewell.hpp"
#include "python/extension/group.hpp"
#include "python/extension/memory.hpp"
#include "python/extension/received.hpp"
#include "python/extension/redistribution.hpp"
#include "python/extension/request.hpp"
#include "python/extension/team.hpp"

namespace torii_python {
namespace {

/// _install(make_error, new_result, request): what the Python files give (errors.hpp).
PyObject* install(PyObject*, PyObject* args) {
  Hooks given;
  if (PyArg_ParseTuple(args, "OOO!:_install", &given.make_error, &given.new_result, &PyType_Type, &given.request) == 0)
    return nullptr;
  for (PyObject* one : {given.make_error, given.new_result, given.request}) Py_INCREF(one);
  hooks = given;
  Py_RETURN_NONE;
}

/// _leave(): leave_without_goodbye().
PyObject* leave(PyObject*, PyObject*) {
  leave_without_goodbye();
  Py_RETURN_NONE;
}

/// The module has one state for the process. False, with ImportError set, in an interpreter other than the main one,
/// whose objects would get there and end with it.
bool is_main_interpreter() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return true;
  PyErr_SetString(PyExc_ImportError, "torii cannot be imported in a subinterpreter; import it in the main interpreter");
  return false;
}

/// _refuse_subinterpreter(): asked when the package is imported. A module that the main interpreter has imported is
/// copied to others, without its init function.
PyObject* refuse_subinterpreter(PyObject*, PyObject*) {
  if (!is_main_interpreter()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* status_name(PyObject*, PyObject* args) {
  int status = 0;
  if (PyArg_ParseTuple(args, "i:status_name", &status) == 0) return nullptr;
  return PyUnicode_FromString(torii_status_name(static_cast<torii_status>(status)));
}

PyObject* list_of(const std::vector<std::string>& names) {
  Owned list(PyList_New(0));
  for (const std::string& name : names) {
    const Owned text(list ? PyUnicode_FromString(name.c_str()) : nullptr);
    if (!text || PyList_Append(list.get(), text.get()) != 0) return nullptr;
  }
  return list.release();
}

/// All that `name_of` knows, counted from 0 until it knows no more.
template <typename NameOf>
PyObject* names(NameOf name_of) {
  std::vector<std::string> known;
  for (int i = 0; name_of(i) != nullptr; ++i) known.emplace_back(name_of(i));
  return list_of(known);
}

PyObject* algorithms(PyObject*, PyObject*) { return names(torii_algorithm_name); }
PyObject* types(PyObject*, PyObject*) { return list_of(type_names()); }
PyObject* ops(PyObject*, PyObject*) { return list_of(op_names()); }
PyObject* collectives(PyObject*, PyObject*) {
  return names([](int collective) { return torii_collective_name(static_cast<torii_collective>(collective)); });
}

PyMethodDef functions[] = {
    {"_install", entry<install>, METH_VARARGS, nullptr},
    {"_leave", entry<leave>, METH_NOARGS, nullptr},
    {"_refuse_subinterpreter", entry<refuse_subinterpreter>, METH_NOARGS, nullptr},
    {"status_name", entry<status_name>, METH_VARARGS, nullptr},
    {"algorithms", entry<algorithms>, METH_NOARGS,
     "Names that the option and the setting ALGORITHM accept, besides 'auto'."},
    {"types", entry<types>, METH_NOARGS, "Names of element types, in the order of their numbers."},
    {"ops", entry<ops>, METH_NOARGS, "Names of operations that calls take, in the order of Op."},
    {"collectives", entry<collectives>, METH_NOARGS, "Names of collectives, in the order of their numbers."},
    {"split", entry<split_items>, METH_VARARGS,
     "split(items, ranks, rank) -> (first, count): how many items are dealt to a rank, and from which on."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "torii._torii",
                          "The C interface of torii for the package's Python files.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace torii_python

PyMODINIT_FUNC PyInit__torii() {
  using namespace torii_python;
  if (!is_main_interpreter()) return nullptr;
  Owned module(PyModule_Create(&definition));
  if (!module || !add_context_type(module.get()) || !add_memory_types(module.get()) || !add_team_type(module.get()) ||
      !add_group_type(module.get()) || !add_request_type(module.get()) || !add_received_type(module.get()) ||
      !register_farewell() || PyModule_AddStringConstant(module.get(), "library_version", torii_version()) != 0) {
    return nullptr;
  }
  return module.release();
}
