// SPDX-License-Identifier: Apache-2.0
// A refused send or receive counts for nobody, so the team is not told.
#include "python/extension/send_recv.hpp"

#include <limits>
#include <memory>

#include "python/extension/errors.hpp"
#include "python/extension/group.hpp"
#include "python/extension/received.hpp"
#include "python/extension/request.hpp"

namespace torii_python {
namespace {

constexpr Py_ssize_t kPairArguments = 4;

bool read_number(PyObject* object, const char* name, int least, int most, int& number) {
  Py_ssize_t value = 0;
  if (!read_integer(object, name, value)) return false;
  number = static_cast<int>(value);
  return (value >= least && value <= most) || value_error("%s is %R; it must be %d to %d%s", name, object, least, most,
                                                          least < 0 ? ", of which -1 stands for any" : "");
}

/// Fills `operation` from the arguments of a method. False, with an exception set.
bool describe_pair(const torii_team* team, PyObject* const* list, Py_ssize_t count, bool sends, Operation& operation) {
  if (count != kPairArguments) {
    PyErr_Format(PyExc_TypeError, "a send or receive takes %zd arguments, not %zd", kPairArguments, count);
    return false;
  }
  constexpr int kTagMost = std::numeric_limits<int>::max();
  Pair& pair = operation.pair;
  pair.is_there = true;
  const int least = sends ? 0 : -1;
  Buffer& buffer = sends ? operation.input : operation.result;
  Element element;
  if (!buffer.acquire(list[0], sends ? "array" : "out", !sends) || !find_element(buffer, list[3], element) ||
      !read_number(list[1], sends ? "to" : "source", least, torii_team_ranks(team) - 1, pair.peer) ||
      !read_number(list[2], "tag", least, kTagMost, pair.tag)) {
    return false;
  }
  operation.call.input = buffer.address();
  operation.call.result = buffer.address();
  operation.call.count = buffer.bytes() / element.bytes;
  operation.call.type = element.type;
  if (sends) {
    operation.answer = Owned(Py_NewRef(Py_None));
    return true;
  }
  pair.owner = make_received(pair.received);
  if (!pair.owner) return false;
  operation.answer = Owned(Py_NewRef(pair.owner.get()));
  return true;
}

/// The operation, with the right to use the team; nullptr, with an exception set.
std::unique_ptr<Operation> make_pair(TeamObject* team, TeamUse& use, PyObject* const* list, Py_ssize_t count,
                                     bool sends) {
  if (!use.begin(team)) return nullptr;
  auto operation = std::make_unique<Operation>();
  return describe_pair(team->team, list, count, sends, *operation) ? std::move(operation) : nullptr;
}

PyObject* run_pair(PyObject* object, PyObject* const* list, Py_ssize_t count, bool sends) {
  TeamObject* const team = team_of(object);
  TeamUse use;
  auto operation = make_pair(team, use, list, count, sends);
  if (operation == nullptr) return nullptr;
  if (is_in_group(team)) return join_group(team, std::move(operation));
  torii_status status = TORII_OK;
  {
    const Blocking blocking(team->team);
    status = run_operation(team->team, *operation);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;  // of a signal handler
  return status == TORII_OK ? operation->answer.release() : raise_status(status, team->team);
}

PyObject* start_pair(PyObject* object, PyObject* const* list, Py_ssize_t count, bool sends) {
  TeamUse use;
  auto operation = make_pair(team_of(object), use, list, count, sends);
  if (operation == nullptr) return nullptr;
  const Owned request = new_request();
  return request ? start_request_of(request.get(), object, std::move(operation), false) : nullptr;
}

}  // namespace

PyObject* send_array(PyObject* team, PyObject* const* arguments, Py_ssize_t count) {
  return run_pair(team, arguments, count, true);
}
PyObject* recv_array(PyObject* team, PyObject* const* arguments, Py_ssize_t count) {
  return run_pair(team, arguments, count, false);
}
PyObject* start_send(PyObject* team, PyObject* const* arguments, Py_ssize_t count) {
  return start_pair(team, arguments, count, true);
}
PyObject* start_recv(PyObject* team, PyObject* const* arguments, Py_ssize_t count) {
  return start_pair(team, arguments, count, false);
}

}  // namespace torii_python
