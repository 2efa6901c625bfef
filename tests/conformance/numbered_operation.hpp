// SPDX-License-Identifier: Apache-2.0
// Operations that are told apart by their results, and the teams that run them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {

/// A vector of its own for one allreduce, with a value that tells operations apart.
struct Operation {
  std::vector<std::int64_t> input;
  std::vector<std::int64_t> result;
  torii_request* request = nullptr;

  Operation(std::size_t count, int rank, int number) : input(count), result(count) { set(rank, number); }
  void set(int rank, int number) {
    for (std::size_t i = 0; i < input.size(); ++i) {
      input[i] = static_cast<std::int64_t>(i) + 1000 * number + 7 * rank;
      result[i] = -1;
    }
  }
  torii_call call() { return make_call(TORII_ALLREDUCE, input.data(), result.data(), input.size(), TORII_I64); }
  bool is_right(int ranks, int number) const {
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::int64_t right = ranks * (static_cast<std::int64_t>(i) + 1000 * number) + 7 * ranks * (ranks - 1) / 2;
      if (result[i] != right) return false;
    }
    return true;
  }
};

inline ThreadTeam team_of(int ranks, const std::string& more = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=256M\nTIMEOUT=20\n" + more;
  return options;
}

/// The nodes of three ranks: all on one, and where there is a fabric to test also on two.
inline const std::vector<std::vector<int>> kPlaces = {
    {},
#if defined(TORII_TEST_LIBFABRIC)
    {0, 1, 1},
#endif
};

/// Lengths of such operations.
inline constexpr std::size_t kCounts[] = {1, 5000, 17, 60'000, 300};

}  // namespace torii::tests
