// SPDX-License-Identifier: Apache-2.0
// Makes calls and compares their results.
#include "tests/conformance/combine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "reduce_kernels/kernels.hpp"
#include "tools/operands.hpp"

namespace torii::tests {
namespace {

constexpr std::byte kSpoilt{0x5a};

torii_status run_in_group(torii_team* team, const torii_call& call) {
  EXPECT_EQ(torii_group_begin(team), TORII_OK) << torii_last_error();
  std::array<std::uint64_t, 2> sums = {1, 1};
  for (std::uint64_t& sum : sums) (void)torii_allreduce(team, &sum, &sum, 1, TORII_U64, TORII_SUM);
  (void)torii_run(team, &call);
  const torii_status status = torii_group_end(team);
  for (const std::uint64_t sum : sums) {
    EXPECT_TRUE(status != TORII_OK || sum == static_cast<std::uint64_t>(torii_team_ranks(team)));
  }
  return status;
}

/// No order of operands gives other bits.
bool is_exact(torii_type type, torii_op op) { return op < TORII_USER && type <= TORII_U64; }

}  // namespace

torii_status run_as(CallForm form, torii_team* team, const torii_call& call, const std::function<void()>& refill) {
  torii_request* request = nullptr;
  if (form == CallForm::blocking) return torii_run(team, &call);
  if (form == CallForm::grouped) return run_in_group(team, call);
  if (form == CallForm::started) {
    const torii_status status = torii_start(team, &call, &request);
    return status == TORII_OK ? torii_wait(&request) : status;
  }
  torii_status status = torii_prepare(team, &call, &request);
  if (status != TORII_OK) return status;
  for (int start = 0; start < (refill ? 2 : 1) && status == TORII_OK; ++start) {
    if (start != 0) refill();
    status = torii_restart(request);
    if (status == TORII_OK) status = torii_wait(&request);
  }
  EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
  return status;
}

bool is_served(torii_team* team, const torii_call& call) {
  torii_choice choice = {};
  choice.size = sizeof(choice);
  return torii_choose(team, &call, &choice) != TORII_UNSUPPORTED;
}

std::string text_of(const Cell& cell) {
  constexpr std::array kForms = {"", ", started", ", prepared", ", grouped"};
  std::string text = torii_collective_name(cell.collective);
  text += " of " + std::to_string(cell.count) + " x " + torii_type_name(cell.type);
  if (combines(cell.collective)) text += std::string(", op ") + torii_op_name(cell.op);
  if (has_root(cell.collective)) text += ", root " + std::to_string(cell.root);
  return text + (cell.in_place ? ", in place" : "") + kForms.at(static_cast<std::size_t>(cell.form));
}

CellCall::CellCall(torii_team* team, const Cell& cell, const Inputs& inputs)
    : team_(team),
      cell_(cell),
      inputs_(inputs),
      rank_(torii_team_rank(team)),
      ranks_(torii_team_ranks(team)),
      element_bytes_(cell.op == TORII_USER ? inputs.user_bytes : torii_type_bytes(cell.type)),
      lengths_(lengths_of(cell.collective, cell.count, ranks_, rank_)) {
  const bool is_one = cell.in_place || cell.collective == TORII_BROADCAST;
  first_ = take(is_one ? std::max(lengths_.input, lengths_.result) : lengths_.input);
  if (!is_one) second_ = take(lengths_.result);
  input_ = first_.get() + (is_one ? lengths_.input_at * element_bytes_ : 0);
  result_ = is_one ? first_.get() + lengths_.result_at * element_bytes_ : second_.get();
  // The call may lack a vector that is not looked at.
  const bool is_missing = !cell.in_place && cell.count % 2 != 0;
  const bool has_result = torii::has_result(cell.collective, rank_, cell.root);
  const void* const input = is_missing && (!has_input() || cell.collective == TORII_BROADCAST) ? nullptr : input_;
  void* const result = is_missing && !has_result && cell.collective != TORII_BROADCAST ? nullptr : result_;
  call_ = make_call(cell.collective, input, result, cell.count, cell.type, cell.op, cell.root);
  call_.user = inputs.user;
  call_.user_bytes = inputs.user_bytes;
  call_.commutes = inputs.commutes ? 1 : 0;
  call_.factor = inputs.factor;
  fill();
}

CellCall::Memory CellCall::take(std::size_t elements) const {
  const std::size_t bytes = (elements + 1) * element_bytes_;
  torii_context* const context = inputs_.allocates;
  if (context == nullptr) return {new std::byte[bytes], [](std::byte* memory) { delete[] memory; }};
  void* address = nullptr;
  EXPECT_EQ(torii_allocate(context, bytes, &address), TORII_OK) << torii_last_error();
  return {static_cast<std::byte*>(address),
          [context](std::byte* memory) { EXPECT_EQ(torii_free(context, memory), TORII_OK) << torii_last_error(); }};
}

void CellCall::write(int rank, std::size_t first, std::size_t count, std::byte* out) const {
  if (inputs_.fill != nullptr) return inputs_.fill(rank, first, count, out, inputs_.data);
  fill_operand(static_cast<Type>(cell_.type), inputs_.seed, rank, first, count, out);
}

void CellCall::write_operand(int rank, std::size_t first, std::size_t count, void* out, void* self) {
  static_cast<const CellCall*>(self)->write(rank, first, count, static_cast<std::byte*>(out));
}

void CellCall::fill() {
  std::fill_n(result_, lengths_.result * element_bytes_, kSpoilt);
  if (has_input()) write(rank_, 0, lengths_.input, input_);
}

std::span<const std::byte> CellCall::result() const {
  const bool has_result = torii::has_result(cell_.collective, rank_, cell_.root);
  return {result_, has_result ? lengths_.result * element_bytes_ : 0};
}

bool CellCall::keeps_input() const {
  if (second_ == nullptr || !has_input()) return true;
  std::vector<std::byte> before(lengths_.input * element_bytes_);
  write(rank_, 0, lengths_.input, before.data());
  return same_bytes(before, {input_, before.size()});
}

std::vector<std::byte> CellCall::expected() const {
  std::vector<std::byte> right(result().size());
  const torii_operand operand = inputs_.combined != nullptr ? inputs_.combined : write_operand;
  void* const data = inputs_.combined != nullptr ? inputs_.data : const_cast<CellCall*>(this);
  EXPECT_EQ(torii_expect(team_, &call_, 0, lengths_.result, operand, data, right.data()), TORII_OK)
      << text_of(cell_) << ": " << torii_last_error();
  return right;
}

/// Elements from `first` on of the operands of ranks 0 to last - 1, combined in the order of ranks.
std::vector<std::byte> CellCall::combined(int last, std::size_t first) const {
  std::vector<std::byte> sum(result().size()), next(result().size());
  write(0, first, cell_.count, sum.data());
  for (int rank = 1; rank < last; ++rank) {
    write(rank, first, cell_.count, next.data());
    void* const target = sum.data();
    if (cell_.op == TORII_USER) {
      inputs_.user(target, next.data(), target, cell_.count, nullptr);
      continue;
    }
    const std::array<const void*, 2> sources = {target, next.data()};
    kernels::find(static_cast<Op>(cell_.op), static_cast<Type>(cell_.type), kernels::Isa::reference)(
        {.sources = sources.data(), .source_count = 2, .targets = &target, .target_count = 1}, cell_.count);
  }
  return sum;
}

std::vector<std::byte> CellCall::defined() const {
  const std::size_t own = cell_.count * static_cast<std::size_t>(rank_);
  const std::size_t first = gives_blocks(cell_.collective) ? own : 0;
  if (combines(cell_.collective)) {
    const int before = cell_.collective == TORII_SCAN ? rank_ + 1 : rank_;
    return combined(is_prefix(cell_.collective) ? before : ranks_, first);
  }
  std::vector<std::byte> right(result().size());
  for (std::size_t done = 0; done < lengths_.result; done += cell_.count) {
    const int from = gets_blocks(cell_.collective) ? static_cast<int>(done / cell_.count) : cell_.root;
    write(from, first, cell_.count, right.data() + done * element_bytes_);
  }
  return right;
}

void CellCall::report(std::span<const std::byte> right, const char* what, const std::string& where) const {
  // One rank's report is enough, and all go on: a rank that left would be a fault of another kind.
  if (same_bytes(right, result()) || ::testing::Test::HasFailure()) return;
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = lengths_.result; i-- > 0;) {
    const std::size_t at = i * element_bytes_;
    if (same_bytes(right.subspan(at, element_bytes_), result().subspan(at, element_bytes_))) continue;
    ++wrong;
    first = i;
  }
  ADD_FAILURE() << text_of(cell_) << (where.empty() ? "" : ", ") << where << ", by " << algorithm_of(team_, call_)
                << ", rank " << rank_ << " of " << ranks_ << ": " << wrong << " of " << lengths_.result
                << " elements are not " << what << ", the first is " << first;
}

