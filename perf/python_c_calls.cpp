// SPDX-License-Identifier: Apache-2.0
// The module torii_c_calls: loops over the C interface, on buffers of Python, for perf/python_calls to compare with.
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <torii/torii.h>

#include <chrono>

namespace {

// This rank in the job, from open() to close().
torii_context* context = nullptr;
torii_team* team = nullptr;

PyObject* raise(torii_status status) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s", torii_status_name(status), torii_last_error());
  return nullptr;
}

PyObject* open(PyObject*, PyObject*) {
  torii_status status = TORII_OK;
  Py_BEGIN_ALLOW_THREADS;
  status = torii_context_create(nullptr, &context);
  if (status == TORII_OK) status = torii_team_create(context, nullptr, &team);
  Py_END_ALLOW_THREADS;
  if (status != TORII_OK) return raise(status);
  Py_RETURN_NONE;
}

PyObject* close(PyObject*, PyObject*) {
  torii_status status = torii_team_destroy(team);
  team = nullptr;
  if (status == TORII_OK) status = torii_context_destroy(context);
  context = nullptr;
  if (status != TORII_OK) return raise(status);
  Py_RETURN_NONE;
}

/// Makes `calls` allreduces in one of the ways that perf/python_calls knows.
torii_status loop(const torii_call& call, const char* way, int calls) {
  torii_request* request = nullptr;
  torii_status status = TORII_OK;
  const bool is_blocking = way[0] == 'b';
  const bool is_prepared = way[0] == 'p';
  if (is_prepared) status = torii_prepare(team, &call, &request);
  for (int i = 0; i < calls && status == TORII_OK; ++i) {
    if (is_blocking) {
      status = torii_allreduce(team, call.input, call.result, call.count, call.type, call.op);
      continue;
    }
    status = is_prepared ? torii_restart(request) : torii_start(team, &call, &request);
    if (status == TORII_OK) status = torii_wait(&request);
  }
  if (is_prepared) torii_request_free(&request);
  return status;
}

/// allreduce(input, out, way, calls) -> seconds. Sums of f32, after a barrier.
PyObject* allreduce(PyObject*, PyObject* args) {
  Py_buffer input = {};
  Py_buffer out = {};
  const char* way = nullptr;
  int calls = 0;
  if (PyArg_ParseTuple(args, "y*w*si:allreduce", &input, &out, &way, &calls) == 0) return nullptr;
  torii_call call = {};
  call.size = sizeof(call);
  call.collective = TORII_ALLREDUCE;
  call.input = input.buf;
  call.result = out.buf;
  call.count = static_cast<size_t>(input.len) / sizeof(float);
  call.type = TORII_F32;
  call.op = TORII_SUM;
  torii_status status = TORII_INVALID_ARGUMENT;
  double seconds = 0;
  if (input.len == out.len && team != nullptr) {
    Py_BEGIN_ALLOW_THREADS;
    status = torii_barrier(team);
    const auto begin = std::chrono::steady_clock::now();
    if (status == TORII_OK) status = loop(call, way, calls);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    Py_END_ALLOW_THREADS;
  }
  PyBuffer_Release(&input);
  PyBuffer_Release(&out);
  return status == TORII_OK ? PyFloat_FromDouble(seconds) : raise(status);
}

PyMethodDef functions[] = {
    {"open", open, METH_NOARGS, "Joins the job, and makes the team of all ranks. Collective."},
    {"close", close, METH_NOARGS, "Gives both up."},
    {"allreduce", allreduce, METH_VARARGS,
     "allreduce(input, out, way, calls) -> seconds: calls by the C interface, 'blocking', 'request' or 'prepared'."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "torii_c_calls",
                          "Loops over the C interface of torii.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_torii_c_calls() { return PyModule_Create(&definition); }
