// SPDX-License-Identifier: Apache-2.0
// The data path of an engine: how a put becomes one write or two, and what arrives.
#include "transports/libfabric/engine.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/fabric/waiting.hpp"
#include "transports/libfabric/notice.hpp"

namespace torii::libfabric {
namespace {

/// The part of a sleep after which transfers that the provider has refused are tried again.
constexpr int kRefusedShare = 4;

}  // namespace

Status Engine::put(const Put& put) noexcept {
  const std::lock_guard lock(mutex_);
  if (put.bytes == 0 || put.source == nullptr) {
    return send_word(put, put.signal, make_notice(NoticeAction::wake, 0));
  }
  if (put.signal_offset % kLineBytes != 0) std::abort();  // the interface's contract: payload needs a line
  const std::uint64_t inverted = ~put.signal;
  Transfer transfer;
  transfer.peer = put.peer;
  transfer.notifies = true;
  transfer.owner = put.owner;
  transfer.offset = put.signal_offset;
  transfer.notice = make_notice(NoticeAction::publish, put.signal_offset);
  if (put.target_offset == put.signal_offset + sizeof(inverted) && put.bytes <= kInlineBytes) {
    alignas(kLineBytes) std::byte line[kLineBytes];
    std::memcpy(line, &inverted, sizeof(inverted));
    std::memcpy(line + sizeof(inverted), put.source, put.bytes);
    transfer.source = line;
    transfer.bytes = sizeof(inverted) + put.bytes;
    transfer.is_temporary = true;
    return send(transfer);
  }
  if (put.line_before && put.target_offset == put.signal_offset + kLineBytes) {
    std::memcpy(const_cast<std::byte*>(put.source) - kLineBytes, &inverted, sizeof(inverted));
    transfer.source = put.source - kLineBytes;
    transfer.bytes = kLineBytes + put.bytes;
    return send(transfer);
  }
  if (put.target_offset == put.signal_offset + kLineBytes && put_joined(transfer, put)) return Status::ok;
  transfer.source = put.source;
  transfer.bytes = put.bytes;
  if (put.target_offset == put.signal_offset + kLineBytes && writes_.gathers(put.source, put.bytes)) {
    transfer.leads = true;
    transfer.word = inverted;
    return send(transfer);
  }
  transfer.offset = put.target_offset;
  const bool is_ordered = put.bytes <= ordered_bytes_;
  transfer.notifies = !is_ordered;
  transfer.notice = make_notice(NoticeAction::join, put.signal_offset);
  const Status status = send(transfer);
  if (status != Status::ok) return status;
  if (is_ordered) return send_word(put, put.signal, make_notice(NoticeAction::wake, 0));
  return send_word(put, inverted, transfer.notice);
}

/// Sends a short payload whose source has several readers: it is copied behind its own line, which costs less than a
/// second transfer. False if the provider does not take it now.
bool Engine::put_joined(Transfer transfer, const Put& put) noexcept {
  const Target& to = writes_.target(put.peer);
  if (put.bytes > kJoinedBytesMax || to.waiting != 0 || writes_.is_cut(put.peer)) return false;
  alignas(kLineBytes) std::byte joined[kLineBytes + kJoinedBytesMax];
  const std::uint64_t inverted = ~put.signal;
  std::memcpy(joined, &inverted, sizeof(inverted));
  std::memset(joined + sizeof(inverted), 0, kInlineBytes);
  std::memcpy(joined + kLineBytes, put.source, put.bytes);
  transfer.source = joined;
  transfer.bytes = kLineBytes + put.bytes;
  transfer.is_temporary = true;
  if (writes_.post(transfer) != 0) return false;
  writes_.use(put.peer);
  return true;
}

Status Engine::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  const std::lock_guard lock(mutex_);
  Put word;
  word.peer = peer;
  word.signal_offset = offset;
  return send_word(word, value, make_notice(NoticeAction::wake, 0));
}

/// Sends eight bytes to the place of the put's signal.
Status Engine::send_word(const Put& put, std::uint64_t value, std::uint64_t notice) noexcept {
  Transfer transfer;
  transfer.peer = put.peer;
  transfer.owner = put.owner;
  transfer.notifies = true;
  transfer.is_temporary = true;
  transfer.source = reinterpret_cast<const std::byte*>(&value);
  transfer.bytes = sizeof(value);
  transfer.offset = put.signal_offset;
  transfer.notice = notice;
  return send(transfer);
}

/// If the provider is busy, completions may make room.
Status Engine::send(const Transfer& transfer) noexcept {
  if (writes_.is_cut(transfer.peer)) return Status::peer_lost;
  // Before anything of the put is sent or waits: a signal must not come without its payload.
  if (writes_.is_too_long(transfer)) return Status::invalid_argument;
  writes_.use(transfer.peer);
  if (writes_.target(transfer.peer).waiting != 0) return writes_.delay(transfer);
  const ssize_t code = writes_.post(transfer);
  if (code == 0) return Status::ok;
  if (code != -FI_EAGAIN) return writes_.fail(transfer.peer, code, transfer.total());
  if (take_completions()) shared_.sleepers.took();
  return writes_.start(transfer);
}

