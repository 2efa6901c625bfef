// SPDX-License-Identifier: Apache-2.0
// Opens an engine, connects it to those of its peers, and closes it.
#include <algorithm>
#include <utility>

#include "runtime/base/secret.hpp"
#include "transports/libfabric/engine.hpp"
#include "transports/libfabric/notice.hpp"

namespace torii::libfabric {

Engine::Engine(std::shared_ptr<Device> device, int number, const Shared& shared, const Options& options)
    : shared_(shared),
      device_(std::move(device)),
      own_(shared.ranks, Writes::bounce_bytes(device_->info(), shared.ranks, options)),
      endpoint_(device_, shared.ranks, shared.sleeps),
      writes_(endpoint_, own_, number, shared),
      liveness_(writes_, own_, shared, device_->info()),
      needs_parting_(device_->is_over_rxm() && !liveness_.has_listener()) {}

Engine::~Engine() {
  if (is_closed_) return;
  if (may_close()) {
    close_endpoint();
  } else {
    keep_endpoint();
  }
}

void Engine::make_ready(const Options& options, const std::vector<Extent>& extents) {
  for (const Extent& extent : extents) add_extent(extent);
  own_.register_with(*device_, *endpoint_.get());
  writes_.make_stocks(options);
  receives_.prepare(device_->info());
  post_receives();
  endpoint_.offer_descriptor();
}

void Engine::pin(const Extent& extent) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_ || is_ending_) add_extent(extent);
}

/// Peers know the regions of the device in their order.
void Engine::add_extent(const Extent& extent) {
  device_->register_extent(shared_.arena, extent, *endpoint_.get());
  for (const Device::Regions::Region& one : device_->regions().all().subspan(own_.extents())) {
    const std::uint64_t base = device_->remote_base(shared_.arena + one.extent.offset) - one.extent.offset;
    own_.add_extent({one.extent, base, fi_mr_key(one.memory.get())});
  }
}

EngineCard Engine::card(std::size_t data_bytes) {
  EngineCard card{};
  card.first = own_.first_extent();
  card.own = {{}, device_->remote_base(own_.bell()), own_.key()};
  notice_bits_ = notice_bits(shared_.registered_bytes);
  mark_ = random_secret() & mark_bits(shared_.registered_bytes, data_bytes);
  card.mark = mark_;
  card.name_bytes = endpoint_.put_name(card.name);
  return card;
}

void Engine::connect(const std::vector<EngineCard>& cards, std::size_t ordered_bytes) {
  ordered_bytes_ = ordered_bytes;
  std::vector<Target> targets(cards.size());
  std::vector<SocketAddress> addresses(cards.size());
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const EngineCard& card = cards[rank];
    Target& to = targets[rank];
    to.first = card.first;
    to.own = card.own;
    to.mark = card.mark;
    std::copy_n(card.name.begin(), addresses[rank].size(), addresses[rank].begin());
    if (!endpoint_.insert(card.name.data(), to.address)) {
      throw Error(Status::transport,
                  "libfabric: the address of rank " + std::to_string(rank) + " is none that " + device_->name() +
                      " understands",
                  static_cast<int>(rank));
    }
  }
  writes_.set_targets(std::move(targets));
  liveness_.connect(std::move(addresses), needs_parting_);
}

bool Engine::part() noexcept {
  if (!needs_parting_) return true;
  const std::lock_guard lock(mutex_);
  return liveness_.part([this] { take_all(); });
}

/// ofi_rxm over verbs ends the process if it closes a connection of which a notice is unread (libfabric 1.17 to 2.6).
/// It closes the connection's endpoint, then takes what is unread, and posts the receive of each notice again, to the
/// endpoint that is gone. Over tcp notices use up no receives.
bool Engine::may_close() noexcept {
  if (!needs_parting_) return true;
  if (!liveness_.knows_anybody()) return true;
  if (shared_.peers.is_broken() || !liveness_.have_all_gone()) return false;
  take_all();
  return true;
}

void Engine::close_endpoint() noexcept {
  if (device_->is_over_rxm()) {
    endpoint_.end_streams(shared_.alone_in_process && liveness_.has_listener(), liveness_.addresses_of_peers());
  }
  // A region bound to an endpoint is closed before it; any other region after it, so that late writes of peers still
  // find it.
  if (device_->binds_to_endpoint()) {
    device_->deregister_extents();
    own_.deregister();
  }
  endpoint_.close();
}

/// If memory stays registered, a device still writes what peers have sent, and nobody notices it any more.
void Engine::keep_endpoint() noexcept {
  if (!device_->is_shareable()) device_->deregister_extents();
  if (!outlives_closing()) own_.deregister();
  endpoint_.keep();
}

void Engine::close() noexcept {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  // Peers may still send. And if streams cannot be found they cannot be ended (see Endpoint::end_streams()): partial
  // writes then stay, because nobody calls the provider for this engine again.
  const bool finds_streams = wait_descriptor() >= 0 || shared_.alone_in_process;
  if (needs_parting_ || (device_->is_over_rxm() && !finds_streams)) {
    keep_endpoint();
    is_ending_ = outlives_closing();
  } else {
    close_endpoint();
  }
  writes_.drop_waiting();
  if (!is_ending_) {
    writes_.end();
    receives_.end();
  }
  shared_.sleepers.took();
}

}  // namespace torii::libfabric
