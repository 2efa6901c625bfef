// SPDX-License-Identifier: Apache-2.0
// Sums a vector over all ranks, in C++, in memory that peers map. Run: torii-run -n 4 -- allreduce_cpp
#include <cstdio>
#include <torii/torii.hpp>

int main() {
  try {
    const torii::Context context;
    torii::Team team = context.team();
    const torii::Buffer<float> buffer = context.allocate<float>(1000);
    for (float& element : buffer.span()) element = static_cast<float>(team.rank() + 1);
    torii::check(team.allreduce(buffer.span()));  // in place; the sum of 1, 2, ..., ranks
    const float expected = static_cast<float>(team.ranks() * (team.ranks() + 1)) / 2;
    for (const float element : buffer.span()) {
      if (element != expected) return 1;
    }
    if (team.rank() == 0) std::printf("every element is %g on %d ranks\n", expected, team.ranks());
    return 0;
  } catch (const torii::Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
