// SPDX-License-Identifier: Apache-2.0
// Handles the messages that arrive.
#include <algorithm>
#include <cstring>
#include <optional>

#include "transports/ucx/engine.hpp"

namespace torii::ucx {

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

/// If the payload is not here yet, UCX fetches it directly to its place.
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
  // A failed arrival had a lost sender, which the states of the peers record.
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

}  // namespace torii::ucx