void CellCall::expect_right(const std::string& where) const {
  EXPECT_TRUE(keeps_input()) << text_of(cell_) << ": the input was written";
  if (cell_.collective == TORII_EXSCAN && rank_ == 0) {
    std::vector<std::byte> before(lengths_.result * element_bytes_, kSpoilt);
    if (cell_.in_place) write(0, 0, lengths_.result, before.data());
    EXPECT_TRUE(same_bytes(before, {result_, before.size()})) << text_of(cell_) << ": rank 0 has no result";
  }
  if (result().empty()) return;
  const auto is_truth = [](std::byte one) { return one <= std::byte{1}; };
  if (cell_.type == TORII_BOOL && combines(cell_.collective)) {
    EXPECT_TRUE(std::ranges::all_of(result(), is_truth)) << text_of(cell_);
  }
  report(expected(), "those of torii_expect", where);
  const bool is_ordered = cell_.op == TORII_USER && !inputs_.commutes;
  const bool is_known = inputs_.combined == nullptr && (is_exact(cell_.type, cell_.op) || is_ordered);
  if (!combines(cell_.collective) || is_known) report(defined(), "those of the definition", where);
}

void CellCall::expect_defined(const std::string& where) const {
  if (!result().empty()) report(defined(), "those of the definition", where);
}

