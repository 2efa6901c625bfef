// SPDX-License-Identifier: Apache-2.0
// A rank of a job whose ranks are killed and replaced: adds up until a file appears, and checks the sum.
// replaced_rank FILE
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <torii/torii.hpp>
#include <vector>

#include "tests/support/process.hpp"

namespace {

constexpr std::size_t kCount = 3000;

/// What a rank keeps from one context to the next: vectors that peers reach in place, and how far it has got.
struct State {
  std::int64_t step = 0;
  std::int64_t* sums = nullptr;
  std::int64_t* terms = nullptr;
};

bool exists(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0;
}

void share(torii::Team& team, State& state) {
  std::int64_t newest = state.step;
  torii::check(team.allreduce(std::span(&newest, 1), TORII_MAX));
  int root = state.step == newest ? team.rank() : team.ranks();
  torii::check(team.allreduce(std::span(&root, 1), TORII_MIN));
  torii::check(team.broadcast(std::span(state.sums, kCount), root));
  state.step = newest;
}

/// Steps until all ranks have seen the file.
void add_up(torii::Team& team, State& state, const char* file) {
  while (true) {
    int is_over = exists(file) ? 1 : 0;
    torii::check(team.allreduce(std::span(&is_over, 1), TORII_MIN));
    if (is_over != 0) return;
    for (std::size_t i = 0; i < kCount; ++i) {
      state.terms[i] = state.step * team.rank() + static_cast<std::int64_t>(i);
    }
    torii::check(team.allreduce(std::span(state.terms, kCount)));
    for (std::size_t i = 0; i < kCount; ++i) state.sums[i] += state.terms[i];
    ++state.step;
  }
}

bool is_right(const State& state, std::int64_t ranks) {
  const std::int64_t steps = state.step * (state.step - 1) / 2 * (ranks * (ranks - 1) / 2);
  for (std::size_t i = 0; i < kCount; ++i) {
    if (state.sums[i] != steps + state.step * ranks * static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

/// Ranks that see each other's deaths a moment apart may blame each other for leaving.
bool may_go_on(torii_status status) {
  return status == TORII_PEER_LOST || status == TORII_POISONED || status == TORII_TRANSPORT;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  State state;
  std::optional<torii::Context> context;
  while (true) {
    try {
      torii_context_options options = {};
      options.size = sizeof(options);
      if (context) options.memory_of = context->handle();
      context = torii::Context(&options);
      for (std::int64_t** vector : {&state.sums, &state.terms}) {
        void* memory = *vector;
        if (memory == nullptr) torii::check(torii_allocate(context->handle(), kCount * sizeof(std::int64_t), &memory));
        *vector = static_cast<std::int64_t*>(memory);
      }
      torii::Team team = context->team();
      share(team, state);
      add_up(team, state, argv[1]);
      std::printf("rank %d has the %s sum\n", team.rank(), is_right(state, team.ranks()) ? "right" : "wrong");
      return 0;
    } catch (const torii::Failure& failure) {
      if (may_go_on(failure.status())) continue;
      std::printf("%s\n", failure.what());
      return 1;
    }
  }
}
