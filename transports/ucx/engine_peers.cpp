// SPDX-License-Identifier: Apache-2.0
// Finds out whether peers exist and have received everything, and whether the rank may sleep.
#include <array>

#include "transports/ucx/engine.hpp"

namespace torii::ucx {

/// The greeting has a payload. Before the first message that does not fit into the shortest form of a packet, UCX asks
/// the peer for its end of the connection. The answer needs the peer's progress().
void Engine::greet(int peer) noexcept {
  static constexpr std::array<std::byte, kMessageMost> kPayload{};
  const std::lock_guard lock(mutex_);
  // The states of the peers record a failure.
  (void)send(peer, kGreeting, {0, 0, static_cast<std::uint64_t>(shared_.rank)}, kPayload.data(), kPayload.size());
  target(peer).used = false;
}

bool Engine::is_greeted(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  return target(peer).greeted;
}

void Engine::take_leave(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  (void)send(peer, kFarewell, {0, 0, static_cast<std::uint64_t>(shared_.rank)}, nullptr, 0);
}

bool Engine::has_left(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  return target(peer).left;
}

void Engine::give_answers() noexcept {
  owes_answers_ = false;
  for (Target& to : targets_) {
    for (; to.owed != 0; --to.owed) {
      (void)send(to.peer, kAnswer, {0, 0, static_cast<std::uint64_t>(shared_.rank)}, nullptr, 0);
    }
  }
}

bool Engine::drained() noexcept {
  if (in_flight_.load(std::memory_order_acquire) == 0) return true;
  const std::lock_guard lock(mutex_);
  for (const Target& to : targets_) {
    if (to.in_flight != 0 && !is_cut(to.peer)) return false;
  }
  return true;
}

/// Counts as in flight until all puts to the peer have arrived.
void Engine::flush_puts(Target& to) noexcept {
  Operation* const operation = take(operations_, free_operation_);
  if (operation == nullptr) return;  // as if the peer did not confirm
  operation->engine = this;
  operation->peer = to.peer;
  operation->bytes = 0;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = &Engine::on_sent;
  how.user_data = operation;
  (void)started(*operation, ucp_ep_flush_nbx(to.endpoint, &how));
}

/// Messages of one engine arrive in order, so the answer to the last one covers all.
void Engine::ask(Target& to) noexcept {
  ++to.asked;
  (void)send(to.peer, kAsk, {0, 0, static_cast<std::uint64_t>(shared_.rank)}, nullptr, 0);
}

void Engine::flush() noexcept {
  const std::lock_guard lock(mutex_);
  for (Target& to : targets_) {
    if (!to.used || is_cut(to.peer)) continue;
    if (manner_.puts) flush_puts(to);
    ask(to);
  }
}

void Engine::doubt(int peer, std::int64_t) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || is_cut(peer)) return;
  Target& to = target(peer);
  if (to.asked != to.answered) return;
  to.is_doubted = true;
  ask(to);
}

bool Engine::confirmed() noexcept {
  if (!drained()) return false;
  const std::lock_guard lock(mutex_);
  for (const Target& to : targets_) {
    if (to.asked != to.answered && !is_cut(to.peer)) return false;
  }
  return true;
}

bool Engine::may_sleep(int&) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return true;
  return !owes_answers_ && ucp_worker_arm(worker_.get()) == UCS_OK;
}

}  // namespace torii::ucx