torii_status run_and_expect(torii_team* team, const Cell& cell, const Inputs& inputs, const std::string& where) {
  CellCall call(team, cell, inputs);
  const torii_status status = run_as(cell.form, team, call.call(), [&] { call.fill(); });
  if (status == TORII_OK) call.expect_right(where);
  return status;
}

std::vector<Cell> cells_of(const Matrix& matrix, int ranks) {
  std::vector<Cell> cells;
  for (const torii_collective collective : matrix.collectives) {
    for (const torii_type type : matrix.types) {
      for (const torii_op op : matrix.ops) {
        for (const std::size_t count : matrix.counts) {
          const int number = static_cast<int>(cells.size());
          const int root = has_root(collective) ? number % ranks : 0;
          const bool in_place = (number / 3 + ranks / 3) % 2 != 0;
          cells.push_back({collective, type, op, count, root, in_place, static_cast<CallForm>((number + ranks) % 3)});
        }
      }
    }
  }
  return cells;
}

void on_teams_of(const TeamRow& row, const std::function<void(torii_team*)>& body) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    ThreadTeam options;
    options.ranks = ranks;
    options.algorithm = row.algorithm;
    options.determinism = row.determinism;
    options.segment_bytes = 1024;
    options.settings = std::string("ARENA=1G\nTIMEOUT=20\nWIRE=") + row.wire;
    run_as_threads(options, [&](torii_context*, torii_team* team) { body(team); });
  }
}

}  // namespace torii::tests
