// SPDX-License-Identifier: Apache-2.0
// The sum in double, and how far float sums may be from it.
#include "perf/common/sums.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "perf/common/data.hpp"

namespace torii::perf {

int64_t count_wrong_sums(const Job& job, const CallData& data, uint64_t seed) {
  if (!data.has_result()) return 0;
  const auto* got = reinterpret_cast<const float*>(data.result());
  const torii_call& call = data.call();
  const size_t shift = call.collective == TORII_REDUCE_SCATTER ? call.count * static_cast<size_t>(job.rank()) : 0;
  int64_t wrong = 0;
  for (const Range& range : checked_ranges(data.result_elements(), sizeof(float))) {
    std::vector<double> sum(range.count), magnitude(range.count);
    std::vector<float> operand(range.count);
    for (int rank = 0; rank < job.ranks(); ++rank) {
      fill(seed, TORII_F32, rank, shift + range.first, range.count, operand.data());
      for (size_t i = 0; i < range.count; ++i) {
        sum[i] += operand[i];
        magnitude[i] += std::fabs(operand[i]);
      }
    }
    for (size_t i = 0; i < range.count; ++i) {
      const double allowed = magnitude[i] * job.ranks() * std::numeric_limits<float>::epsilon();
      if (!(std::fabs(got[range.first + i] - sum[i]) <= allowed)) ++wrong;
    }
  }
  return wrong;
}

}  // namespace torii::perf
