// SPDX-License-Identifier: Apache-2.0
// Selects one of the two transports, and sleeps for both.
#include "transports/mixed/mixed.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/tuned_constants.hpp"

namespace torii::mixed {
namespace {

constexpr auto kStepUs = tuned<int>("waiting.mixed_sleep");

}  // namespace

Mixed::Mixed(const shared_memory::Nodes& nodes, std::unique_ptr<Transport> inside, std::unique_ptr<Transport> between,
             std::unique_ptr<LifeWatch> lives, std::shared_ptr<const void> pinning)
    : nodes_(nodes),
      alone_(nodes.own_ranks() == 1),
      inside_(std::move(inside)),
      lives_(std::move(lives)),
      between_(std::move(between)),
      pinning_(std::move(pinning)),
      name_(between_->capabilities().name) {
  const Capabilities& fabric = between_->capabilities();
  if (nodes.count() != nodes.ranks()) name_ = "shared_memory+" + name_;
  capabilities_ = {.name = name_,
                   .mapped = false,
                   .wakes_on_put = alone_ && fabric.wakes_on_put,
                   .notices_deaths = fabric.notices_deaths,
                   .engines = fabric.engines,
                   .selects_ties = fabric.selects_ties,
                   .rails = fabric.rails,
                   .pinned_bytes = fabric.pinned_bytes,
                   .put_bytes_most = fabric.put_bytes_most,
                   .put_bytes = fabric.put_bytes,
                   .gathers = fabric.gathers};
}

// No system call waits for a futex and for descriptors at once. A rank with peers on its node therefore sleeps on the
// fabric, in steps. A put over a network wakes it at once. A put from its own node, where a waiting rank mostly still
// polls or yields, wakes it at the end of the step. If the fabric wakes nobody, the rank sleeps on the futex.
void Mixed::sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept {
  if (alone_) return between_->sleep(mark, most_us, still_idle, data);
  Transport& waker = between_->capabilities().wakes_on_put ? *between_ : *inside_;
  waker.sleep(mark, std::min(most_us, kStepUs), still_idle, data);
}

}  // namespace torii::mixed
