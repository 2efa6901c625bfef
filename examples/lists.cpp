// SPDX-License-Identifier: Apache-2.0
// Exchanges blocks that are in places of their own, and starts several calls. Run: torii-run -n 4 -- lists_cpp
#include <cstdio>
#include <torii/torii.hpp>
#include <vector>

int main() {
  const torii::Context context;
  torii::Team team = context.team();
  const auto ranks = static_cast<std::size_t>(team.ranks());
  const auto rank = static_cast<std::size_t>(team.rank());
  std::vector<std::vector<int>> to(ranks), from(ranks);
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    to[peer].assign(rank + peer, static_cast<int>(rank));  // rank r has r + p elements for rank p
    from[peer].resize(rank + peer);
  }
  torii::check(team.alltoall(torii::BlockList<const int>(to), torii::BlockList<int>(from)));
  std::vector<int> sum = {1}, most = {team.rank()};
  std::vector<torii::Request> requests;
  requests.push_back(team.start(torii::allreduce(sum, std::span(sum))));
  requests.push_back(team.start(torii::allreduce(most, std::span(most), TORII_MAX)));
  torii::check(torii::wait_all(requests));
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    if (from[peer] != std::vector<int>(rank + peer, static_cast<int>(peer))) return 1;
  }
  if (rank == 0) std::printf("blocks of %d ranks have come, the last one is rank %d\n", sum[0], most[0]);
  return sum[0] == team.ranks() && most[0] == team.ranks() - 1 ? 0 : 1;
}
