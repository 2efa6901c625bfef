// SPDX-License-Identifier: Apache-2.0
// From a put to active messages or ucp_put, and their end.
#include "transports/ucx/writes.hpp"

#include <cstring>
#include <new>

#include "runtime/base/tuned_constants.hpp"

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

Writes::Writes(Worker& worker, const Shared& shared)
    : worker_(worker), device_(worker.device()), shared_(shared), peers_(static_cast<std::size_t>(shared.ranks)) {}

Status Writes::put(const Put& put) noexcept {
  use(put.peer);
  const bool has_payload = put.bytes != 0 && put.source != nullptr;
  if (has_payload && device_.manner().puts && put.bytes > kMessageMost) {
    const Connection& to = worker_.connection(put.peer);
    const Connection::Place* const payload_place = to.find(put.target_offset, put.bytes);
    const Connection::Place* const signal_place = to.find(put.signal_offset, sizeof(put.signal));
    if (payload_place != nullptr && signal_place != nullptr) return put_and_signal(put, *payload_place, *signal_place);
    read_table(put.peer);
  }
  Header header = {put.target_offset, put.signal_offset, put.signal};
  const std::byte* source = put.source;
  std::size_t bytes = has_payload ? put.bytes : 0;
  while (device_.is_in_memory() && bytes > kPieceBytes) {
    const Status status = send(put.peer, kPiece, header, source, kPieceBytes, put.owner);
    if (status != Status::ok) return status;
    header.target_offset += kPieceBytes;
    source += kPieceBytes;
    bytes -= kPieceBytes;
  }
  return send(put.peer, kPut, header, source, bytes, put.owner);
}

/// nullptr if memory is short.
Writes::Operation* Writes::take(int peer, std::size_t bytes, PutCount* owner) noexcept {
  Operation* const operation = operations_.take();
  if (operation == nullptr) return nullptr;
  operation->writes = this;
  operation->peer = peer;
  operation->bytes = bytes;
  operation->hold = PutHold(owner);
  return operation;
}

Status Writes::send(int peer, MessageId id, const Header& header, const std::byte* payload, std::size_t bytes,
                    PutCount* owner) noexcept {
  if (is_cut(peer)) return Status::peer_lost;
  Operation* const operation = take(peer, bytes, owner);
  if (operation == nullptr) return Status::no_resource;
  const Connection& to = worker_.connection(peer);
  operation->header = header;
  operation->header.secret = to.secret;
  if (bytes != 0 && bytes <= kInlineBytes) {
    std::memcpy(operation->payload.data(), payload, bytes);
    payload = operation->payload.data();
  }
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                     UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.flags = bytes <= (device_.is_in_memory() ? kPieceBytes : kMessageMost) ? UCP_AM_SEND_FLAG_EAGER : 0;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.cb.send = &Writes::on_sent;
  how.user_data = operation;
  return started(*operation,
                 ucp_am_send_nbx(to.endpoint, id, &operation->header, sizeof(Header), payload, bytes, &how));
}

/// The peer has told an offset in memory that it has registered since. Until the table is here, payloads travel in
/// messages.
void Writes::read_table(int peer) noexcept {
  std::unique_ptr<ExtentTable>& table = of(peer).table;
  if (table != nullptr || is_cut(peer)) return;
  table.reset(new (std::nothrow) ExtentTable);
  Operation* const operation = table == nullptr ? nullptr : take(peer, sizeof(ExtentTable), nullptr);
  if (operation == nullptr) return table.reset();
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.cb.send = &Writes::on_read;
  how.user_data = operation;
  const Connection& to = worker_.connection(peer);
  const ucs_status_ptr_t request =
      ucp_get_nbx(to.endpoint, table.get(), sizeof(ExtentTable), to.table_address, to.table_key.get(), &how);
  if (started(*operation, request) == Status::ok && UCS_PTR_IS_PTR(request)) return;
  if (request == nullptr) worker_.learn_places(peer, *table);
  table.reset();
}

void Writes::on_read(void* request, ucs_status_t status, void* data) {
  const auto& operation = *static_cast<Operation*>(data);
  Writes& self = *operation.writes;
  Peer& from = self.of(operation.peer);
  if (status == UCS_OK) self.worker_.learn_places(operation.peer, *from.table);
  from.table.reset();
  on_sent(request, status, data);
}

