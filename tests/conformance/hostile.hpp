// SPDX-License-Identifier: Apache-2.0
// Every public function of the C interface, and values that no caller should give it.
#pragma once

#include <torii/torii.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace torii::tests {

/// What functions take. A row of the table uses what its function needs.
struct HostileArguments {
  torii_context* context;
  torii_team* team;
  const void* input;
  void* result;
  std::size_t count;
  torii_type type;
  torii_op op;
  int root;
  const std::size_t* input_counts;
  const std::size_t* input_displacements;
  const std::size_t* result_counts;
  const std::size_t* result_displacements;
  const void* const* inputs;
  void* const* results;
  const torii_leaves* leaves;
  const torii_leaves* leaves_of_gone_team;
  std::size_t stride;
  torii_call call;
  torii_team_options team_options;
  torii_context_options context_options;
  torii_choice choice;
  torii_received received;
  bool has_call = true;     ///< false: NULL in place of the struct
  bool has_place = true;    ///< false: NULL in place of where an answer is written
  bool has_request = true;  ///< false: NULL in place of the request's place
  int peer;
  int tag;
  double seconds;
  int list_count = 1;
  std::size_t rows = 4;
  std::size_t columns = 2;
  std::size_t element_bytes = 4;
  const std::size_t* extents;
  const int* axes;
  int dimensions = 2;
  const std::uint64_t* destinations;
  std::size_t result_count;
  std::size_t item_bytes = 4;
  int ranks = 1;
  int rank = 0;
  std::size_t first = 0;
  std::size_t leaf_count = 2;
  torii_operand operand;
  std::size_t bytes = 64;
  void* address;
  unsigned flags = 0;
  void (*done)(torii_status status, void* data);
};

/// What a function takes; a value says which of them it spoils.
enum HostileField : std::uint64_t {
  kTeam = std::uint64_t{1} << 0,
  kInput = std::uint64_t{1} << 1,
  kResult = std::uint64_t{1} << 2,
  kCount = std::uint64_t{1} << 3,
  kType = std::uint64_t{1} << 4,
  kOp = std::uint64_t{1} << 5,
  kRoot = std::uint64_t{1} << 6,
  kInputCounts = std::uint64_t{1} << 7,
  kResultCounts = std::uint64_t{1} << 8,
  kInputs = std::uint64_t{1} << 9,
  kResults = std::uint64_t{1} << 10,
  kLeaves = std::uint64_t{1} << 11,
  kCall = std::uint64_t{1} << 12,
  kTeamOptions = std::uint64_t{1} << 13,
  kContextOptions = std::uint64_t{1} << 14,
  kPlace = std::uint64_t{1} << 15,
  kRequest = std::uint64_t{1} << 16,
  kPeer = std::uint64_t{1} << 17,
  kTag = std::uint64_t{1} << 18,
  kSeconds = std::uint64_t{1} << 19,
  kList = std::uint64_t{1} << 20,
  kMatrix = std::uint64_t{1} << 21,
  kAxes = std::uint64_t{1} << 22,
  kItems = std::uint64_t{1} << 23,
  kDeal = std::uint64_t{1} << 24,
  kLeafClaim = std::uint64_t{1} << 25,
  kExpected = std::uint64_t{1} << 26,
  kBytes = std::uint64_t{1} << 27,
  kContext = std::uint64_t{1} << 28,
  kMemory = std::uint64_t{1} << 29,
  kFlags = std::uint64_t{1} << 30,
  kChoice = std::uint64_t{1} << 31,
  kMembers = std::uint64_t{1} << 32,
  kReceived = std::uint64_t{1} << 33,
};
/// On some ranks the function does not look at these buffers, which spoiled are refused on the others alone.
constexpr std::uint64_t kLopsided = kInput | kResult | kInputCounts | kResultCounts | kInputs | kResults;

/// A function that returns a status.
struct HostileRow {
  const char* name;
  std::uint64_t takes;
  torii_status (*call)(HostileArguments& arguments);
  bool joins = false;        ///< blocking calls join groups
  bool is_lopsided = false;  ///< see kLopsided
};
std::span<const HostileRow> hostile_rows();

/// A value that is refused wherever it comes.
struct HostileValue {
  const char* name;
  std::uint64_t spoils;
  void (*set)(HostileArguments& arguments);
};
std::span<const HostileValue> hostile_values();

/// A function that answers a question, and what it answers to nonsense.
struct HostileQuestion {
  const char* name;
  void (*ask)(const HostileArguments& arguments);
};

/// What a C caller can write into an enum, and C++ code cannot.
template <typename Enum>
void set_number(Enum& field, int number) {
  static_assert(sizeof(field) == sizeof(number));
  std::memcpy(&field, &number, sizeof(number));
}
template <typename Enum>
Enum number_as(int number) {
  Enum value = {};
  set_number(value, number);
  return value;
}

}  // namespace torii::tests
