// SPDX-License-Identifier: Apache-2.0
// An embedder's program: it sums one number over all ranks.
#include <cstdio>
#include <torii/torii.hpp>

int main() try {
  const torii::Context context;
  torii::Team team = context.team();
  const auto buffer = context.allocate<float>(1);
  buffer.span()[0] = static_cast<float>(team.rank() + 1);
  torii::check(team.allreduce(buffer.span()));
  if (team.rank() == 0) std::printf("%g on %d ranks\n", buffer.span()[0], team.ranks());
  return 0;
} catch (const torii::Failure& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
