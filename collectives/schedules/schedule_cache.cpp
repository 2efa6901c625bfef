// SPDX-License-Identifier: Apache-2.0
// A short list of schedules, the one used last first.
#include "collectives/schedules/schedule_cache.hpp"

#include <algorithm>
#include <mutex>

namespace torii {

std::shared_ptr<const Schedule> kept_schedule(const Topology& topology, int root, std::size_t bytes, bool backwards) {
  struct Kept {
    Topology topology;
    int root;
    std::size_t bytes;
    bool backwards;
    std::shared_ptr<const Schedule> schedule;
  };
  constexpr std::size_t kKeptMost = 32;
  static std::mutex mutex;
  static std::vector<Kept> kept;
  const std::scoped_lock lock(mutex);
  const auto found = std::find_if(kept.begin(), kept.end(), [&](const Kept& one) {
    return one.root == root && one.bytes == bytes && one.backwards == backwards && one.topology == topology;
  });
  if (found != kept.end()) {
    std::rotate(kept.begin(), found, found + 1);
    return kept.front().schedule;
  }
  const TreeTopology tree = topology.tree() == nullptr ? TreeTopology::star(topology.ranks()) : *topology.tree();
  auto schedule = std::make_shared<const Schedule>(find_schedule(backwards ? tree.reversed() : tree, root, bytes));
  if (kept.size() == kKeptMost) kept.pop_back();
  kept.insert(kept.begin(), {topology, root, bytes, backwards, schedule});
  return schedule;
}

}  // namespace torii
