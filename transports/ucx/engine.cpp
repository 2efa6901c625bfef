// SPDX-License-Identifier: Apache-2.0
// The data path of an engine: from put() to active messages or ucp_put, and arriving messages.
#include "transports/ucx/engine.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace torii::ucx {
namespace {

/// Payloads up to this size are one message: copying them costs less than a second transfer. Fits into UCX's first
/// packet (8 KiB).
constexpr std::size_t kMessageMost = 4096;
/// Through shared memory UCX gathers the packets of a longer message before it delivers it, which is one more copy.
/// Payloads travel there as messages of one packet each, which arrive in order, and each is stored at once.
constexpr std::size_t kPieceBytes = 8192;

/// Status codes of a connection whose other end is gone. No code here cancels an operation, so a cancelled one was
/// flushed with its connection.
bool is_lost_connection(ucs_status_t status) noexcept {
  switch (status) {
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_CANCELED:
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_REJECTED:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status Engine::put(const Put& put) noexcept {
  const std::lock_guard lock(mutex_);
  const bool has_payload = put.bytes != 0 && put.source != nullptr;
  if (has_payload && manner_.puts && put.bytes > kMessageMost) return put_and_signal(put);
  Header header = {put.target_offset, put.signal_offset, put.signal};
  const std::byte* source = put.source;
  std::size_t bytes = has_payload ? put.bytes : 0;
  while (is_in_memory_ && bytes > kPieceBytes) {
    const Status status = send(put.peer, kPiece, header, source, kPieceBytes, put.owner);
    if (status != Status::ok) return status;
    header.target_offset += kPieceBytes;
    source += kPieceBytes;
    bytes -= kPieceBytes;
  }
  return send(put.peer, kPut, header, source, bytes, put.owner);
}

Status Engine::put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept {
  const std::lock_guard lock(mutex_);
  return send(peer, kPut, {0, offset, value}, nullptr, 0);
}

/// A free item, or a new one; nullptr if memory is short.
template <class Item>
Item* Engine::take(std::deque<Item>& all, Item*& first_free) noexcept {
  if (Item* const item = first_free) {
    first_free = item->next_free;
    return item;
  }
  try {
    return &all.emplace_back();
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// One active message. A payload of up to kInlineBytes need not outlive the call.
Status Engine::send(int peer, MessageId id, const Header& header, const std::byte* payload, std::size_t bytes,
                    PutCount* owner) noexcept {
  if (is_cut(peer)) return Status::peer_lost;
  Operation* const operation = take(operations_, free_operation_);
  if (operation == nullptr) return Status::no_resource;
  operation->engine = this;
  operation->peer = peer;
  operation->bytes = bytes;
  operation->header = header;
  operation->hold = PutHold(owner);
  operation->header.secret = target(peer).secret;
  if (bytes != 0 && bytes <= kInlineBytes) {
    std::memcpy(operation->payload.data(), payload, bytes);
    payload = operation->payload.data();
  }
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                     UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.flags = bytes <= (is_in_memory_ ? kPieceBytes : kMessageMost) ? UCP_AM_SEND_FLAG_EAGER : 0;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.cb.send = &Engine::on_sent;
  how.user_data = operation;
  Target& to = target(peer);
  to.used = true;
  return started(*operation,
                 ucp_am_send_nbx(to.endpoint, id, &operation->header, sizeof(Header), payload, bytes, &how));
}

/// Puts the payload, a fence, and the signal as eight more bytes. The fence keeps the signal behind the payload, and a
/// partly arrived word does not equal the signal, so neither a notice nor an atomic is needed (see Put::signal).
Status Engine::put_and_signal(const Put& put) noexcept {
  if (is_cut(put.peer)) return Status::peer_lost;
  Operation* const payload = take(operations_, free_operation_);
  Operation* const signal = take(operations_, free_operation_);
  if (payload == nullptr || signal == nullptr) {
    for (Operation* const each : {payload, signal}) {
      if (each != nullptr) end(*each);
    }
    return Status::no_resource;
  }
  for (Operation* const each : {payload, signal}) {
    each->engine = this;
    each->peer = put.peer;
    each->hold = PutHold(put.owner);
  }
  payload->bytes = put.bytes;
  signal->bytes = sizeof(put.signal);
  signal->header.signal = put.signal;
  target(put.peer).used = true;
  const auto at = reinterpret_cast<std::uintptr_t>(put.source) - reinterpret_cast<std::uintptr_t>(shared_.arena);
  const Status status =
      put_bytes(*payload, put.source, put.target_offset, lies_in(at, put.bytes, shared_.registered_bytes));
  const ucs_status_t fenced = status == Status::ok ? ucp_worker_fence(worker_.get()) : UCS_OK;
  if (status != Status::ok || fenced != UCS_OK) {
    end(*signal);
    return status != Status::ok ? status : fail(put.peer, fenced, put.bytes);
  }
  return put_bytes(*signal, reinterpret_cast<const std::byte*>(&signal->header.signal), put.signal_offset, false);
}

Status Engine::put_bytes(Operation& operation, const std::byte* source, std::uint64_t offset,
                         bool is_in_arena) noexcept {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.cb.send = &Engine::on_sent;
  how.user_data = &operation;
  if (is_in_arena) {
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    how.memh = arena_memory_;
  }
  const Target& to = target(operation.peer);
  return started(operation,
                 ucp_put_nbx(to.endpoint, source, operation.bytes, to.arena_base + offset, to.key.get(), &how));
}

Status Engine::started(Operation& operation, ucs_status_ptr_t request) noexcept {
  if (UCS_PTR_IS_PTR(request)) {
    ++target(operation.peer).in_flight;
    in_flight_.fetch_add(1, std::memory_order_acq_rel);
    return Status::ok;
  }
  const ucs_status_t status = UCS_PTR_STATUS(request);
  const int peer = operation.peer;
  const std::size_t bytes = operation.bytes;
  end(operation);
  return status == UCS_OK ? Status::ok : fail(peer, status, bytes);
}

void Engine::end(Operation& operation) noexcept {
  operation.hold.let_go();
  operation.next_free = free_operation_;
  free_operation_ = &operation;
}

void Engine::on_sent(void* request, ucs_status_t status, void* data) {
  auto& operation = *static_cast<Operation*>(data);
  Engine& self = *operation.engine;
  if (status != UCS_OK) (void)self.fail(operation.peer, status, operation.bytes);
  --self.target(operation.peer).in_flight;
  self.in_flight_.fetch_sub(1, std::memory_order_acq_rel);
  self.end(operation);
  ucp_request_free(request);
}

Status Engine::fail(int peer, ucs_status_t status, std::size_t bytes) noexcept {
  try {
    const std::string text = name() + ": a write of " + std::to_string(bytes) + " bytes to rank " +
                             std::to_string(peer) + " failed: " + ucs_status_string(status);
    // What remains for a lost peer may fail in any way.
    if (is_lost_connection(status) || is_cut(peer)) {
      shared_.peers.cut(number_, peer, text);
      return Status::peer_lost;
    }
    shared_.peers.break_down(text);
  } catch (const std::exception&) {
    shared_.peers.break_down({});
  }
  return Status::transport;
}

/// Stops the engine for all peers.
void Engine::break_down(const char* what) noexcept {
  try {
    shared_.peers.break_down(name() + " " + what);
  } catch (const std::exception&) {
    shared_.peers.break_down({});
  }
}

void Engine::on_error(void* data, ucp_ep_h, ucs_status_t status) {
  const Target& to = *static_cast<Target*>(data);
  const Engine& self = *to.engine;
  try {
    self.shared_.peers.cut(
        self.number_, to.peer,
        self.name() + ": the connection to rank " + std::to_string(to.peer) + " ended: " + ucs_status_string(status));
  } catch (const std::exception&) {
    self.shared_.peers.cut(self.number_, to.peer, {});
  }
}

/// UCX drops what a handler has not taken, including a payload that has yet to be fetched.
bool Engine::is_ours(const void* header, std::size_t header_bytes) noexcept {
  if (knows(header, header_bytes, secret_)) return true;
  shared_.peers.count_stranger();
  return false;
}

ucs_status_t Engine::on_nothing(void* data, const void*, std::size_t, void*, std::size_t, const ucp_am_recv_param_t*) {
  static_cast<Engine*>(data)->shared_.peers.count_stranger();
  return UCS_OK;
}

ucs_status_t Engine::on_put(void* data, const void* header, std::size_t header_bytes, void* payload, std::size_t bytes,
                            const ucp_am_recv_param_t* how) {
  Engine& self = *static_cast<Engine*>(data);
  if (!self.is_ours(header, header_bytes)) return UCS_OK;
  const std::optional<Header> read = read_put(header, header_bytes, bytes, self.shared_.arena_bytes);
  if (!read) {
    self.break_down("got a message that no rank sends");
    return UCS_OK;
  }
  return self.take_put(*read, payload, bytes, (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0);
}

ucs_status_t Engine::on_piece(void* data, const void* header, std::size_t header_bytes, void* payload,
                              std::size_t bytes, const ucp_am_recv_param_t* how) {
  Engine& self = *static_cast<Engine*>(data);
  if (!self.is_ours(header, header_bytes)) return UCS_OK;
  const std::optional<Header> read = read_put(header, header_bytes, bytes, self.shared_.arena_bytes);
  if (!read || (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    self.break_down("got a piece of a message that no rank sends");
    return UCS_OK;
  }
  if (bytes != 0) std::memcpy(self.shared_.arena + read->target_offset, payload, bytes);
  return UCS_OK;
}

/// UCX fetches a payload that is not here yet, straight to its place.
ucs_status_t Engine::take_put(const Header& header, void* data, std::size_t bytes, bool is_here) noexcept {
  std::byte* const place = shared_.arena + header.target_offset;
  if (is_here) {
    if (bytes != 0) std::memcpy(place, data, bytes);
    publish(header);
    return UCS_OK;
  }
  Arrival* const arrival = take(arrivals_, free_arrival_);
  if (arrival == nullptr) {
    break_down("has no memory for an arrival");
    return UCS_ERR_NO_MEMORY;
  }
  arrival->engine = this;
  arrival->header = header;
  arrival->bytes = bytes;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.cb.recv_am = &Engine::on_arrived;
  how.user_data = arrival;
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_.get(), data, place, bytes, &how);
  if (!UCS_PTR_IS_PTR(request)) on_arrived(nullptr, UCS_PTR_STATUS(request), bytes, arrival);
  return UCS_INPROGRESS;
}

void Engine::on_arrived(void* request, ucs_status_t status, std::size_t, void* data) {
  auto& arrival = *static_cast<Arrival*>(data);
  Engine& self = *arrival.engine;
  // A failed one had a lost sender; the watch on the peers tells the ranks that wait for its signal.
  if (status == UCS_OK) self.publish(arrival.header);
  arrival.bytes = 0;
  arrival.next_free = self.free_arrival_;
  self.free_arrival_ = &arrival;
  if (request != nullptr) ucp_request_free(request);
}

bool Engine::is_arriving(std::uint64_t offset, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return false;  // nobody calls the worker, so none of it continues
  return std::ranges::any_of(arrivals_, [=](const Arrival& one) {
    return one.bytes != 0 && one.header.target_offset < offset + bytes && offset < one.header.target_offset + one.bytes;
  });
}

Engine::Target* Engine::sender_of(const void* header, std::size_t header_bytes) noexcept {
  if (!is_ours(header, header_bytes)) return nullptr;
  const int sender = read_sender(header, header_bytes, shared_.ranks);
  if (sender >= 0 && sender != shared_.rank) return &target(sender);
  break_down("got a question that no rank asks");
  return nullptr;
}

ucs_status_t Engine::on_ask(void* data, const void* header, std::size_t header_bytes, void*, std::size_t,
                            const ucp_am_recv_param_t*) {
  Engine& self = *static_cast<Engine*>(data);
  if (Target* const from = self.sender_of(header, header_bytes)) {
    ++from->owed;
    self.owes_answers_ = true;
  }
  return UCS_OK;
}

ucs_status_t Engine::on_answer(void* data, const void* header, std::size_t header_bytes, void*, std::size_t,
                               const ucp_am_recv_param_t*) {
  Engine& self = *static_cast<Engine*>(data);
  Target* const from = self.sender_of(header, header_bytes);
  if (from == nullptr) return UCS_OK;
  ++from->answered;
  if (from->is_doubted && from->answered == from->asked) {
    from->is_doubted = false;
    self.shared_.peers.answered(from->peer);
  }
  return UCS_OK;
}

ucs_status_t Engine::on_greeting(void* data, const void* header, std::size_t header_bytes, void*, std::size_t,
                                 const ucp_am_recv_param_t*) {
  if (Target* const from = static_cast<Engine*>(data)->sender_of(header, header_bytes)) from->greeted = true;
  return UCS_OK;
}

ucs_status_t Engine::on_farewell(void* data, const void* header, std::size_t header_bytes, void*, std::size_t,
                                 const ucp_am_recv_param_t*) {
  if (Target* const from = static_cast<Engine*>(data)->sender_of(header, header_bytes)) from->left = true;
  return UCS_OK;
}

/// With a payload: before the first message that does not fit into the shortest form of a packet, UCX asks the peer for
/// its end of the connection, and the answer needs the peer's progress().
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

/// Operations to a lost peer need not complete, and nobody waits for them.
void Engine::let_go_of_lost() noexcept {
  const std::uint32_t changes = shared_.peers.changes();
  if (changes == seen_changes_) return;
  seen_changes_ = changes;
  for (Operation& operation : operations_) {
    if (is_cut(operation.peer)) operation.hold.let_go();
  }
  shared_.sleepers.took();
}

bool Engine::progress() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  if (is_closed_) return false;
  let_go_of_lost();
  constexpr int kRoundsMost = 16;
  int round = 0;
  while (round < kRoundsMost && ucp_worker_progress(worker_.get()) != 0) ++round;
  if (round > 0) shared_.sleepers.took();
  if (owes_answers_) give_answers();
  return round > 0 || owes_answers_;
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