/// Puts the payload, a fence, and the signal as eight more bytes. The fence keeps the signal behind the payload, and a
/// partly arrived word does not equal the signal. So neither a notice nor an atomic is needed (see Put::signal).
Status Writes::put_and_signal(const Put& put, const Connection::Place& payload_place,
                              const Connection::Place& signal_place) noexcept {
  if (is_cut(put.peer)) return Status::peer_lost;
  Operation* const payload = take(put.peer, put.bytes, put.owner);
  Operation* const signal = take(put.peer, sizeof(put.signal), put.owner);
  if (payload == nullptr || signal == nullptr) {
    for (Operation* const each : {payload, signal}) {
      if (each != nullptr) end(*each, Status::no_resource);
    }
    return Status::no_resource;
  }
  signal->header.signal = put.signal;
  const auto at = reinterpret_cast<std::uintptr_t>(put.source) - reinterpret_cast<std::uintptr_t>(shared_.arena);
  const Device::Regions::Region* const source = device_.regions().find(at, put.bytes);
  const Status status = put_bytes(*payload, put.source, payload_place, put.target_offset,
                                  source == nullptr ? nullptr : source->memory.get());
  const ucs_status_t fenced = status == Status::ok ? ucp_worker_fence(worker_.get()) : UCS_OK;
  if (status != Status::ok || fenced != UCS_OK) {
    const Status failure = status != Status::ok ? status : fail(put.peer, fenced, put.bytes);
    end(*signal, failure);
    return failure;
  }
  return put_bytes(*signal, reinterpret_cast<const std::byte*>(&signal->header.signal), signal_place, put.signal_offset,
                   nullptr);
}

/// `memory`: the registration of the source; nullptr: UCX finds it out.
Status Writes::put_bytes(Operation& operation, const std::byte* source, const Connection::Place& place,
                         std::uint64_t offset, ucp_mem_h memory) noexcept {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.cb.send = &Writes::on_sent;
  how.user_data = &operation;
  if (memory != nullptr) {
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    how.memh = memory;
  }
  const Connection& to = worker_.connection(operation.peer);
  return started(operation,
                 ucp_put_nbx(to.endpoint, source, operation.bytes, place.base + offset, place.key.get(), &how));
}

void Writes::flush(int peer) noexcept {
  Operation* const operation = take(peer, 0, nullptr);
  if (operation == nullptr) return;  // as if the peer did not confirm
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = &Writes::on_sent;
  how.user_data = operation;
  (void)started(*operation, ucp_ep_flush_nbx(worker_.connection(peer).endpoint, &how));
}

Status Writes::started(Operation& operation, ucs_status_ptr_t request) noexcept {
  if (UCS_PTR_IS_PTR(request)) {
    ++of(operation.peer).in_flight;
    in_flight_.fetch_add(1, std::memory_order_acq_rel);
    return Status::ok;
  }
  const ucs_status_t status = UCS_PTR_STATUS(request);
  const int peer = operation.peer;
  const std::size_t bytes = operation.bytes;
  const Status result = status == UCS_OK ? Status::ok : fail(peer, status, bytes);
  end(operation, result);
  return result;
}

void Writes::end(Operation& operation, Status status) noexcept {
  if (status != Status::ok) operation.hold.fail(status);
  operation.hold.let_go();
  operations_.give_back(operation);
}

void Writes::on_sent(void* request, ucs_status_t status, void* data) {
  auto& operation = *static_cast<Operation*>(data);
  Writes& self = *operation.writes;
  const Status result = status == UCS_OK ? Status::ok : self.fail(operation.peer, status, operation.bytes);
  --self.of(operation.peer).in_flight;
  self.in_flight_.fetch_sub(1, std::memory_order_acq_rel);
  self.end(operation, result);
  ucp_request_free(request);
}

Status Writes::fail(int peer, ucs_status_t status, std::size_t bytes) const noexcept {
  return worker_.failures().fail_write(peer, bytes, ucs_status_string(status), is_lost_connection(status));
}

void Writes::let_go_of_lost() noexcept {
  for (Operation& operation : operations_.all()) {
    if (worker_.failures().has_lost(operation.peer)) operation.hold.fail(Status::peer_lost);
  }
}

void Writes::end() noexcept {
  for (Operation& operation : operations_.all()) operation.hold.fail(Status::transport);
}

bool Writes::is_quiet() const noexcept {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    if (peers_[peer].in_flight != 0 && !is_cut(static_cast<int>(peer))) return false;
  }
  return true;
}

}  // namespace torii::ucx
