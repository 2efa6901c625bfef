// SPDX-License-Identifier: Apache-2.0
// As little as libfabric lets one do for a put with remote completion data.
#include "perf/transports/bare_libfabric.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "perf/common/failure.hpp"
#include "perf/transports/put_pair.hpp"
#include "transports/libfabric/fabric.hpp"
#include "transports/libfabric/providers.hpp"

namespace torii::perf {
namespace {

using libfabric::check;

constexpr std::size_t kReceives = 512;
/// An answer can be here before the completion of what it answers has been read.
constexpr std::size_t kContextsLeast = 64;

/// What a rank has to know of the other.
struct Card {
  std::uint64_t base;
  std::uint64_t key;
  std::array<std::byte, 256> name;
};

[[noreturn]] void fail(const char* what, std::int64_t code) {
  throw Failure(kNotPossible, std::string("bare libfabric: ") + what + ": " + libfabric::code_text(code));
}

}  // namespace

BareLibfabricLoop::BareLibfabricLoop(Bootstrap& bootstrap, const std::string& provider,
                                     const std::vector<std::string>& sources, std::byte* memory, std::size_t bytes)
    : PutLoop(memory), ways_(sources.size()) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    open(ways_[i], *libfabric::find_devices({}, provider, sources[i])[0], bytes);
  }
  for (Way& way : ways_) connect(bootstrap, way);
}

BareLibfabricLoop::~BareLibfabricLoop() {
  for (Way& way : ways_) {
    if ((way.info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) way.region.reset();
    way.end.reset();
    way.region.reset();
  }
}

void BareLibfabricLoop::begin(const SlotLayout& layout) {
  PutLoop::begin(layout);
  contexts_.assign(std::max(kContextsLeast, layout.slots), {});
  arrived_.assign(layout.slots, 0);
}

void BareLibfabricLoop::open(Way& way, const fi_info& info, std::size_t bytes) {
  way.info.reset(fi_dupinfo(&info));
  fid_fabric* fabric = nullptr;
  check(fi_fabric(way.info->fabric_attr, &fabric, nullptr), "opening a fabric");
  way.fabric.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, way.info.get(), &domain, nullptr), "opening a device");
  way.domain.reset(domain);
  fi_cq_attr queue_wanted{};
  queue_wanted.size = 8192;
  queue_wanted.format = FI_CQ_FORMAT_DATA;
  fid_cq* queue = nullptr;
  check(fi_cq_open(domain, &queue_wanted, &queue, nullptr), "opening a completion queue");
  way.queue.reset(queue);
  fi_av_attr table{};
  table.type = way.info->domain_attr->av_type;
  fid_av* addresses = nullptr;
  check(fi_av_open(domain, &table, &addresses, nullptr), "opening an address vector");
  way.addresses.reset(addresses);
  fid_ep* end = nullptr;
  check(fi_endpoint(domain, way.info.get(), &end, nullptr), "opening an endpoint");
  way.end.reset(end);
  check(fi_ep_bind(end, &queue->fid, FI_TRANSMIT | FI_RECV), "binding the completion queue");
  check(fi_ep_bind(end, &addresses->fid, 0), "binding the address vector");
  check(fi_enable(end), "enabling the endpoint");
  fid_mr* region = nullptr;
  check(fi_mr_reg(domain, memory(), bytes, FI_WRITE | FI_REMOTE_WRITE, 0, 1, 0, &region, nullptr),
        "registering the slots");
  way.region.reset(region);
  if ((way.info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    check(fi_mr_bind(region, &end->fid, 0), "binding the slots");
    check(fi_mr_enable(region), "enabling the slots");
  }
  way.descriptor = fi_mr_desc(region);
  // As the engines: over ofi_rxm an injected write that is queued when its connection breaks ends the process.
  const bool may_inject = std::string_view(way.info->fabric_attr->prov_name).find("ofi_rxm") == std::string_view::npos;
  way.inject_bytes = may_inject ? way.info->tx_attr->inject_size : 0;
  if ((way.info->mode & FI_RX_CQ_DATA) == 0) return;
  way.receives.resize(std::min(kReceives, way.info->rx_attr->size));
  for (fi_context2& receive : way.receives) post_receive(way, receive);
}

