// SPDX-License-Identifier: Apache-2.0
// As little as UCX lets one do for a put that its target can wait for.
#include "perf/transports/bare_ucx.hpp"

#include <algorithm>
#include <optional>

#include "perf/common/failure.hpp"
#include "perf/common/meeting.hpp"
#include "perf/transports/put_pair.hpp"
#include "runtime/fabric/words.hpp"
#include "transports/network/rails.hpp"
#include "transports/ucx/message.hpp"
#include "transports/ucx/transport.hpp"

namespace torii::perf {
namespace {

using ucx::check;

[[noreturn]] void fail(const char* what, ucs_status_t status) {
  throw Failure(kNotPossible, std::string("bare UCX: ") + what + ": " + ucs_status_string(status));
}

}  // namespace

BareUcxLoop::BareUcxLoop(Bootstrap& bootstrap, const std::vector<ucx::Selection>& selections, std::byte* memory,
                         std::size_t bytes)
    : PutLoop(memory), ways_(selections.size()) {
  for (std::size_t i = 0; i < selections.size(); ++i) open(ways_[i], selections[i], bytes);
  for (Way& way : ways_) connect(bootstrap, way);
}

BareUcxLoop::~BareUcxLoop() {
  leave();
  for (Way& way : ways_) {
    way.key.reset();
    (void)ucp_mem_unmap(way.context.get(), way.region);
    way.worker.reset();  // closes what is connected
  }
}

/// Puts have left, but UCX still waits for the peer to confirm them, and says so on stdout when a worker goes before
/// that. The peer comes here at the same time, and leaves it as soon.
void BareUcxLoop::leave() noexcept {
  constexpr std::int64_t kLeastNs = 50'000'000;
  constexpr std::int64_t kMostNs = 1'000'000'000;
  ucp_request_param_t plain{};
  std::vector<ucs_status_ptr_t> flushes;
  for (Way& way : ways_) flushes.push_back(ucp_worker_flush_nbx(way.worker.get(), &plain));
  const auto is_open = [](ucs_status_ptr_t flush) {
    return UCS_PTR_IS_PTR(flush) && ucp_request_check_status(flush) == UCS_INPROGRESS;
  };
  const std::int64_t begun = now_ns();
  for (std::int64_t passed = 0; passed < kMostNs; passed = now_ns() - begun) {
    if (passed > kLeastNs && std::ranges::none_of(flushes, is_open)) break;
    for (Way& way : ways_) ucp_worker_progress(way.worker.get());
  }
  for (const ucs_status_ptr_t flush : flushes) {
    if (UCS_PTR_IS_PTR(flush)) ucp_request_free(flush);
  }
}

void BareUcxLoop::open(Way& way, const ucx::Selection& selection, std::size_t bytes) {
  ucp_config_t* read = nullptr;
  check(ucp_config_read(nullptr, nullptr, &read), "reading its configuration");
  const ucx::Owner<ucp_config_t*, ucp_config_release> config(read);
  check(ucp_config_modify(read, "TLS", selection.transports.c_str()), "choosing transports");
  if (!selection.devices.empty()) {
    check(ucp_config_modify(read, "NET_DEVICES", selection.devices.c_str()), "choosing devices");
  }
  ucp_params_t wanted{};
  wanted.field_mask = UCP_PARAM_FIELD_FEATURES;
  wanted.features = UCP_FEATURE_RMA;
  ucp_context_h context = nullptr;
  check(ucp_init(&wanted, read, &context), "opening a context");
  way.context.reset(context);
  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h worker = nullptr;
  check(ucp_worker_create(context, &how, &worker), "opening a worker");
  way.worker.reset(worker);
  ucp_mem_map_params_t what{};
  what.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  what.address = memory();
  what.length = bytes;
  what.memory_type = UCS_MEMORY_TYPE_HOST;
  check(ucp_mem_map(context, &what, &way.region), "registering the slots");
}

void BareUcxLoop::connect(Bootstrap& bootstrap, Way& way) {
  ucp_address_t* address = nullptr;
  std::size_t address_bytes = 0;
  check(ucp_worker_get_address(way.worker.get(), &address, &address_bytes), "asking for the worker's address");
  void* key = nullptr;
  std::size_t key_bytes = 0;
  check(ucp_rkey_pack(way.context.get(), way.region, &key, &key_bytes), "packing the key of the slots");
  const std::string mine = ucx::write_card({.key_base = reinterpret_cast<std::uintptr_t>(memory()),
                                            .address = {reinterpret_cast<const char*>(address), address_bytes},
                                            .key = {static_cast<const char*>(key), key_bytes},
                                            .row = {}});
  ucp_rkey_buffer_release(key);
  ucp_worker_release_address(way.worker.get(), address);
  const std::vector<std::string> both = gather_texts(bootstrap, mine);
  const std::optional<ucx::Card> card = ucx::read_card(both[static_cast<std::size_t>(1 - bootstrap.rank())]);
  if (!card) throw Error(Status::transport, "UCX: the peer's address is not whole");
  ucp_ep_params_t how{};
  how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  how.address = reinterpret_cast<const ucp_address_t*>(card->address.data());
  check(ucp_ep_create(way.worker.get(), &how, &way.end), "connecting");
  ucp_rkey_h unpacked = nullptr;
  check(ucp_ep_rkey_unpack(way.end, card->key.data(), &unpacked), "unpacking the peer's key");
  way.key.reset(unpacked);
  way.peer_base = card->key_base;
}

std::byte* BareUcxLoop::incoming(std::size_t slot, std::size_t) noexcept {
  return memory() + layout().incoming_offset(slot) + kLineBytes;
}

/// The number goes from the line before the payload to the line before the payload.
void BareUcxLoop::put_message(std::uint64_t number, std::size_t bytes) {
  Way& way = ways_[number % ways_.size()];
  const std::size_t from = layout().outgoing_offset(number);
  const std::size_t to = layout().incoming_offset(number);
  store_word(memory() + from, number);
  put_bytes(way, from + kLineBytes, to + kLineBytes, bytes);
  if (const ucs_status_t status = ucp_worker_fence(way.worker.get()); status != UCS_OK) fail("a fence", status);
  put_bytes(way, from, to, sizeof(number));
}

void BareUcxLoop::put_bytes(Way& way, std::size_t source_offset, std::size_t target_offset, std::size_t bytes) {
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_MEMH;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  how.memh = way.region;
  how.cb.send = &BareUcxLoop::on_put;
  how.user_data = &way;
  const ucs_status_ptr_t request =
      ucp_put_nbx(way.end, memory() + source_offset, bytes, way.peer_base + target_offset, way.key.get(), &how);
  if (UCS_PTR_IS_ERR(request)) fail("a put", UCS_PTR_STATUS(request));
  if (request != nullptr) ++way.in_flight;
}

void BareUcxLoop::on_put(void* request, ucs_status_t status, void* data) {
  Way& way = *static_cast<Way*>(data);
  --way.in_flight;
  if (status != UCS_OK) way.failed = status;
  ucp_request_free(request);
}

void BareUcxLoop::poll() {
  for (Way& way : ways_) {
    ucp_worker_progress(way.worker.get());
    if (way.failed != UCS_OK) fail("a put", way.failed);
  }
}

bool BareUcxLoop::has_come(std::uint64_t number, std::size_t) {
  poll();
  return load_word(memory() + layout().incoming_offset(number)) == number;
}

bool BareUcxLoop::is_drained() {
  poll();
  return std::ranges::all_of(ways_, [](const Way& way) { return way.in_flight == 0; });
}

PutPair open_ucx_pair(Bootstrap& bootstrap, const transports::EngineOptions& options, std::byte* bare_memory) {
  ucx::Options wanted;
  static_cast<transports::EngineOptions&>(wanted) = options;
  const std::vector<std::string> sources = transports::agree_on_sources(bootstrap, options);
  wanted.provider = ucx::choose_provider(bootstrap, options.provider, sources);
  PutPair pair;
  pair.provider = wanted.provider;
  pair.transport = std::make_unique<ucx::UcxTransport>(bootstrap, wanted);
  pair.own = std::make_unique<TransportLoop>(*pair.transport, options.arena);
  const std::vector<ucx::Selection> found = ucx::find_selections(wanted.provider, sources);
  std::vector<ucx::Selection> ways;
  for (int engine = 0; engine < options.engines; ++engine) {
    ways.push_back(found[static_cast<std::size_t>(engine) % found.size()]);
  }
  pair.bare = std::make_unique<BareUcxLoop>(bootstrap, ways, bare_memory, options.arena_bytes);
  return pair;
}

}  // namespace torii::perf
