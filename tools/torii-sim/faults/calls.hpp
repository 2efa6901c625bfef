// SPDX-License-Identifier: Apache-2.0
// One collective call of a history: its vectors, filled from its own seed, and the result that each rank must get.
#pragma once

#include <torii/torii.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace torii::faults {

struct CallSpec {
  torii_collective collective = TORII_BARRIER;
  torii_type type = TORII_I32;
  torii_op op = TORII_SUM;
  std::size_t count = 0;
  int root = 0;
  std::uint64_t seed = 0;  ///< no two calls of a history have equal data
};

/// A call that a team of any size can run: `root` may have to be taken modulo the number of ranks.
CallSpec random_call(std::mt19937_64& random);
/// The same call with another signature.
CallSpec unlike(CallSpec spec, std::mt19937_64& random);

torii_call call_of(torii_collective collective, const void* input, void* result, std::size_t count, torii_type type,
                   torii_op op = TORII_SUM, int root = 0);
inline constexpr int kRefusals = 13;
/// Makes a call that every team refuses, in one of kRefusals ways.
torii_status make_refused_call(torii_team* team, int way);

std::size_t input_bytes(const CallSpec& spec, int ranks);
/// 0 on ranks that get no result.
std::size_t result_bytes(const CallSpec& spec, int ranks, int rank);
std::vector<std::byte> input_of(const CallSpec& spec, int ranks, int rank);
/// What the rank's result must hold: result_bytes() of them.
std::vector<std::byte> expected_result(const CallSpec& spec, int ranks, int rank);

}  // namespace torii::faults
