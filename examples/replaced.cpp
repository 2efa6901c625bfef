// SPDX-License-Identifier: Apache-2.0
// Goes on with a new process in the place of one that has died. Run: torii-run -n 4 --on-failure replace --
// replaced_cpp
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <torii/torii.hpp>
#include <vector>

struct State {
  long step = 0;
  std::vector<long> weights = std::vector<long>(1000);
};

/// The state of a rank that has got furthest becomes that of all: a new process has none.
void share(torii::Team& team, State& state) {
  long newest = state.step;
  torii::check(team.allreduce(std::span(&newest, 1), TORII_MAX));
  int root = state.step == newest ? team.rank() : team.ranks();
  torii::check(team.allreduce(std::span(&root, 1), TORII_MIN));
  torii::check(team.broadcast(std::span(state.weights), root));
  state.step = newest;
}

int main() {
  State state;
  std::optional<torii::Context> context;
  for (int steps = 0; state.step < 100;) {
    try {
      torii_context_options options = {};
      options.size = sizeof(options);
      if (context) options.memory_of = context->handle();  // what was allocated or registered stays so
      context = torii::Context(&options);
      torii::Team team = context->team();
      share(team, state);
      for (; state.step < 100; ++state.step, ++steps) {
        if (steps == 50 && team.rank() == 3) std::_Exit(1);
        std::vector<long> gradients(state.weights.size(), state.step * team.rank());
        torii::check(team.allreduce(std::span(gradients)));
        for (std::size_t i = 0; i < gradients.size(); ++i) state.weights[i] += gradients[i];
      }
    } catch (const torii::Failure& failure) {
      std::fprintf(stderr, "step %ld: %s\n", state.step, failure.what());
      if (failure.status() != TORII_PEER_LOST) return 1;
    }
  }
  return std::printf("rank %d of %d: %ld\n", context->rank(), context->ranks(), state.weights.back()) < 0 ? 1 : 0;
}
