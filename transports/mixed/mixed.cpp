// SPDX-License-Identifier: Apache-2.0
// Selects one of the two transports, sleeps for both, and watches processes that the fabric does not watch.
#include "transports/mixed/mixed.hpp"

#include <algorithm>
#include <utility>

#include "transports/shared_memory/watch.hpp"

namespace torii::mixed {
namespace {

/// The longest sleep in which one of the two transports cannot wake the rank.
constexpr int kStepUs = 1000;

}  // namespace

Mixed::Mixed(const shared_memory::Nodes& nodes, std::unique_ptr<Transport> inside, std::unique_ptr<Transport> between)
    : nodes_(nodes),
      alone_(nodes.own_ranks() == 1),
      inside_(std::move(inside)),
      between_(std::move(between)),
      name_(between_->capabilities().name),
      watches_(static_cast<std::size_t>(nodes.ranks())) {
  const Capabilities& fabric = between_->capabilities();
  if (nodes.count() != nodes.ranks()) name_ = "shared_memory+" + name_;
  bool all_watched = true;
  for (int rank = 0; rank < nodes.ranks() && !fabric.notices_deaths; ++rank) {
    if (nodes.is_own(rank)) continue;
    Descriptor& watch = watches_[static_cast<std::size_t>(rank)];
    // Ranks of this process have no watch: a thread never ends alone.
    watch = shared_memory::open_pidfd(nodes.visible_pid(rank));
    all_watched = all_watched && watch.open();
  }
  capabilities_ = {.name = name_,
                   .mapped = false,
                   .wakes_on_put = alone_ && fabric.wakes_on_put,
                   .notices_deaths = fabric.notices_deaths || all_watched,
                   .engines = fabric.engines,
                   .selects_ties = fabric.selects_ties,
                   .rails = fabric.rails,
                   .pinned_bytes = fabric.pinned_bytes,
                   .put_bytes = fabric.put_bytes,
                   .gathers = fabric.gathers};
}

// No system call waits for a futex and for descriptors at once. A rank with peers on its node therefore sleeps on the
// fabric, in steps. A put over a network wakes it at once. A put from its own node, where a waiting rank mostly still
// polls or yields, wakes it at the end of the step. If the fabric wakes nobody, the rank sleeps on the futex.
void Mixed::sleep(int most_us, bool (*still_idle)(void* data), void* data) noexcept {
  if (alone_) return between_->sleep(most_us, still_idle, data);
  Transport& waker = between_->capabilities().wakes_on_put ? *between_ : *inside_;
  waker.sleep(std::min(most_us, kStepUs), still_idle, data);
}

bool Mixed::alive(int peer) noexcept {
  if (nodes_.is_own(peer)) return inside_->alive(peer);
  const Descriptor& watch = watches_[static_cast<std::size_t>(peer)];
  if (watch.open() && shared_memory::has_ended(watch.get(), POLLIN)) return false;
  return between_->alive(peer);
}

}  // namespace torii::mixed
