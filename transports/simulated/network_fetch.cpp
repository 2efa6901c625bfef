// SPDX-License-Identifier: Apache-2.0
// Asks early for memory: with thousands of ranks nothing is in a cache when its event comes. Each step of these
// functions reads what the one before it has brought.
#include "runtime/base/index.hpp"
#include "transports/simulated/large_pages.hpp"
#include "transports/simulated/network.hpp"

namespace torii::simulated {

/// For events of this instant that come after event `at`.
void Network::fetch_due(std::size_t at) const noexcept {
  constexpr std::size_t kSteps = 4;
  constexpr std::size_t kApart = 3;  // events from one step to the next
  for (std::size_t step = 0; step < kSteps; ++step) {
    const std::size_t ahead = at + (kSteps - step) * kApart;
    if (ahead >= due_.size()) continue;
    const Event& event = due_[ahead];
    switch (event.kind) {
      case Kind::arrival:
        fetch_arrival(messages_[event.index], step);
        break;
      case Kind::word:
        if (step == 0) {
          __builtin_prefetch(&words_[event.index]);
        } else {
          fetch_change(words_[event.index].peer, words_[event.index].offset, step);
        }
        break;
      case Kind::engine:
        if (step > 0) fetch_queues(static_cast<int>(event.index), step);
        break;
      default:
        break;
    }
  }
}

void Network::fetch_arrival(const Message& message, std::size_t step) const noexcept {
  if (step == 0) {
    fetch(message);
    return;
  }
  if (part_of(message.put.peer) == part_) fetch_change(message.put.peer, message.put.signal_offset, step);
  const Rank& sender = world_->ranks[index(message.from)];
  if (step == 1) __builtin_prefetch(&sender);
  if (step == 2) __builtin_prefetch(message.put.owner);
}

void Network::fetch_change(int number, std::uint64_t offset, std::size_t step) const noexcept {
  const Rank& one = world_->ranks[index(number)];
  if (step == 1) {
    __builtin_prefetch(&one);
    __builtin_prefetch(world_->arenas + index(number) * world_->arena_bytes + offset);
  } else if (one.reader != nullptr) {
    one.reader->lanes().watch().fetch_ahead(step == 2 ? 0 : 1);
  }
}

void Network::fetch_queues(int number, std::size_t step) const noexcept {
  const Rank& one = world_->ranks[index(number)];
  if (step == 1) {
    fetch(one);
    return;
  }
  for (const Queue& queue : one.waiting) {
    if (step == 2) {
      fetch(queue);
    } else {
      __builtin_prefetch(&world_->resources[queue.first_resource]);
      __builtin_prefetch(queue.puts.data());
    }
  }
  if (step == 2) __builtin_prefetch(one.active.data());
}

void Network::fetch_ahead(int number, std::size_t step) const noexcept {
  if (step < 3) fetch_queues(number, step + 1);
  if (step != 1) return;
  for (const Way& way : world_->ranks[index(number)].ways) fetch(way);
}

void Network::gather_in_large_pages() const noexcept {
  const auto gather = [](const auto& elements) {
    simulated::gather_in_large_pages(elements.data(), elements.data() + elements.size());
  };
  gather(world_->ranks);
  gather(world_->resources);
  gather(world_->hops);
}

}  // namespace torii::simulated
