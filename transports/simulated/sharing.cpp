// SPDX-License-Identifier: Apache-2.0
// Messages that share links: each moves over all links of its way at one rate, which changes when others start or end.
#include <algorithm>
#include <cmath>
#include <limits>

#include "transports/simulated/network.hpp"

namespace torii::simulated {
void Network::share_links() {
  // Bytes per picosecond; a port is as fast as the links of its node.
  std::vector<double> bandwidths(world_->resources.size(), model_.bandwidth_GBps / 1000.0);
  for (std::size_t link = 0; link < world_->link_ticks.size(); ++link) bandwidths[link] = 1 / world_->link_ticks[link];
  const auto flows = world_->ranks.size() * static_cast<std::size_t>(model_.engines);
  flows_.resize(flows);
  sharing_.emplace(static_cast<int>(bandwidths.size()), static_cast<int>(flows), *model_.sharing, bandwidths);
}

void Network::start_flow(std::uint32_t number, std::size_t engine) noexcept {
  const Message& message = messages_[number];
  Rank& sender = rank(message.from);
  if (message.put.bytes == 0) {
    sender.engine_free_at[engine] = now_ + overhead_;
    note_use(message, engine, now_, now_ + overhead_);
    schedule(now_ + sender.ways[message.way].latency + late(), Kind::arrival, number);
    return;
  }
  const std::size_t place = static_cast<std::size_t>(message.from) * static_cast<std::size_t>(model_.engines) + engine;
  flows_[place] = {number, true, static_cast<double>(message.put.bytes), 0, now_, now_, kNever};
  std::vector<LinkSharing::Use> uses;
  for (std::uint32_t at = message.next_hop; at != message.last_hop; ++at) {
    const std::uint32_t resource = world_->hops[at].resource;
    uses.push_back({static_cast<int>(resource), 1});
    if (resource < world_->link_bytes.size()) world_->link_bytes[resource] += message.put.bytes;
  }
  sender.engine_free_at[engine] = kNever;
  sharing_->start(static_cast<int>(place), uses);
  is_settled_ = false;
}

/// Messages that started or ended at this instant change the rates of others, and so the times of their ends.
void Network::settle_flows() noexcept {
  is_settled_ = true;
  for (const int place : sharing_->settle()) {
    Flow& flow = flows_[static_cast<std::size_t>(place)];
    if (!flow.is_active) continue;
    flow.left_bytes = std::max(0.0, flow.left_bytes - flow.rate * static_cast<double>(now_ - flow.since));
    flow.since = now_;
    flow.rate = sharing_->rate(place);
    flow.end = now_ + static_cast<Time>(std::llround(flow.left_bytes / flow.rate));
    schedule(flow.end, Kind::flow, static_cast<std::uint32_t>(place));
  }
}

/// Called at every planned end of a flow; only the last one counts.
void Network::end_flow(std::uint32_t place) noexcept {
  Flow& flow = flows_[place];
  if (!flow.is_active || flow.end != now_) return;
  flow.is_active = false;
  sharing_->end(static_cast<int>(place));
  is_settled_ = false;
  const Message& message = messages_[flow.message];
  const auto engine = static_cast<std::size_t>(place) % static_cast<std::size_t>(model_.engines);
  Rank& sender = rank(message.from);
  sender.engine_free_at[engine] = now_ + overhead_;
  note_use(message, engine, flow.begin, now_ + overhead_);
  schedule(now_ + sender.ways[message.way].latency + late(), Kind::arrival, flow.message);
  use_engines(message.from);
}

}  // namespace torii::simulated
