// SPDX-License-Identifier: Apache-2.0
// Channels of persistent operations, and figures of all channels.
#include "api/running/channels.hpp"

#include <algorithm>
#include <utility>

namespace torii {

Channels::Channels(Transport& transport, std::size_t shared) : transport_(transport), shared_(shared) {
  for (std::size_t i = 0; i < shared; ++i) channels_.push_back(std::make_unique<Channel>(transport));
}

int Channels::add() {
  auto added = std::make_unique<Channel>(transport_);
  free_.reserve(free_.size() + 1);
  {
    const std::lock_guard lock(mutex_);
    channels_.push_back(std::move(added));
  }
  free_.push_back(static_cast<int>(channels_.size()) - 1);
  return free_.back();
}

void Channels::take(int channel) noexcept { std::erase(free_, channel); }

/// The lowest free channel is taken first, so ranks that free and prepare in one order agree on the channels.
void Channels::give_back(int channel) { free_.insert(std::lower_bound(free_.begin(), free_.end(), channel), channel); }

std::uint64_t Channels::engine_bytes(int engine) const noexcept {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& channel : channels_) bytes += channel->execution.engine_bytes(engine);
  return bytes;
}

int Channels::transfers_in_flight_most() const noexcept {
  const std::lock_guard lock(mutex_);
  int most = 0;
  for (const auto& channel : channels_) most = std::max(most, channel->execution.transfers_in_flight_most());
  return most;
}

std::vector<PutOwner> Channels::take_puts() {
  std::vector<PutOwner> owners;
  for (const auto& channel : channels_) owners.push_back(channel->execution.take_puts());
  return owners;
}

}  // namespace torii
