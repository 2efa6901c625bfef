// SPDX-License-Identifier: Apache-2.0
// One call of a history: its vectors, filled from its own seed, and the result that each rank must get.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tools/collective_shape.hpp"

namespace torii::faults {

enum class CallKind : std::uint8_t {
  collective,
  transpose,  ///< torii_transpose of a matrix
  permute,    ///< torii_permute
  sends       ///< an alltoall of unequal blocks, by sends and receives
};
constexpr bool redistributes(CallKind kind) { return kind == CallKind::transpose || kind == CallKind::permute; }

struct DrawnCall {
  CallKind kind = CallKind::collective;
  torii_collective collective = TORII_BARRIER;
  torii_type type = TORII_I32;
  torii_op op = TORII_SUM;
  bool commutes = true;  ///< of TORII_USER: sums; otherwise affine maps, which do not commute
  std::size_t count = 0;
  int root = 0;
  bool in_place = false;      ///< on the ranks that can
  bool unequal = false;       ///< blocks have lengths of their own
  std::uint64_t lengths = 0;  ///< of unequal blocks, by this seed
  std::uint64_t seed = 0;     ///< of the data: mostly no two calls of a history have equal data
};

/// A call that a team of any size can run: `root` may have to be taken modulo the number of ranks.
DrawnCall random_call(std::mt19937_64& random);
/// The same call with another signature.
DrawnCall unlike(DrawnCall spec, std::mt19937_64& random);
/// "gatherv of 7 x f32 in place, root 3".
std::string text_of(const DrawnCall& spec);

inline constexpr int kRefusals = 13;
/// Makes a call that every team refuses, in one of kRefusals ways, which repeat.
torii_status make_refused_call(torii_team* team, int way);

/// A rank in a call.
struct Place {
  int ranks = 0;
  int rank = 0;
};

std::size_t input_bytes(const DrawnCall& spec, Place place);
/// 0 on ranks that get no result.
std::size_t result_bytes(const DrawnCall& spec, Place place);
std::vector<std::byte> input_of(const DrawnCall& spec, Place place);
/// The right bytes of the rank's result: result_bytes() of them.
std::vector<std::byte> expected_result(const DrawnCall& spec, Place place);

/// Where the vectors of a call in place are within one piece of memory.
struct Overlap {
  std::size_t input = 0;
  std::size_t result = 0;
  std::size_t bytes = 0;  ///< of the piece; 0: this rank cannot make the call in place
};
Overlap overlap_of(const DrawnCall& spec, Place place);

/// A torii_call, and the lengths and addresses of the blocks to which it refers.
struct Words {
  torii_call call = {};
  std::vector<std::size_t> input_counts = {};
  std::vector<std::size_t> result_counts = {};
  std::vector<const void*> input_blocks = {};
  std::vector<void*> result_blocks = {};
};
/// The call of a collective; `words` must stay where it is until the call has been made.
void write_words(Words& words, const DrawnCall& spec, Place place, const void* input, void* result);
/// Make a call of the other kinds.
torii_status redistribute(torii_team* team, const DrawnCall& spec, Place place, const void* input, void* result);
torii_status send_and_receive(torii_team* team, const DrawnCall& spec, Place place, const void* input, void* result);
/// Whether a blocking collective is made as a group of calls on parts of its vectors; and makes it.
bool is_made_in_parts(const DrawnCall& spec);
torii_status run_in_parts(torii_team* team, const DrawnCall& spec, const torii_call& call);

}  // namespace torii::faults
