// SPDX-License-Identifier: Apache-2.0
// The data path of an engine: from put() to active messages or ucp_put, and their end.
#include "transports/ucx/engine.hpp"

#include <cstring>

#include "runtime/base/tuned_constants.hpp"
#include "transports/network/failures.hpp"

namespace torii::ucx {
namespace {

/// Through shared memory UCX gathers the packets of a longer message before it delivers it, which is one more copy.
/// Payloads travel there as messages of one packet each, which arrive in order, and each is stored at once.
constexpr auto kPieceBytes = tuned<std::size_t>("sending.ucx_piece_bytes");

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
  while (device_->is_in_memory() && bytes > kPieceBytes) {
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
  how.flags = bytes <= (device_->is_in_memory() ? kPieceBytes : kMessageMost) ? UCP_AM_SEND_FLAG_EAGER : 0;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.cb.send = &Engine::on_sent;
  how.user_data = operation;
  Target& to = target(peer);
  to.used = true;
  return started(*operation,
                 ucp_am_send_nbx(to.endpoint, id, &operation->header, sizeof(Header), payload, bytes, &how));
}

/// Puts the payload, a fence, and the signal as eight more bytes. The fence keeps the signal behind the payload, and a
/// partly arrived word does not equal the signal. So neither a notice nor an atomic is needed (see Put::signal).
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
    how.memh = device_->arena();
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
  const std::string text = transports::text_or_none(
      [&] { return transports::failed_write(name(), bytes, peer, ucs_status_string(status)); });
  // The remaining operations to a lost peer may fail in any way.
  if (is_lost_connection(status) || is_cut(peer)) {
    shared_.peers.cut(number_, peer, text);
    return Status::peer_lost;
  }
  shared_.peers.break_down(text);
  return Status::transport;
}

/// Stops the engine for all peers.
void Engine::break_down(const char* what) noexcept {
  shared_.peers.break_down(transports::text_or_none([&] { return name() + " " + what; }));
}

void Engine::on_error(void* data, ucp_ep_h, ucs_status_t status) {
  const Target& to = *static_cast<Target*>(data);
  const Engine& self = *to.engine;
  self.shared_.peers.cut(self.number_, to.peer, transports::text_or_none([&] {
                           return self.name() + ": the connection to rank " + std::to_string(to.peer) +
                                  " ended: " + ucs_status_string(status);
                         }));
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

}  // namespace torii::ucx
