// SPDX-License-Identifier: Apache-2.0
// Checks the operands of a call. Lengths of buffers are this file's matter: the library knows counts only.
#include "python/extension/operation.hpp"

#include <algorithm>
#include <limits>

#include "python/extension/errors.hpp"
#include "python/extension/list_call.hpp"

namespace torii_python {
namespace {

/// How the shape of a new result follows from the input's. Blocks are joined and divided along the first dimension.
enum class Shape { same, joined, divided };

/// What is particular to a collective, as this rank sees it.
struct Form {
  bool has_input = false;
  bool has_result = false;
  bool combines = false;
  Shape shape = Shape::same;
};

class Description {
 public:
  Description(const torii_team* team, const Arguments& arguments, Operation& operation)
      : team_(team),
        arguments_(arguments),
        operation_(operation),
        call_(operation.call),
        ranks_(torii_team_ranks(team)),
        rank_(torii_team_rank(team)) {}

  bool fill();

 private:
  bool read_numbers();
  bool take_factor();
  void find_form();
  bool read_lengths();
  bool read_list(PyObject* object, const char* name, std::vector<std::size_t>& list);
  bool take_input();
  bool take_result();
  bool make_result();
  bool no_array_has(std::size_t elements) const;
  bool set_count();
  bool check_result();
  bool check_equal_result();
  bool check_overlap();
  bool check_reach(const Buffer& buffer, const std::vector<std::size_t>& counts,
                   const std::vector<std::size_t>& displacements);

  bool is_root() const { return rank_ == call_.root; }
  bool is(torii_collective collective) const { return call_.collective == collective; }
  const char* name() const { return torii_collective_name(call_.collective); }
  std::size_t elements(const Buffer& buffer) const { return buffer.bytes() / element_.bytes; }
  std::size_t ranks() const { return static_cast<std::size_t>(ranks_); }
  std::size_t own() const { return static_cast<std::size_t>(rank_); }
  /// Elements from the first block to the end of the last one; the largest number if that is larger than any.
  static std::size_t reach(const std::vector<std::size_t>& counts, const std::vector<std::size_t>& displacements);
  /// Where this rank's block begins among blocks of all ranks, in elements.
  std::size_t own_offset(std::size_t block) const;

  std::vector<std::size_t>& counts() { return operation_.lengths[0]; }
  std::vector<std::size_t>& displacements() { return operation_.lengths[1]; }
  std::vector<std::size_t>& out_counts() { return operation_.lengths[2]; }
  std::vector<std::size_t>& out_displacements() { return operation_.lengths[3]; }
  /// The blocks of the result, if it consists of blocks of all ranks.
  std::vector<std::size_t>& result_counts() { return is(TORII_ALLTOALL) ? out_counts() : counts(); }
  std::vector<std::size_t>& result_displacements() {
    return is(TORII_ALLTOALL) ? out_displacements() : displacements();
  }

