// SPDX-License-Identifier: Apache-2.0
// Options of teams have the names of torii_team_options.
#include "python/extension/team_options.hpp"

#include "python/extension/errors.hpp"

namespace torii_python {
namespace {

/// Ranks from `least`: what is no rank at all is refused here.
bool read_ranks(PyObject* object, const char* name, long least, std::vector<int>& ranks) {
  const Owned list(PySequence_Tuple(object));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i) {
    const Owned index(PyNumber_Index(PyTuple_GetItem(list.get(), i)));
    const long rank = index ? PyLong_AsLong(index.get()) : -1;
    if (PyErr_Occurred() != nullptr) return false;
    if (rank < least || rank > 1'000'000) return value_error("%s[%zd] is %ld, which is no rank", name, i, rank);
    ranks.push_back(static_cast<int>(rank));
  }
  return true;
}

bool read_members(PyObject* object, std::vector<int>& members) {
  if (!read_ranks(object, "members", 0, members)) return false;
  return !members.empty() || value_error("members is empty; leave it out for all ranks");
}

}  // namespace

bool read_team_options(PyObject* dict, TeamOptions& read) {
  const char* names[] = {"topology",        "algorithm", "determinism",    "wire",    "segment_bytes",
                         "tune_table",      "rank_map",  "channels",       "members", "exchange",
                         "timeout_seconds", "without",   "allow_minority", nullptr};
  torii_team_options& options = read.options;
  options.size = sizeof(options);
  Py_ssize_t segment_bytes = 0;
  PyObject* members = Py_None;
  PyObject* exchange = Py_None;
  PyObject* without = Py_None;
  const Owned none(PyTuple_New(0));
  if (!none) return false;
  if (PyArg_ParseTupleAndKeywords(none.get(), dict, "|zzzznzziOOdOp:Team", const_cast<char**>(names), &options.topology,
                                  &options.algorithm, &options.determinism, &options.wire, &segment_bytes,
                                  &options.tune_table, &options.rank_map, &options.channels, &members, &exchange,
                                  &options.timeout_seconds, &without, &options.allow_minority) == 0) {
    return false;
  }
  if (segment_bytes < 0) return value_error("segment_bytes is %zd; it must not be negative", segment_bytes);
  options.segment_bytes = static_cast<std::size_t>(segment_bytes);
  if (members != Py_None) {
    if (!read_members(members, read.members)) return false;
    options.members = read.members.data();
    options.member_count = static_cast<int>(read.members.size());
  }
  if (without != Py_None) {
    // The library tells the others of a rank that the team does not have.
    constexpr long kLeast = -1'000'000;
    if (!read_ranks(without, "without", kLeast, read.without)) return false;
    options.without = read.without.data();
    options.without_count = static_cast<int>(read.without.size());
  }
  if (exchange == Py_None) return true;
  if (members == Py_None) return value_error("exchange is for teams with members");
  if (PyCallable_Check(exchange) == 0) {
    PyErr_Format(PyExc_TypeError, "exchange is %R; it must be a function from bytes to a list of bytes", exchange);
    return false;
  }
  read.exchange = {exchange, options.member_count};
  options.exchange = call_exchange;
  options.exchange_data = &read.exchange;
  return true;
}

}  // namespace torii_python