void BareLibfabricLoop::connect(Bootstrap& bootstrap, Way& way) {
  Card mine{};
  const bool is_virtual = (way.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  mine.base = is_virtual ? reinterpret_cast<std::uintptr_t>(memory()) : 0;
  mine.key = fi_mr_key(way.region.get());
  std::size_t bytes = mine.name.size();
  check(fi_getname(&way.end->fid, mine.name.data(), &bytes), "asking for the own address");
  const Card peer = gather_values(bootstrap, mine)[static_cast<std::size_t>(1 - bootstrap.rank())];
  way.peer_base = peer.base;
  way.peer_key = peer.key;
  if (fi_av_insert(way.addresses.get(), peer.name.data(), 1, &way.peer, 0, nullptr) != 1) {
    throw Error(Status::transport, "libfabric: the peer's address is not understood");
  }
}

void BareLibfabricLoop::post_receive(Way& way, fi_context2& receive) {
  const ssize_t code = fi_recv(way.end.get(), memory(), 0, way.descriptor, FI_ADDR_UNSPEC, &receive);
  if (code != 0) fail("posting a receive", code);
}

std::byte* BareLibfabricLoop::incoming(std::size_t slot, std::size_t) noexcept {
  return memory() + layout().incoming_offset(slot) + 64;
}

void BareLibfabricLoop::put_message(std::uint64_t number, std::size_t bytes) {
  Way& way = ways_[number % ways_.size()];
  const std::byte* const source = memory() + layout().outgoing_offset(number) + 64;
  const std::uint64_t address = way.peer_base + layout().incoming_offset(number) + 64;
  const std::uint64_t data = number & UINT32_MAX;
  const bool injects = bytes <= way.inject_bytes;
  ssize_t code = 0;
  do {
    code = injects ? fi_inject_writedata(way.end.get(), source, bytes, data, way.peer, address, way.peer_key)
                   : fi_writedata(way.end.get(), source, bytes, way.descriptor, data, way.peer, address, way.peer_key,
                                  &contexts_[number % contexts_.size()]);
    if (code == -FI_EAGAIN) poll(way);
  } while (code == -FI_EAGAIN);
  if (code != 0) fail("a write", code);
  if (!injects) ++way.in_flight;
}

void BareLibfabricLoop::poll(Way& way) {
  std::array<fi_cq_data_entry, 16> entries;
  const ssize_t got = fi_cq_read(way.queue.get(), entries.data(), entries.size());
  if (got == -FI_EAGAIN) return;
  if (got < 0) {
    fi_cq_err_entry error{};
    if (got == -FI_EAVAIL) (void)fi_cq_readerr(way.queue.get(), &error, 0);
    fail("a completion", error.err != 0 ? error.err : got);
  }
  for (ssize_t i = 0; i < got; ++i) {
    const fi_cq_data_entry& entry = entries[static_cast<std::size_t>(i)];
    if ((entry.flags & FI_REMOTE_CQ_DATA) == 0) {
      // Providers may report injected writes too.
      const auto* const context = static_cast<const fi_context2*>(entry.op_context);
      if (context >= contexts_.data() && context < contexts_.data() + contexts_.size()) --way.in_flight;
      continue;
    }
    arrived_[entry.data % layout().slots] = static_cast<std::uint32_t>(entry.data);
    if (!way.receives.empty()) post_receive(way, *static_cast<fi_context2*>(entry.op_context));
  }
}

void BareLibfabricLoop::poll() {
  for (Way& way : ways_) poll(way);
}

bool BareLibfabricLoop::has_come(std::uint64_t number, std::size_t) {
  poll();
  return arrived_[number % layout().slots] == static_cast<std::uint32_t>(number);
}

bool BareLibfabricLoop::is_drained() {
  poll();
  return std::ranges::all_of(ways_, [](const Way& way) { return way.in_flight == 0; });
}

PutPair open_libfabric_pair(Bootstrap& bootstrap, const transports::EngineOptions& options, std::byte* bare_memory) {
  libfabric::Options wanted;
  static_cast<transports::EngineOptions&>(wanted) = options;
  auto fabric = std::make_unique<libfabric::Fabric>(bootstrap, wanted);
  PutPair pair;
  pair.provider = fabric->provider();
  pair.own = std::make_unique<TransportLoop>(*fabric, options.arena);
  pair.bare = std::make_unique<BareLibfabricLoop>(bootstrap, pair.provider, fabric->sources(), bare_memory,
                                                  options.arena_bytes);
  pair.transport = std::move(fabric);
  return pair;
}

}  // namespace torii::perf
