// SPDX-License-Identifier: Apache-2.0
// The data path of an engine: from put() to fi_writedata, and the queue for when the provider is busy.
#include "transports/libfabric/engine.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "transports/libfabric/notice.hpp"
#include "transports/network/failures.hpp"

namespace torii::libfabric {

Status Engine::put(const Put& put) noexcept {
  const std::lock_guard lock(mutex_);
  Target& to = target(put.peer);
  if (put.bytes == 0 || put.source == nullptr) {
    return send_word(to, put, put.signal, make_notice(NoticeAction::wake, 0));
  }
  if (put.signal_offset % kLineBytes != 0) std::abort();  // the interface's contract: payload needs a line
  const std::uint64_t inverted = ~put.signal;
  Transfer transfer;
  transfer.peer = put.peer;
  transfer.notifies = true;
  transfer.owner = put.owner;
  transfer.key = to.arena_key;
  transfer.address = to.arena_base + put.signal_offset;
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
  if (put.target_offset == put.signal_offset + kLineBytes && gathers(put.source, put.bytes)) {
    transfer.leads = true;
    transfer.word = inverted;
    return send(transfer);
  }
  transfer.address = to.arena_base + put.target_offset;
  const bool is_ordered = put.bytes <= ordered_bytes_;
  transfer.notifies = !is_ordered;
  transfer.notice = make_notice(NoticeAction::join, put.signal_offset);
  const Status status = send(transfer);
  if (status != Status::ok) return status;
  if (is_ordered) return send_word(to, put, put.signal, make_notice(NoticeAction::wake, 0));
  return send_word(to, put, inverted, transfer.notice);
}

/// Sends a short payload whose source has several readers: it is copied behind its own line, which costs less than a
/// second transfer. False if the provider does not take it now.
bool Engine::put_joined(Transfer transfer, const Put& put) noexcept {
  Target& to = target(put.peer);
  if (put.bytes > kJoinedBytesMax || to.waiting != 0 || is_cut(put.peer)) return false;
  alignas(kLineBytes) std::byte joined[kLineBytes + kJoinedBytesMax];
  const std::uint64_t inverted = ~put.signal;
  std::memcpy(joined, &inverted, sizeof(inverted));
  std::memset(joined + sizeof(inverted), 0, kInlineBytes);
  std::memcpy(joined + kLineBytes, put.source, put.bytes);
  transfer.source = joined;
  transfer.bytes = kLineBytes + put.bytes;
  transfer.is_temporary = true;
  if (post(transfer) != 0) return false;
  is_armed_ = false;
  if (!to.used) ++used_targets_;
  to.used = true;
  return true;
}

Status Engine::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  const std::lock_guard lock(mutex_);
  Put word;
  word.peer = peer;
  word.signal_offset = offset;
  return send_word(target(peer), word, value, make_notice(NoticeAction::wake, 0));
}

/// Sends eight bytes to the place of the put's signal.
Status Engine::send_word(Target& to, const Put& put, std::uint64_t value, std::uint64_t notice) noexcept {
  Transfer transfer;
  transfer.peer = put.peer;
  transfer.owner = put.owner;
  transfer.notifies = true;
  transfer.is_temporary = true;
  transfer.source = reinterpret_cast<const std::byte*>(&value);
  transfer.bytes = sizeof(value);
  transfer.address = to.arena_base + put.signal_offset;
  transfer.key = to.arena_key;
  transfer.notice = notice;
  return send(transfer);
}

Status Engine::send(const Transfer& transfer) noexcept {
  Target& to = target(transfer.peer);
  if (is_cut(transfer.peer)) return Status::peer_lost;
  if (!to.used) ++used_targets_;
  to.used = true;
  return start(transfer);
}

Status Engine::start(const Transfer& transfer) noexcept {
  is_armed_ = false;
  if (target(transfer.peer).waiting == 0) {
    ssize_t code = post(transfer);
    if (code == 0) return Status::ok;
    if (code == -FI_EAGAIN) {
      if (take_completions()) shared_.sleepers.took();
      code = post(transfer);
      if (code == 0) return Status::ok;
    }
    if (code != -FI_EAGAIN) return fail(transfer.peer, code, transfer.total());
  }
  return delay(transfer);
}

