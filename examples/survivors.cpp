// SPDX-License-Identifier: Apache-2.0
// Goes on without a rank that has died, or over the engines that a cut cable leaves. Run: torii-run -n 4 --
// survivors_cpp
#include <cstdio>
#include <cstdlib>
#include <torii/torii.hpp>
#include <vector>

int main() {
  try {
    const torii::Context context;
    torii::Team team = context.team();
    for (long step = 0; step < 100; ++step) {
      if (step == 50 && team.rank() == 3) std::_Exit(0);
      std::vector<long> sums(1000, step);
      if (team.allreduce(std::span(sums)) != TORII_OK) {
        std::fprintf(stderr, "step %ld: %s\n", step, torii_last_error());
        team = team.survivors();
        // Some may have ended the step in which others failed: all begin again with the earliest.
        torii::check(team.allreduce(std::span(&step, 1), TORII_MIN));
        --step;
      } else if (sums.back() != step * team.ranks()) {
        return 1;
      }
    }
    return std::printf("rank %d of %d is through\n", team.rank(), team.ranks()) < 0 ? 1 : 0;
  } catch (const torii::Failure& failure) {
    return std::fprintf(stderr, "%s\n", failure.what()), 1;
  }
}