  const torii_team* team_;
  const Arguments& arguments_;
  Operation& operation_;
  torii_call& call_;
  int ranks_;
  int rank_;
  Form form_;
  Element element_;
};

bool Description::read_numbers() {
  call_.size = sizeof(call_);
  const long collective = PyLong_AsLong(arguments_.collective);
  if (collective == -1 && PyErr_Occurred() != nullptr) return false;
  if (collective < TORII_BARRIER || collective > TORII_EXSCAN) return value_error("collective is %ld", collective);
  call_.collective = static_cast<torii_collective>(collective);
  if (arguments_.op != Py_None && !find_op(arguments_.op, call_.op)) return false;
  if (arguments_.root == Py_None) return true;
  Py_ssize_t root = 0;
  if (!read_integer(arguments_.root, "root", root)) return false;
  if (root < 0 || root >= ranks_) {
    return value_error("root is %R; the team has ranks 0 to %d", arguments_.root, ranks_ - 1);
  }
  call_.root = static_cast<int>(root);
  return true;
}

void Description::find_form() {
  switch (call_.collective) {
    case TORII_BARRIER:
      form_ = {};
      break;
    case TORII_BROADCAST:
      form_ = {false, true, false, Shape::same};
      break;
    case TORII_REDUCE:
      form_ = {true, is_root(), true, Shape::same};
      break;
    case TORII_ALLREDUCE:
    case TORII_SCAN:
      form_ = {true, true, true, Shape::same};
      break;
    case TORII_EXSCAN:
      form_ = {true, rank_ > 0 || arguments_.out != Py_None, true, Shape::same};
      break;
    case TORII_ALL_GATHER:
      form_ = {true, true, false, Shape::joined};
      break;
    case TORII_GATHER:
      form_ = {true, is_root(), false, Shape::joined};
      break;
    case TORII_REDUCE_SCATTER:
      form_ = {true, true, true, Shape::divided};
      break;
    case TORII_ALLTOALL:
      form_ = {true, true, false, Shape::same};
      break;
    case TORII_SCATTER:
      form_ = {is_root(), true, false, Shape::divided};
      break;
  }
}

bool Description::read_list(PyObject* object, const char* name, std::vector<std::size_t>& list) {
  if (object == Py_None) return true;
  const Owned values(PySequence_Tuple(object));
  if (!values) return false;
  const Py_ssize_t count = PyTuple_Size(values.get());
  if (count != ranks_)
    return value_error("%s has %zd values; it must have one for each of %d ranks", name, count, ranks_);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const item = PyTuple_GetItem(values.get(), i);
    if (PyIndex_Check(item) == 0) {
      PyErr_Format(PyExc_TypeError, "%s[%zd] is %R; it must be an integer", name, i, item);
      return false;
    }
    const Py_ssize_t value = PyNumber_AsSsize_t(item, PyExc_OverflowError);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) return false;
      PyErr_Clear();
      return value_error("%s[%zd] is %R; it must be 0 to %zd", name, i, item, PY_SSIZE_T_MAX);
    }
    if (value < 0) return value_error("%s[%zd] is %zd; it must not be negative", name, i, value);
    list.push_back(static_cast<std::size_t>(value));
  }
  return true;
}

bool Description::read_lengths() {
  if (!read_list(arguments_.counts, "counts", counts()) ||
      !read_list(arguments_.displacements, "displacements", displacements()) ||
      !read_list(arguments_.out_counts, "out_counts", out_counts()) ||
      !read_list(arguments_.out_displacements, "out_displacements", out_displacements())) {
    return false;
  }
  if (counts().empty()) {
    const bool is_alone = displacements().empty() && out_counts().empty() && out_displacements().empty();
    return is_alone || value_error("%s: displacements and out_counts need counts", name());
  }
  if (is(TORII_ALLTOALL) && out_counts().empty())
    return value_error("alltoall: counts needs out_counts, and the reverse");
  call_.unequal = 1;
  const auto data = [](const std::vector<std::size_t>& list) { return list.empty() ? nullptr : list.data(); };
  const bool is_of_result = is(TORII_GATHER) || is(TORII_ALL_GATHER);
  (is_of_result ? call_.result_counts : call_.input_counts) = data(counts());
  (is_of_result ? call_.result_displacements : call_.input_displacements) = data(displacements());
  if (!is(TORII_ALLTOALL)) return true;
  call_.result_counts = data(out_counts());
  call_.result_displacements = data(out_displacements());
  return true;
}

bool Description::take_input() {
  if (!form_.has_input) return true;
  if (arguments_.input == Py_None) return value_error("%s: array is None; rank %d needs one", name(), rank_);
  if (!operation_.input.acquire(arguments_.input, "array", false)) return false;
  call_.input = operation_.input.address();
  return find_element(operation_.input, arguments_.dtype, element_);
}