ssize_t Engine::post(const Transfer& transfer) noexcept {
  if (transfer.total() > inject_bytes_ || transfer.confirms || transfer.leads) return post_counted(transfer);
  const Target& to = target(transfer.peer);
  if (!transfer.notifies) {
    return fi_inject_write(opened_.endpoint.get(), transfer.source, transfer.bytes, to.address, transfer.address,
                           transfer.key);
  }
  return fi_inject_writedata(opened_.endpoint.get(), transfer.source, transfer.bytes, to.mark | transfer.notice,
                             to.address, transfer.address, transfer.key);
}

/// The confirmed write to a peer has its own operation, because a peer that is in no call does not answer it.
Engine::Operation* Engine::find_operation(const Transfer& transfer) noexcept {
  Operation& probe = probes_[static_cast<std::size_t>(transfer.peer)];
  if (transfer.confirms && !probe.is_busy) return &probe;
  return operation_stock_.may_take(target(transfer.peer).operations, 1) ? free_operation_ : nullptr;
}

BouncePool::Piece Engine::find_room(const Target& to, std::size_t bytes) noexcept {
  return pool_stock_.may_take(to.bounced_bytes, BouncePool::piece_bytes(bytes)) ? pool_.take(bytes)
                                                                                : BouncePool::Piece{};
}

/// Finds the memory that the provider reads. False if there is no room for a copy now.
bool Engine::find_source(const Transfer& transfer, Gathered& from, BouncePool::Piece& piece) noexcept {
  const Target& to = target(transfer.peer);
  from = {{{{const_cast<std::byte*>(transfer.source), transfer.bytes}}}, {}, 1};
  if (transfer.confirms) {
    from.descriptors[0] = fi_mr_desc(own_region_.get());
    return true;
  }
  if (local_keys_) from.descriptors[0] = fi_mr_desc(arena_region_.get());
  if (transfer.leads) {
    piece = find_room(to, kLineBytes);
    if (piece.at == nullptr) return false;
    std::memcpy(piece.at, &transfer.word, sizeof(transfer.word));
    std::memset(piece.at + sizeof(transfer.word), 0, kInlineBytes);
    from = {{{{piece.at, kLineBytes}, from.parts[0]}}, {fi_mr_desc(own_region_.get()), from.descriptors[0]}, 2};
  } else if (transfer.is_temporary || (local_keys_ && !in_arena(transfer.source, transfer.bytes))) {
    piece = find_room(to, transfer.bytes);
    if (piece.at == nullptr) return false;
    std::memcpy(piece.at, transfer.source, transfer.bytes);
    from.parts[0].iov_base = piece.at;
    from.descriptors[0] = fi_mr_desc(own_region_.get());
  }
  return true;
}

/// Posts a write whose source the provider reads until it completes.
ssize_t Engine::post_counted(const Transfer& transfer) noexcept {
  if (transfer.total() > info_->ep_attr->max_msg_size) return -FI_EMSGSIZE;
  const bool is_copied = local_keys_ && !transfer.confirms && !in_arena(transfer.source, transfer.bytes);
  if (is_copied && !pool_stock_.can_hold(BouncePool::piece_bytes(transfer.bytes))) return -FI_EMSGSIZE;
  Operation* const operation = find_operation(transfer);
  if (operation == nullptr) return -FI_EAGAIN;
  Gathered from;
  BouncePool::Piece piece;
  if (!find_source(transfer, from, piece)) return -FI_EAGAIN;
  operation->bytes = transfer.total();
  operation->piece = piece;
  operation->peer = transfer.peer;
  operation->confirms = transfer.confirms;
  const ssize_t code = write(transfer, from, *operation);
  if (code != 0) {
    if (piece.at != nullptr) pool_.give_back(piece);
    return code;
  }
  operation->hold = PutHold(transfer.owner);
  Target& to = target(transfer.peer);
  if (operation->is_probe) {
    operation->is_busy = true;
  } else {
    free_operation_ = operation->next_free;
    operation_stock_.take(to.operations, 1);
  }
  pool_stock_.take(to.bounced_bytes, piece.bytes);
  ++in_flight_;
  ++to.in_flight;
  count_open();
  return 0;
}

