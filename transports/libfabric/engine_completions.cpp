// SPDX-License-Identifier: Apache-2.0
// The progress of an engine: completions of its writes, notices of its peers' writes, and errors.
#include <array>
#include <cstdint>

#include "runtime/fabric/waiting.hpp"
#include "transports/libfabric/engine.hpp"

namespace torii::libfabric {

bool Engine::progress() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  if (is_closed_) return false;
  if (shared_.peers.changes() != seen_changes_) let_go_of_lost();
  const bool came = take_completions();
  if (came) shared_.sleepers.took();
  if (!receives_owed_.empty()) post_receives();
  if (came || !waiting_.empty()) is_armed_ = false;
  if (waiting_.empty()) return came;
  post_delayed();
  ask_about_waiting(now_ns());
  return true;
}

/// False if there were none.
bool Engine::take_completions() noexcept {
  constexpr int kRoundsMost = 16;
  std::array<fi_cq_data_entry, 16> entries;
  for (int round = 0; round < kRoundsMost; ++round) {
    const ssize_t got = fi_cq_read(opened_.queue.get(), entries.data(), entries.size());
    if (got == -FI_EAGAIN || got == 0) return round > 0;
    if (got == -FI_EAVAIL) {
      take_error();
      continue;
    }
    if (got < 0) {
      break_down("cannot read its completions", got);
      return true;
    }
    for (ssize_t i = 0; i < got; ++i) take_completion(entries[static_cast<std::size_t>(i)]);
    if (got < static_cast<ssize_t>(entries.size())) return true;
  }
  return true;
}

void Engine::take_completion(const fi_cq_data_entry& entry) noexcept {
  if ((entry.flags & FI_REMOTE_CQ_DATA) == 0) {
    if (Operation* const operation = operation_of(entry.op_context)) {
      complete(*operation);
    } else if (take_back_receive(entry.op_context)) {
      shared_.peers.count_stranger();
    }
    return;
  }
  // If receives are posted for notices, each notice uses up the receive that its entry names.
  (void)take_back_receive(entry.op_context);
  // Anybody who reaches the endpoint can send a notice, so an invalid one changes nothing and ends nothing.
  const bool is_ours = (entry.data & ~notice_bits_) == mark_ && shared_.arrivals.take(entry.data & notice_bits_);
  if (!is_ours) shared_.peers.count_stranger();
}

/// True for a receive that was posted for notices. Ranks send no messages, but a stranger's message uses one up too.
bool Engine::take_back_receive(void* context) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(context);
  const auto first = reinterpret_cast<std::uintptr_t>(receives_.data());
  if (at < first || at >= first + receives_.size() * sizeof(fi_context2)) return false;
  receives_owed_.push_back(static_cast<fi_context2*>(context));
  return true;
}

/// The operation that a completion names, or nullptr: for injected writes providers return any context.
Engine::Operation* Engine::operation_of(void* context) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(context);
  for (const std::vector<Operation>* const all : {&operations_, &probes_}) {
    const auto first = reinterpret_cast<std::uintptr_t>(all->data());
    if (at >= first && at < first + all->size() * sizeof(Operation)) return static_cast<Operation*>(context);
  }
  return nullptr;
}

/// Writes to a lost peer need not complete, and nobody waits for them.
void Engine::let_go_of_lost() noexcept {
  seen_changes_ = shared_.peers.changes();
  for (Operation& operation : operations_) {
    if (is_cut(operation.peer)) operation.hold.let_go();
  }
  shared_.sleepers.took();
}

void Engine::complete(Operation& operation) noexcept {
  Target& to = target(operation.peer);
  if (operation.piece.at != nullptr) pool_.give_back(operation.piece);
  pool_stock_.give_back(to.bounced_bytes, operation.piece.bytes);
  operation.hold.let_go();
  --to.in_flight;
  if (operation.confirms && --to.confirming == 0 && to.is_asked && !is_cut(operation.peer)) {
    to.is_asked = false;
    shared_.peers.answered(operation.peer);
  }
  if (operation.is_probe) {
    operation.is_busy = false;
  } else {
    operation.next_free = free_operation_;
    free_operation_ = &operation;
    operation_stock_.give_back(to.operations, 1);
  }
  --in_flight_;
  count_open();
}

void Engine::take_error() noexcept {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(opened_.queue.get(), &error, 0) < 0) return;
  Operation* const operation = operation_of(error.op_context);
  if (operation == nullptr) {
    if (take_back_receive(error.op_context)) return shared_.peers.count_stranger();
    // An injected write: its peer is unknown. Waiting calls will miss the data, and other writes will find the reason.
    if (is_lost_connection(error.err)) return;
    break_down("failed", error.err);
    return;
  }
  (void)fail(operation->peer, error.err, operation->bytes);
  complete(*operation);
}

}  // namespace torii::libfabric
