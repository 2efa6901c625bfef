// SPDX-License-Identifier: Apache-2.0
// Opens libfabric's objects in their order.
#include "transports/libfabric/opened.hpp"

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

namespace torii::libfabric {
namespace {

constexpr std::size_t kQueueEntries = 8192;

std::string name_of(const fi_info& info) {
  return std::string(info.fabric_attr->prov_name) + " on " + info.domain_attr->name;
}

/// Too little memory and too few files are the user's to mend: another provider, which needs less, would only hide it.
void check_opening(int code, const fi_info& info, const std::string& step, const std::string& hint = "") {
  if (code == 0) return;
  const std::string text = "libfabric: " + step + " of " + name_of(info) + ": " + code_text(code);
  switch (-code) {
    case FI_ENOMEM:
    case FI_EAGAIN:
      throw Error(Status::no_resource, text + " (is the limit of locked memory low, ulimit -l?)");
    case EMFILE:
    case ENFILE:
      throw Error(Status::no_resource, text + " (raise the limit of open files, ulimit -n)");
    default:
      throw Error(Status::unsupported, text + hint);
  }
}

Fid<fid_cq> open_queue(const fi_info& info, fid_domain& domain, bool sleeps) {
  fi_cq_attr attributes{};
  attributes.size = kQueueEntries;
  attributes.format = FI_CQ_FORMAT_DATA;
  attributes.wait_obj = sleeps ? FI_WAIT_FD : FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  int code = fi_cq_open(&domain, &attributes, &queue, nullptr);
  if (sleeps && (code == -FI_ENOSYS || code == -FI_EINVAL || code == -FI_EOPNOTSUPP)) {
    attributes.wait_obj = FI_WAIT_NONE;
    code = fi_cq_open(&domain, &attributes, &queue, nullptr);
  }
  check_opening(code, info, "opening a completion queue");
  return Fid<fid_cq>(queue);
}

}  // namespace

Opened open_endpoint(const Api& api, fi_info& info, int ranks, bool sleeps) {
  Opened opened;
  fid_fabric* fabric = nullptr;
  check_opening(api.open_fabric(info.fabric_attr, &fabric, nullptr), info, "opening the fabric");
  opened.fabric.reset(fabric);
  fid_domain* domain = nullptr;
  check_opening(fi_domain(fabric, &info, &domain, nullptr), info, "opening the device");
  opened.domain.reset(domain);
  // net (libfabric 1.17) writes to a queue's descriptor with every completion, and fi_trywait() reads nothing: after
  // the first completion the descriptor is readable for ever. The descriptor of a queue to which nothing is bound
  // reports the sockets alone.
  const bool is_net = std::string_view(info.fabric_attr->prov_name) == "net";
  opened.queue = open_queue(info, *domain, sleeps && !is_net);
  if (sleeps && is_net) opened.watch = open_queue(info, *domain, true);
  fi_av_attr table{};
  table.type = info.domain_attr->av_type;
  table.count = static_cast<std::size_t>(ranks);
  fid_av* addresses = nullptr;
  check_opening(fi_av_open(domain, &table, &addresses, nullptr), info, "opening an address vector");
  opened.addresses.reset(addresses);
  fid_ep* endpoint = nullptr;
  check_opening(fi_endpoint(domain, &info, &endpoint, nullptr), info, "opening an endpoint");
  opened.endpoint.reset(endpoint);
  check_opening(fi_ep_bind(endpoint, &opened.queue->fid, FI_TRANSMIT | FI_RECV), info, "binding the completion queue");
  check_opening(fi_ep_bind(endpoint, &addresses->fid, 0), info, "binding the address vector");
  check_opening(
      fi_enable(endpoint), info, "enabling an endpoint",
      " (its queues may be too short for " + std::to_string(ranks) + " ranks; FI_UNIVERSE_SIZE sets for how many)");
  return opened;
}

}  // namespace torii::libfabric
