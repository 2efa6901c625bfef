// SPDX-License-Identifier: Apache-2.0
// Opens and closes an endpoint.
#include "transports/libfabric/endpoint.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace torii::libfabric {
namespace {

constexpr std::size_t kQueueEntries = 8192;

Fid<fid_cq> open_queue(const Device& device, bool sleeps) {
  fi_cq_attr attributes{};
  attributes.size = kQueueEntries;
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.wait_obj = sleeps ? FI_WAIT_FD : FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  int code = fi_cq_open(device.domain(), &attributes, &queue, nullptr);
  if (sleeps && (code == -FI_ENOSYS || code == -FI_EINVAL || code == -FI_EOPNOTSUPP)) {
    attributes.wait_obj = FI_WAIT_NONE;
    code = fi_cq_open(device.domain(), &attributes, &queue, nullptr);
  }
  check_opening(code, device.info(), "opening a completion queue");
  return Fid<fid_cq>(queue);
}

}  // namespace

Endpoint::Endpoint(std::shared_ptr<Device> device, int ranks, bool sleeps)
    : device_(std::move(device)), sleeps_(sleeps) {
  // net (libfabric 1.17) writes to a queue's descriptor with every completion, and fi_trywait() reads nothing: after
  // the first completion the descriptor is readable for ever. The descriptor of a queue to which nothing is bound
  // reports the sockets alone.
  const bool is_net = std::string_view(info().fabric_attr->prov_name) == "net";
  queue_ = open_queue(*device_, sleeps && !is_net);
  if (sleeps && is_net) watch_ = open_queue(*device_, true);
  fi_av_attr table{};
  table.type = info().domain_attr->av_type;
  table.count = static_cast<std::size_t>(ranks);
  fid_av* addresses = nullptr;
  check_opening(fi_av_open(device_->domain(), &table, &addresses, nullptr), info(), "opening an address vector");
  addresses_.reset(addresses);
  fid_ep* endpoint = nullptr;
  // The provider takes the description as it is, and the function wants one that it could write to.
  check_opening(fi_endpoint(device_->domain(), const_cast<fi_info*>(&info()), &endpoint, nullptr), info(),
                "opening an endpoint");
  endpoint_.reset(endpoint);
  check_opening(fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV), info(), "binding the completion queue");
  check_opening(fi_ep_bind(endpoint, &addresses->fid, 0), info(), "binding the address vector");
  check_opening(
      fi_enable(endpoint), info(), "enabling an endpoint",
      " (its queues may be too short for " + std::to_string(ranks) + " ranks; FI_UNIVERSE_SIZE sets for how many)");
}

Endpoint::~Endpoint() {
  if (!is_kept_) return;
  (void)endpoint_.release();
  (void)addresses_.release();
  (void)watch_.release();
  (void)queue_.release();
}

void Endpoint::offer_descriptor() noexcept {
  int descriptor = -1;
  if (sleeps_ && fi_control(waited(), FI_GETWAIT, &descriptor) == 0) wait_descriptor_ = descriptor;
}

std::size_t Endpoint::put_name(std::span<std::byte> name) const {
  std::size_t bytes = name.size();
  check(fi_getname(&endpoint_->fid, name.data(), &bytes), "asking for the endpoint's address");
  return bytes;
}

/// Data that an idle poll leaves unread is in sockets, and the descriptor shows that they are readable.
bool Endpoint::arm() noexcept {
  if (!is_armed_) {
    fid* objects[] = {waited()};
    is_armed_ = fi_trywait(device_->fabric(), objects, 1) == 0;
  }
  return is_armed_;
}

/// ofi_rxm (libfabric 1.17) ends the process if an endpoint is closed while a write with a notice has arrived in part.
/// tcp reports an error of that write, which has no context, and ofi_rxm reads behind the context. A write whose stream
/// ends is dropped without a report. So the streams are ended first, and the provider is called until it has released
/// everything.
void Endpoint::end_streams(bool is_alone, const std::vector<SocketAddress>& peers) noexcept {
  constexpr int kRoundsMost = 100;
  for (int round = 0; round < kRoundsMost && shut_down_own_streams(is_alone, peers) != 0; ++round) {
    std::array<fi_cq_data_entry, 16> entries;
    fi_cq_err_entry error{};
    while (fi_cq_read(queue_.get(), entries.data(), entries.size()) > 0 || fi_cq_readerr(queue_.get(), &error, 0) > 0) {
    }
  }
}

int Endpoint::shut_down_own_streams(bool is_alone, const std::vector<SocketAddress>& peers) noexcept {
  if (wait_descriptor() >= 0) return shut_down_streams(wait_descriptor());
  if (!is_alone) return 0;
  try {
    SocketAddress own{};
    std::size_t bytes = own.size();
    return fi_getname(&endpoint_->fid, own.data(), &bytes) == 0 ? shut_down_streams(own, peers) : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

void Endpoint::close() noexcept {
  endpoint_.reset();
  wait_descriptor_.store(-1, std::memory_order_relaxed);
}

void Endpoint::keep() noexcept {
  is_kept_ = true;
  device_->keep();
  wait_descriptor_.store(-1, std::memory_order_relaxed);
}

}  // namespace torii::libfabric
