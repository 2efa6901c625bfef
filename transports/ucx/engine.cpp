// SPDX-License-Identifier: Apache-2.0
// The lock of an engine, and what its parts do together.
#include "transports/ucx/engine.hpp"

#include <utility>

namespace torii::ucx {

Engine::Engine(std::shared_ptr<Device> device, int number, const Shared& shared)
    : shared_(shared),
      worker_(std::move(device), number, shared),
      writes_(worker_, shared),
      arrivals_(worker_, shared),
      liveness_(worker_, writes_, shared) {}

/// UCX calls back while the worker ends, so the parts are still there.
Engine::~Engine() { worker_.close(!writes_.are_none_open() || arrivals_.are_any()); }

void Engine::connect(const std::vector<std::string>& cards) {
  const std::lock_guard lock(mutex_);
  worker_.connect(cards);
}

void Engine::pin(const Extent& extent) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) worker_.pin(extent);
}

Status Engine::put(const Put& put) noexcept {
  const std::lock_guard lock(mutex_);
  return writes_.put(put);
}

Status Engine::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  const std::lock_guard lock(mutex_);
  writes_.use(peer);
  return writes_.send(peer, kPut, {0, offset, value}, nullptr, 0);
}

bool Engine::progress() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  if (is_closed_) return false;
  if (const std::uint32_t changes = shared_.peers.changes(); changes != seen_changes_) {
    seen_changes_ = changes;
    writes_.let_go_of_lost();
    shared_.sleepers.took();
  }
  const bool came = worker_.progress();
  if (came) shared_.sleepers.took();
  if (liveness_.owes_answers()) liveness_.give_answers();
  return came || liveness_.owes_answers();
}

bool Engine::drained() noexcept {
  if (writes_.are_none_open()) return true;
  const std::lock_guard lock(mutex_);
  return writes_.is_quiet();
}

void Engine::flush() noexcept {
  const std::lock_guard lock(mutex_);
  liveness_.flush();
}

bool Engine::confirmed() noexcept {
  if (!drained()) return false;
  const std::lock_guard lock(mutex_);
  return liveness_.confirmed();
}

void Engine::greet(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  liveness_.greet(peer);
}

bool Engine::is_greeted(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  return liveness_.is_greeted(peer);
}

void Engine::take_leave(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  liveness_.take_leave(peer);
}

bool Engine::has_left(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  return liveness_.has_left(peer);
}

void Engine::doubt(int peer, std::int64_t) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) liveness_.doubt(peer);
}

bool Engine::is_arriving(std::uint64_t offset, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  // Nobody calls the worker of a closed engine, so nothing of it continues.
  return !is_closed_ && arrivals_.is_arriving(offset, bytes);
}

bool Engine::may_sleep(int&) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return true;
  return !liveness_.owes_answers() && worker_.arm();
}

void Engine::close() noexcept {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  worker_.give_up();
  writes_.end();  // a device reads nothing any more
  shared_.sleepers.took();
}

}  // namespace torii::ucx