bool Engine::progress() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  if (shared_.peers.changes() != seen_changes_) {
    seen_changes_ = shared_.peers.changes();
    writes_.let_go_of_lost();
    shared_.sleepers.took();
  }
  if (is_closed_) return end_more();
  const bool came = take_completions();
  if (came) shared_.sleepers.took();
  if (receives_.are_owed()) post_receives();
  if (came || writes_.are_waiting()) endpoint_.disarm();
  if (!writes_.are_waiting()) return came;
  writes_.post_delayed();
  liveness_.ask_about_waiting(now_ns());
  return true;
}

/// After close(). Peers whose device still has writes to this engine end them only if receives are there.
bool Engine::end_more() noexcept {
  if (!is_ending_) return false;
  const bool came = take_completions();
  if (came) shared_.sleepers.took();
  if (receives_.are_owed()) (void)receives_.post(endpoint_, own_);
  return came;
}

/// False if there were none.
bool Engine::take_completions() noexcept {
  constexpr int kRoundsMost = 16;
  std::array<fi_cq_data_entry, 16> entries;
  for (int round = 0; round < kRoundsMost; ++round) {
    const ssize_t got = fi_cq_read(endpoint_.queue(), entries.data(), entries.size());
    if (got == -FI_EAGAIN || got == 0) return round > 0;
    if (got == -FI_EAVAIL) {
      take_error();
      continue;
    }
    if (got < 0) {
      if (!is_closed_) writes_.break_down("cannot read its completions", got);
      return true;
    }
    for (ssize_t i = 0; i < got; ++i) take_completion(entries[static_cast<std::size_t>(i)]);
    if (got < static_cast<ssize_t>(entries.size())) return true;
  }
  return true;
}

void Engine::take_completion(const fi_cq_data_entry& entry) noexcept {
  if ((entry.flags & FI_REMOTE_CQ_DATA) == 0) {
    // Providers return any context for injected writes.
    if (!writes_.take_completion(entry.op_context) && receives_.take_back(entry.op_context)) {
      shared_.peers.count_stranger();
    }
    return;
  }
  // If receives are posted for notices, each notice uses up the receive that its entry names.
  (void)receives_.take_back(entry.op_context);
  if (is_closed_) return;
  // Anybody who reaches the endpoint can send a notice, so an invalid one changes nothing and ends nothing.
  const bool is_ours = (entry.data & ~notice_bits_) == mark_ && shared_.arrivals.take(entry.data & notice_bits_);
  if (!is_ours) shared_.peers.count_stranger();
}

void Engine::take_all() noexcept {
  while (!shared_.peers.is_broken() && take_completions()) {
  }
}

void Engine::take_error() noexcept {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(endpoint_.queue(), &error, 0) < 0 || writes_.take_error(error)) return;
  if (receives_.take_back(error.op_context)) return shared_.peers.count_stranger();
  // An injected write: its peer is unknown. Waiting calls will miss the data, and other writes will find the reason.
  if (!is_closed_ && !is_lost_connection(error.err)) writes_.break_down("failed", error.err);
}

void Engine::post_receives() noexcept {
  const ssize_t code = receives_.post(endpoint_, own_);
  if (code != 0) writes_.break_down("cannot post a receive", code);
}

void Engine::flush() noexcept {
  const std::lock_guard lock(mutex_);
  liveness_.flush();
}

void Engine::greet(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  liveness_.greet(peer);
}

void Engine::take_leave(int peer) noexcept {
  const std::lock_guard lock(mutex_);
  liveness_.take_leave(peer);
}

bool Engine::probe(int peer, std::int64_t now_ns) noexcept {
  if (!shared_.probes) return true;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return !lock.owns_lock() || liveness_.probe(peer, now_ns);
}

void Engine::doubt(int peer, std::int64_t now_ns) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) liveness_.doubt(peer, now_ns);
}

bool Engine::is_quiet(bool but_for_confirmed) noexcept {
  if (writes_.are_none_open()) return true;
  const std::lock_guard lock(mutex_);
  return writes_.is_quiet(but_for_confirmed);
}

bool Engine::may_sleep(int& most_us) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_ending_ && !writes_.are_none_open()) most_us = std::max(most_us / kRefusedShare, 1);
  if (is_closed_) return true;
  if (receives_.are_owed()) return false;
  // No event says when the provider would take a refused transfer: a socket is full, or a peer has yet to answer.
  if (writes_.are_waiting()) most_us = std::max(most_us / kRefusedShare, 1);
  return endpoint_.arm();
}

}  // namespace torii::libfabric
