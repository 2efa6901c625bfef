// SPDX-License-Identifier: Apache-2.0
// Calls of every form over the matrix collectives x types x operations x counts x ranks x places, each compared with
// what torii_expect() gives and, where no order of operands gives other bits, with the definition of the collective.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {

enum class CallForm {
  blocking,
  started,
  prepared,  ///< and started twice
  grouped    ///< behind calls that run as one
};

/// Makes the call. `refill` is called before a prepared one is started again; without it such a call starts once.
torii_status run_as(CallForm form, torii_team* team, const torii_call& call, const std::function<void()>& refill = {});

/// Whether the team has an algorithm for the call.
bool is_served(torii_team* team, const torii_call& call);

/// One call of a matrix, the same on all ranks.
struct Cell {
  torii_collective collective = TORII_ALLREDUCE;
  torii_type type = TORII_F32;
  torii_op op = TORII_SUM;
  std::size_t count = 1;
  int root = 0;
  bool in_place = false;
  CallForm form = CallForm::blocking;
};
/// "reduce of 7 x f32, op sum, root 2, in place, prepared".
std::string text_of(const Cell& cell);

/// The contents of the vectors of a cell's calls, and the fields of a call that its cell does not have.
struct Inputs {
  std::uint64_t seed = 3;              ///< of fill_operand()
  torii_operand fill = nullptr;        ///< in its place
  torii_operand combined = nullptr;    ///< what is combined, where that is not what stands in the input
  void* data = nullptr;                ///< of both functions
  torii_user_function user = nullptr;  ///< with TORII_USER
  std::size_t user_bytes = 0;
  bool commutes = false;
  const void* factor = nullptr;        ///< with TORII_PREMUL_SUM
  torii_context* allocates = nullptr;  ///< where not nullptr, this rank's vectors come from torii_allocate()
};

/// One rank's part of a cell's call: its vectors, which it fills, and the call. Where a rank has no input or no result,
/// the call has a null pointer or memory for nothing.
class CellCall {
 public:
  CellCall(torii_team* team, const Cell& cell, const Inputs& inputs = {});

  const torii_call& call() const { return call_; }
  /// Writes the input, and into the result what is never right.
  void fill();
  /// The result of this rank; empty where it has none.
  std::span<const std::byte> result() const;
  bool keeps_input() const;
  /// Compares the result, of which one failure is reported. `where` says what the cell does not.
  void expect_right(const std::string& where = "") const;
  /// The same by the definition alone, for exact types: makes no call of the library, whose plans stay as they are.
  void expect_defined(const std::string& where = "") const;

 private:
  using Memory = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;
  Memory take(std::size_t elements) const;
  bool has_input() const { return torii::has_input(cell_.collective, rank_, cell_.root); }
  void write(int rank, std::size_t first, std::size_t count, std::byte* out) const;
  static void write_operand(int rank, std::size_t first, std::size_t count, void* out, void* self);
  std::vector<std::byte> expected() const;
  std::vector<std::byte> defined() const;
  std::vector<std::byte> combined(int last, std::size_t first) const;
  void report(std::span<const std::byte> right, const char* what, const std::string& where) const;

  torii_team* team_;
  Cell cell_;
  Inputs inputs_;
  int rank_, ranks_;
  std::size_t element_bytes_;
  VectorLengths lengths_;
  Memory first_, second_;
  std::byte* input_ = nullptr;
  std::byte* result_ = nullptr;
  torii_call call_ = {};
};

/// Makes the call of the cell and compares its result. Returns the call's status; without a result if it is not ok.
torii_status run_and_expect(torii_team* team, const Cell& cell, const Inputs& inputs = {},
                            const std::string& where = "");

/// Every combination of these is a cell.
struct Matrix {
  std::vector<torii_collective> collectives;
  std::vector<torii_type> types = {TORII_F32};
  std::vector<torii_op> ops = {TORII_SUM};
  std::vector<std::size_t> counts;
};
/// The cells of a team. Roots go round, and so do forms and places: on teams of 1 to 8 ranks each combination meets
/// every form (but for groups) in both places.
std::vector<Cell> cells_of(const Matrix& matrix, int ranks);

/// How teams run their calls.
struct TeamRow {
  const char* algorithm;
  const char* wire;
  const char* determinism;
};
/// Runs `body` on every rank of teams of 1 to 8 ranks.
void on_teams_of(const TeamRow& row, const std::function<void(torii_team*)>& body);

inline const std::vector<torii_collective> kCombining = {TORII_REDUCE, TORII_ALLREDUCE, TORII_REDUCE_SCATTER,
                                                         TORII_SCAN, TORII_EXSCAN};

}  // namespace torii::tests
