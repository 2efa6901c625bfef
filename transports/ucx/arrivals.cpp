// SPDX-License-Identifier: Apache-2.0
// Handles the messages that carry puts.
#include "transports/ucx/arrivals.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace torii::ucx {

Arrivals::Arrivals(Worker& worker, const Shared& shared) : worker_(worker), shared_(shared) {
  worker.listen(kPut, &Arrivals::on_put, this);
  worker.listen(kPiece, &Arrivals::on_piece, this);
}

ucs_status_t Arrivals::on_put(void* arrivals, const void* header, std::size_t header_bytes, void* data,
                              std::size_t bytes, const ucp_am_recv_param_t* how) {
  Arrivals& self = *static_cast<Arrivals*>(arrivals);
  if (!self.worker_.is_ours(header, header_bytes)) return UCS_OK;
  const std::optional<Header> read = read_put(header, header_bytes, bytes, self.shared_.arena_bytes);
  if (!read) {
    self.worker_.failures().break_down("got a message that no rank sends");
    return UCS_OK;
  }
  return self.take(*read, data, bytes, (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0);
}

ucs_status_t Arrivals::on_piece(void* arrivals, const void* header, std::size_t header_bytes, void* data,
                                std::size_t bytes, const ucp_am_recv_param_t* how) {
  Arrivals& self = *static_cast<Arrivals*>(arrivals);
  if (!self.worker_.is_ours(header, header_bytes)) return UCS_OK;
  const std::optional<Header> read = read_put(header, header_bytes, bytes, self.shared_.arena_bytes);
  if (!read || (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    self.worker_.failures().break_down("got a piece of a message that no rank sends");
    return UCS_OK;
  }
  if (bytes != 0) std::memcpy(self.shared_.arena + read->target_offset, data, bytes);
  return UCS_OK;
}

/// If the payload is not here yet, UCX fetches it directly to its place.
ucs_status_t Arrivals::take(const Header& header, void* data, std::size_t bytes, bool is_here) noexcept {
  std::byte* const place = shared_.arena + header.target_offset;
  if (is_here) {
    if (bytes != 0) std::memcpy(place, data, bytes);
    publish(header);
    return UCS_OK;
  }
  Arrival* const arrival = fetched_.take();
  if (arrival == nullptr) {
    worker_.failures().break_down("has no memory for an arrival");
    return UCS_ERR_NO_MEMORY;
  }
  arrival->arrivals = this;
  arrival->header = header;
  arrival->bytes = bytes;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.cb.recv_am = &Arrivals::on_arrived;
  how.user_data = arrival;
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_.get(), data, place, bytes, &how);
  if (!UCS_PTR_IS_PTR(request)) on_arrived(nullptr, UCS_PTR_STATUS(request), bytes, arrival);
  return UCS_INPROGRESS;
}

void Arrivals::on_arrived(void* request, ucs_status_t status, std::size_t, void* data) {
  auto& arrival = *static_cast<Arrival*>(data);
  Arrivals& self = *arrival.arrivals;
  // A failed arrival had a lost sender, which the states of the peers record.
  if (status == UCS_OK) self.publish(arrival.header);
  arrival.bytes = 0;
  self.fetched_.give_back(arrival);
  if (request != nullptr) ucp_request_free(request);
}

bool Arrivals::are_any() const noexcept {
  return std::ranges::any_of(fetched_.all(), [](const Arrival& one) { return one.bytes != 0; });
}

bool Arrivals::is_arriving(std::uint64_t offset, std::size_t bytes) const noexcept {
  return std::ranges::any_of(fetched_.all(), [=](const Arrival& one) {
    return one.bytes != 0 && one.header.target_offset < offset + bytes && offset < one.header.target_offset + one.bytes;
  });
}

}  // namespace torii::ucx