bool Description::take_result() {
  operation_.answer = Owned(Py_NewRef(Py_None));
  if (!form_.has_result) return true;
  if (arguments_.out == Py_None) {
    if (!form_.has_input) return value_error("%s: out is None; rank %d must give memory for its block", name(), rank_);
    if (!make_result()) return false;
  } else {
    operation_.answer = Owned(Py_NewRef(arguments_.out));
  }
  const char* const what = is(TORII_BROADCAST) ? "array" : "out";
  const bool is_good = form_.has_input && arguments_.out == arguments_.input
                           ? operation_.result.borrow(operation_.input, arguments_.out, what)
                           : operation_.result.acquire(operation_.answer.get(), what, true);
  if (!is_good) return false;
  call_.result = operation_.result.address();
  if (!form_.has_input) return find_element(operation_.result, arguments_.dtype, element_);
  if (arguments_.out == arguments_.input) return true;
  Element other;
  if (!find_element(operation_.result, arguments_.dtype, other)) return false;
  if (other.type == element_.type) return true;
  return value_error("out has elements of type %s; array has %s, and both must be equal", torii_type_name(other.type),
                     torii_type_name(element_.type));
}

/// The extent left * right. False if it is none.
bool append_product(std::vector<Py_ssize_t>& shape, std::size_t left, std::size_t right) {
  Py_ssize_t extent = 0;
  if (__builtin_mul_overflow(left, right, &extent)) return false;
  shape.push_back(extent);
  return true;
}

bool Description::no_array_has(std::size_t elements) const {
  return value_error("%s: the result of %d ranks has more elements than there can be, with blocks to %zu", name(),
                     ranks_, elements);
}

bool Description::make_result() {
  const Py_buffer& view = operation_.input.view();
  const auto first = view.ndim == 0 ? 1 : view.shape[0];
  std::vector<Py_ssize_t> shape;
  if (call_.unequal != 0) {
    // Blocks of unequal lengths are joined in one dimension. Items may be single bytes of an element.
    const std::size_t items = element_.bytes / static_cast<std::size_t>(view.itemsize);
    const std::size_t total =
        form_.shape == Shape::divided ? counts()[own()] : reach(result_counts(), result_displacements());
    if (!append_product(shape, total, items)) return no_array_has(total);
  } else if (form_.shape == Shape::same) {
    for (int i = 0; i < view.ndim; ++i) shape.push_back(view.shape[i]);
  } else {
    if (form_.shape == Shape::divided && first % ranks_ != 0) {
      return value_error("%s: the first dimension of array is %zd; it must be a multiple of the %d ranks", name(),
                         first, ranks_);
    }
    const std::size_t times = form_.shape == Shape::joined ? ranks() : 1;
    const auto rows = static_cast<std::size_t>(form_.shape == Shape::joined ? first : first / ranks_);
    if (!append_product(shape, rows, times)) return no_array_has(rows);
    for (int i = 1; i < view.ndim; ++i) shape.push_back(view.shape[i]);
  }
  operation_.answer = new_array(arguments_.input, shape);
  return static_cast<bool>(operation_.answer);
}

std::size_t Description::reach(const std::vector<std::size_t>& counts, const std::vector<std::size_t>& displacements) {
  std::size_t end = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t begin = displacements.empty() ? next : displacements[i];
    if (__builtin_add_overflow(begin, counts[i], &next)) return std::numeric_limits<std::size_t>::max();
    if (counts[i] != 0) end = std::max(end, next);
  }
  return end;
}

std::size_t Description::own_offset(std::size_t block) const {
  const auto& counts = operation_.lengths[0];
  const auto& displacements = operation_.lengths[1];
  if (counts.empty()) return own() * block;
  if (!displacements.empty()) return displacements[own()];
  std::size_t offset = 0;
  for (std::size_t i = 0; i < own(); ++i) offset += counts[i];
  return offset;
}

bool Description::set_count() {
  call_.type = element_.type;
  if (!form_.has_input) {
    call_.count = form_.has_result ? elements(operation_.result) : 0;
    return true;
  }
  const std::size_t all = elements(operation_.input);
  call_.count = all;
  if (call_.unequal != 0) {
    if (form_.shape == Shape::joined) {
      return all == counts()[own()] || value_error("array has %zu elements; counts[%d] is %zu, and both must be equal",
                                                   all, rank_, counts()[own()]);
    }
    call_.count = counts()[own()];
    return check_reach(operation_.input, counts(), displacements());
  }
  if (form_.shape == Shape::divided || is(TORII_ALLTOALL)) {
    if (all % ranks() != 0) {
      return value_error("%s: array has %zu elements; it must have a multiple of the %d ranks", name(), all, ranks_);
    }
    call_.count = all / ranks();
  }
  return true;
}

