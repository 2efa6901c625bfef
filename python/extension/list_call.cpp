// SPDX-License-Identifier: Apache-2.0
// Checks the operands of calls on lists. Lengths follow from the arrays, so there are no counts.
#include "python/extension/list_call.hpp"

#include <algorithm>

#include "python/extension/errors.hpp"

namespace torii_python {
namespace {

class ListDescription {
 public:
  ListDescription(const torii_team* team, const Arguments& arguments, Operation& operation)
      : arguments_(arguments),
        operation_(operation),
        call_(operation.call),
        ranks_(torii_team_ranks(team)),
        rank_(torii_team_rank(team)) {}

  bool fill();

 private:
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
    const Buffer* buffer;
    int rank;  ///< whose block it is
  };

  bool take_inputs();
  bool take_results();
  bool find_type_of_all();
  bool add_element(const Buffer& buffer);
  bool set_lengths();
  bool check_own(const BlockList& list, const Buffer& own);
  bool check_overlap();
  std::vector<Range> ranges_of(const BlockList& list, const Buffer& single) const;
  bool overlap(const Range& left, const Range& right) const;

  bool is(torii_collective collective) const { return call_.collective == collective; }
  bool is_root() const { return rank_ == call_.root; }
  const char* name() const { return torii_collective_name(call_.collective); }
  bool has_input_list() const { return is(TORII_ALLTOALL) || (is(TORII_SCATTER) && is_root()); }
  bool has_result_list() const { return is(TORII_ALLTOALL) || is(TORII_ALL_GATHER) || (is(TORII_GATHER) && is_root()); }

  const Arguments& arguments_;
  Operation& operation_;
  torii_call& call_;
  int ranks_;
  int rank_;
  Element element_;
  const Buffer* first_ = nullptr;  ///< whose type the others must have
};

bool ListDescription::take_inputs() {
  if (has_input_list()) return operation_.inputs.acquire(arguments_.input, "arrays", ranks_, false);
  return is(TORII_SCATTER) || operation_.input.acquire(arguments_.input, "array", false);
}

bool ListDescription::take_results() {
  operation_.answer = Owned(Py_NewRef(is(TORII_GATHER) && !is_root() ? Py_None : arguments_.out));
  if (has_result_list()) return operation_.results.acquire(arguments_.out, "outs", ranks_, true);
  return is(TORII_GATHER) || operation_.result.acquire(arguments_.out, "out", true);
}

bool ListDescription::add_element(const Buffer& buffer) {
  if (!buffer.is_there()) return true;
  Element element;
  if (!find_element(buffer, arguments_.dtype, element)) return false;
  if (first_ == nullptr) {
    first_ = &buffer;
    element_ = element;
  }
  return element.type == element_.type ||
         value_error("%s has elements of type %s; %s has %s, and all arrays of a call must have one type",
                     buffer.name(), torii_type_name(element.type), first_->name(), torii_type_name(element_.type));
}

bool ListDescription::find_type_of_all() {
  if (!add_element(operation_.input) || !add_element(operation_.result)) return false;
  for (const BlockList* list : {&operation_.inputs, &operation_.results}) {
    for (const auto& block : list->blocks()) {
      if (!add_element(block->buffer)) return false;
    }
  }
  if (first_ != nullptr) return true;
  if (arguments_.dtype != Py_None) return find_type(arguments_.dtype, element_);
  return value_error("%s: all blocks are None; name the type of elements by dtype=", name());
}

bool ListDescription::check_own(const BlockList& list, const Buffer& own) {
  const std::size_t count = list.counts()[rank_];
  return count == call_.count ||
         value_error("%s: %s has %zu elements; %s has %zu, and both are the block of this rank", name(),
                     list.blocks()[static_cast<std::size_t>(rank_)]->name.data(), count, own.name(), call_.count);
}

bool ListDescription::set_lengths() {
  call_.type = element_.type;
  const Buffer& own = is(TORII_SCATTER) ? operation_.result : operation_.input;
  if (own.is_there()) call_.count = own.bytes() / element_.bytes;
  if (has_input_list()) {
    operation_.inputs.set_lengths(element_.bytes);
    call_.input_blocks = operation_.inputs.addresses();
    call_.input_counts = operation_.inputs.counts();
    if (own.is_there() && !check_own(operation_.inputs, own)) return false;
  } else if (operation_.input.is_there()) {
    call_.input = operation_.input.address();
  }
  if (has_result_list()) {
    operation_.results.set_lengths(element_.bytes);
    call_.result_blocks = operation_.results.addresses();
    call_.result_counts = operation_.results.counts();
    if (own.is_there() && !check_own(operation_.results, own)) return false;
  } else if (operation_.result.is_there()) {
    call_.result = operation_.result.address();
  }
  return true;
}

std::vector<ListDescription::Range> ListDescription::ranges_of(const BlockList& list, const Buffer& single) const {
  std::vector<Range> ranges;
  const auto add = [&](const Buffer& buffer, int rank) {
    if (!buffer.is_there() || buffer.bytes() == 0) return;
    ranges.push_back({buffer.begin(), buffer.begin() + buffer.bytes(), &buffer, rank});
  };
  add(single, rank_);
  for (std::size_t i = 0; i < list.blocks().size(); ++i) add(list.blocks()[i]->buffer, static_cast<int>(i));
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& left, const Range& right) { return left.begin < right.begin; });
  return ranges;
}

bool ListDescription::overlap(const Range& left, const Range& right) const {
  return value_error("%s: %s and %s overlap; blocks must be apart, or the blocks for and from one rank the same memory",
                     name(), left.buffer->name(), right.buffer->name());
}

/// Blocks of the input are only read, so they may meet each other.
bool ListDescription::check_overlap() {
  const std::vector<Range> results = ranges_of(operation_.results, operation_.result);
  for (std::size_t i = 1; i < results.size(); ++i) {
    if (results[i].begin < results[i - 1].end) return overlap(results[i - 1], results[i]);
  }
  for (const Range& input : ranges_of(operation_.inputs, operation_.input)) {
    auto result = std::upper_bound(results.begin(), results.end(), input.begin,
                                   [](std::uintptr_t begin, const Range& range) { return begin < range.end; });
    for (; result != results.end() && result->begin < input.end; ++result) {
      if (result->rank != input.rank || result->begin != input.begin) return overlap(input, *result);
    }
  }
  return true;
}

bool ListDescription::fill() {
  call_.unequal = 1;
  return take_inputs() && take_results() && find_type_of_all() && set_lengths() && check_overlap();
}

}  // namespace

bool describe_lists(const torii_team* team, const Arguments& arguments, Operation& operation) {
  return ListDescription(team, arguments, operation).fill();
}

}  // namespace torii_python