ssize_t Engine::write(const Transfer& transfer, Gathered& from, Operation& operation) noexcept {
  const fi_addr_t address = target(transfer.peer).address;
  const std::uint64_t notice = target(transfer.peer).mark | transfer.notice;
  if (transfer.confirms || transfer.leads) {
    fi_rma_iov to = {transfer.address, transfer.total(), transfer.key};
    const fi_msg_rma message = {
        from.parts.data(), from.descriptors.data(), from.count, address, &to, 1, &operation, notice};
    return fi_writemsg(opened_.endpoint.get(), &message,
                       FI_COMPLETION | (transfer.confirms ? FI_DELIVERY_COMPLETE : FI_REMOTE_CQ_DATA));
  }
  const void* const source = from.parts[0].iov_base;
  void* const descriptor = from.descriptors[0];
  if (!transfer.notifies) {
    return fi_write(opened_.endpoint.get(), source, transfer.bytes, descriptor, address, transfer.address, transfer.key,
                    &operation);
  }
  return fi_writedata(opened_.endpoint.get(), source, transfer.bytes, descriptor, notice, address, transfer.address,
                      transfer.key, &operation);
}

/// Queues a transfer until the provider takes it; transfers to one peer stay in order.
Status Engine::delay(const Transfer& transfer) noexcept {
  try {
    Delayed& delayed = waiting_.emplace_back();
    delayed.transfer = transfer;
    delayed.hold = PutHold(transfer.owner);
    if (transfer.is_temporary) std::memcpy(delayed.line.data(), transfer.source, transfer.bytes);
  } catch (const std::exception&) {
    return Status::no_resource;
  }
  ++target(transfer.peer).waiting;
  count_open();
  return Status::ok;
}

void Engine::post_delayed() noexcept {
  ++round_;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (!post_delayed(waiting_[i])) continue;
    if (kept != i) waiting_[kept] = std::move(waiting_[i]);
    ++kept;
  }
  waiting_.resize(kept);
  count_open();
}

/// True if the transfer has to wait longer.
bool Engine::post_delayed(Delayed& delayed) noexcept {
  Transfer& transfer = delayed.transfer;
  Target& to = target(transfer.peer);
  ssize_t code = -FI_ECONNRESET;
  if (!is_cut(transfer.peer)) {
    if (to.busy_round == round_) return true;
    if (transfer.is_temporary) transfer.source = delayed.line.data();
    code = post(transfer);
    if (code == -FI_EAGAIN) {
      to.busy_round = round_;
      return true;
    }
    if (code != 0) (void)fail(transfer.peer, code, transfer.total());
  }
  --to.waiting;
  if (code != 0 && transfer.confirms) --to.confirming;
  return false;
}

/// Stops the engine for all peers.
void Engine::break_down(const char* what, std::int64_t code) noexcept {
  shared_.peers.break_down(transports::text_or_none([&] { return name() + " " + what + ": " + code_text(code); }));
}

Status Engine::fail(int peer, std::int64_t code, std::size_t bytes) noexcept {
  const std::string text =
      transports::text_or_none([&] { return transports::failed_write(name(), bytes, peer, code_text(code)); });
  // The remaining transfers to a lost peer may fail in any way.
  if (!is_lost_connection(code) && !is_cut(peer)) {
    shared_.peers.break_down(text);
    return Status::transport;
  }
  if (shared_.probes) {
    shared_.peers.cut(number_, peer, text);
  } else {
    shared_.peers.lose(peer, text);  // nobody could ask the other engines
  }
  return Status::peer_lost;
}

}  // namespace torii::libfabric