bool Description::check_reach(const Buffer& buffer, const std::vector<std::size_t>& counts,
                              const std::vector<std::size_t>& displacements) {
  const std::size_t needed = reach(counts, displacements);
  return needed <= elements(buffer) || value_error("%s has %zu elements; counts and displacements reach to %zu",
                                                   buffer.name(), elements(buffer), needed);
}

bool Description::check_equal_result() {
  std::size_t needed = call_.count;
  if (form_.shape == Shape::joined || is(TORII_ALLTOALL)) needed *= ranks();
  return needed == elements(operation_.result) ||
         value_error("%s: out has %zu elements; it must have %zu", name(), elements(operation_.result), needed);
}

bool Description::check_result() {
  if (!form_.has_result || is(TORII_BROADCAST)) return true;
  if (call_.unequal == 0) return check_equal_result();
  if (form_.shape == Shape::divided) {
    const std::size_t needed = counts()[own()];
    call_.count = needed;
    return needed == elements(operation_.result) ||
           value_error("%s: out has %zu elements; counts[%d] is %zu, and both must be equal", name(),
                       elements(operation_.result), rank_, needed);
  }
  return check_reach(operation_.result, result_counts(), result_displacements());
}

/// In place is right, and so are buffers that do not meet; the library does not look for anything between.
bool Description::check_overlap() {
  const Buffer& input = operation_.input;
  const Buffer& result = operation_.result;
  if (!input.is_there() || !result.is_there() || input.bytes() == 0 || result.bytes() == 0) return true;
  if (input.begin() + input.bytes() <= result.begin() || result.begin() + result.bytes() <= input.begin()) return true;
  const std::size_t offset = own_offset(call_.count) * element_.bytes;
  if (form_.shape == Shape::same && input.begin() == result.begin()) return true;
  if (form_.shape == Shape::joined && input.begin() == result.begin() + offset) return true;
  if (form_.shape == Shape::divided && result.begin() == input.begin() + offset) return true;
  return value_error(
      "%s: array and out overlap; they must be the same memory (this rank's own block, if only one of "
      "them has the blocks of all ranks), or apart",
      name());
}

bool Description::take_factor() {
  if (call_.op != TORII_PREMUL_SUM || !form_.combines) {
    return arguments_.factor == Py_None || value_error("factor is %R, but op is '%s'; only 'premul_sum' takes a factor",
                                                       arguments_.factor, torii_op_name(call_.op));
  }
  if (arguments_.factor == Py_None) {
    return value_error("op is 'premul_sum', which needs factor=, the number that multiplies this rank's array");
  }
  call_.factor = operation_.factor.data();
  return read_factor(arguments_.factor, element_.type, operation_.factor);
}

bool Description::fill() {
  if (!read_numbers()) return false;
  if (arguments_.lists != Py_None) return describe_lists(team_, arguments_, operation_);
  find_form();
  if (form_.combines && arguments_.op == Py_None) return find_op(arguments_.op, call_.op);  // which refuses it
  return read_lengths() && take_input() && take_result() && set_count() && check_result() && check_overlap() &&
         take_factor();
}

}  // namespace

bool read_arguments(PyObject* const* list, Py_ssize_t count, Arguments& arguments) {
  if (count < 1 || count > kArguments) {
    PyErr_Format(PyExc_TypeError, "a call takes 1 to %d arguments, not %zd", kArguments, count);
    return false;
  }
  const auto at = [&](Py_ssize_t place) { return place < count ? list[place] : Py_None; };
  arguments = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10), at(11)};
  return true;
}

bool describe(const torii_team* team, const Arguments& arguments, Operation& operation) {
  return describes([&] { return Description(team, arguments, operation).fill(); });
}

}  // namespace torii_python
