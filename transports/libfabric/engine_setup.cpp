// SPDX-License-Identifier: Apache-2.0
// Opens an engine: libfabric's objects in their order, and memory registered as the provider wants it.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/base/secret.hpp"
#include "transports/libfabric/engine.hpp"
#include "transports/libfabric/notice.hpp"
#include "transports/libfabric/providers.hpp"

namespace torii::libfabric {
namespace {

constexpr std::size_t kOperationsLeast = 16;
constexpr std::size_t kFloorMost = 16;
constexpr std::size_t kReceivesMost = 1024;
/// The most keys that are tried if a random key is taken; keys of some providers have one byte.
constexpr int kKeysMost = 64;

std::byte* map_own(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_resource, "cannot map " + std::to_string(bytes) + " bytes for an engine");
  }
  return static_cast<std::byte*>(memory);
}

}  // namespace

Engine::Engine(const Api& api, const fi_info& info, int number, const Shared& shared, const Options& options)
    : info_(fi_dupinfo(&info)), number_(number), shared_(shared) {
  if (info_ == nullptr) throw Error(Status::no_resource, "out of memory");
  const std::size_t pool_bytes = std::max(options.bounce_bytes, 64 * kLineBytes) + all_floors(options) * kLineBytes;
  own_bytes_ = round_up(zeros_offset() + kLineBytes + pool_bytes, 4096);
  own_memory_ = map_own(own_bytes_);
  try {
    open(api);
  } catch (...) {
    munmap(own_memory_, own_bytes_);
    throw;
  }
}

/// ofi_rxm (libfabric 1.17) ends the process if an endpoint is closed while a write with a notice has arrived in part.
/// tcp reports an error of that write, which has no context, and ofi_rxm reads behind the context. A write whose stream
/// ends is dropped without a report. So the streams are ended first, and the provider is called until it has released
/// everything.
void Engine::end_streams() noexcept {
  constexpr int kRoundsMost = 100;
  for (int round = 0; round < kRoundsMost && shut_down_own_streams() != 0; ++round) {
    std::array<fi_cq_data_entry, 16> entries;
    fi_cq_err_entry error{};
    while (fi_cq_read(opened_.queue.get(), entries.data(), entries.size()) > 0 ||
           fi_cq_readerr(opened_.queue.get(), &error, 0) > 0) {
    }
  }
}

int Engine::shut_down_own_streams() noexcept {
  if (wait_descriptor() >= 0) return shut_down_streams(wait_descriptor());
  if (!shared_.alone_in_process || !has_listener_) return 0;
  try {
    std::vector<SocketAddress> peers;
    for (std::size_t rank = 0; rank < targets_.size(); ++rank) {
      if (static_cast<int>(rank) != shared_.rank) peers.push_back(targets_[rank].address_bytes);
    }
    SocketAddress own{};
    std::size_t bytes = own.size();
    return fi_getname(&opened_.endpoint->fid, own.data(), &bytes) == 0 ? shut_down_streams(own, std::move(peers)) : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

void Engine::take_all() noexcept {
  while (!shared_.peers.is_broken() && take_completions()) {
  }
}

/// Tells each peer that has left when all that it has sent was taken. True once all peers have said the same, so that
/// nothing of them is unread or can still come. A farewell carries no notice here: all earlier notices precede it, and
/// it leaves none itself.
bool Engine::part() noexcept {
  if (!needs_parting_) return true;
  const std::lock_guard lock(mutex_);
  bool are_gone = true;
  for (std::size_t rank = 0; rank < targets_.size(); ++rank) {
    const int peer = static_cast<int>(rank);
    if (!targets_[rank].is_greeted || is_cut(peer)) continue;
    are_gone = are_gone && greeting(peer) == kGone;
    if (targets_[rank].is_told || !has_left(peer)) continue;
    take_all();
    targets_[rank].is_told = true;
    say(peer, kGone);
  }
  return are_gone;
}

/// ofi_rxm over verbs ends the process if it closes a connection of which a notice is unread (libfabric 1.17 to 2.6).
/// It closes the connection's endpoint, then takes what is unread, and posts the receive of each notice again, to the
/// endpoint that is gone. Over tcp notices use up no receives.
bool Engine::may_close() noexcept {
  if (!needs_parting_) return true;
  bool is_known = false;
  for (std::size_t rank = 0; rank < targets_.size(); ++rank) {
    const std::uint64_t said = greeting(static_cast<int>(rank));
    if (!targets_[rank].is_greeted && said == 0) continue;
    if (said != kGone || shared_.peers.is_broken()) return false;
    is_known = true;
  }
  if (is_known) take_all();
  return true;
}

void Engine::close_endpoint() noexcept {
  if (is_over_rxm_) end_streams();
  // A region bound to an endpoint is closed before it; any other region after it, so that late writes of peers still
  // find it.
  if ((info_->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    arena_region_.reset();
    own_region_.reset();
  }
  opened_.endpoint.reset();
}

/// The endpoint stays open as long as the process, with all that it needs. No memory is registered any more, so nothing
/// that a peer still sends becomes visible.
void Engine::keep_endpoint() noexcept {
  arena_region_.reset();
  own_region_.reset();
  (void)opened_.endpoint.release();
  (void)opened_.addresses.release();
  (void)opened_.watch.release();
  (void)opened_.queue.release();
  (void)opened_.domain.release();
  (void)opened_.fabric.release();
}

void Engine::close() noexcept {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  // Peers may still send. And if streams cannot be found they cannot be ended (see above): partial writes then stay,
  // because nobody calls the provider for this engine again.
  if (needs_parting_ || (is_over_rxm_ && !finds_streams())) {
    keep_endpoint();
  } else {
    close_endpoint();
  }
  wait_descriptor_.store(-1, std::memory_order_relaxed);
  waiting_.clear();
  for (Operation& operation : operations_) operation.hold.let_go();
  shared_.sleepers.took();
  receives_owed_.clear();
  in_flight_ = 0;
  for (Target& to : targets_) to.in_flight = to.waiting = to.confirming = 0;
  count_open();
}

Engine::~Engine() {
  if (!is_closed_) {
    if (may_close()) {
      close_endpoint();
    } else {
      keep_endpoint();
    }
  }
  arena_region_.reset();
  own_region_.reset();
  munmap(own_memory_, own_bytes_);
}

void Engine::open(const Api& api) {
  const auto mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
  local_keys_ = (mode & FI_MR_LOCAL) != 0;
  // An injected write that is still queued when its connection breaks ends the process. ofi_rxm (libfabric 1.17) reads
  // behind the context of the failed write, and injected ones have none.
  is_over_rxm_ = std::string_view(info_->fabric_attr->prov_name).find("ofi_rxm") != std::string_view::npos;
  has_listener_ = listens_on_tcp(info_->fabric_attr->prov_name, info_->addr_format);
  needs_parting_ = is_over_rxm_ && !has_listener_;
  inject_bytes_ = is_over_rxm_ ? 0 : info_->tx_attr->inject_size;

  opened_ = open_endpoint(api, *info_, shared_.ranks, shared_.sleeps);
}

void Engine::make_ready(const Options& options) {
  arena_region_ = register_memory(shared_.arena, shared_.registered_bytes, FI_WRITE | FI_REMOTE_WRITE,
                                  "the arena (lower TORII_ARENA, or raise the limit of locked memory, ulimit -l)");
  own_region_ = register_memory(own_memory_, own_bytes_, FI_WRITE | FI_RECV | FI_REMOTE_WRITE,
                                "bounce memory (" + std::to_string(options.bounce_bytes) + " wanted)");
  make_stocks(options);
  if ((info_->mode & FI_RX_CQ_DATA) != 0) {
    receives_.resize(std::clamp<std::size_t>(info_->rx_attr->size, 16, kReceivesMost));
    receives_owed_.reserve(receives_.size());
    for (fi_context2& receive : receives_) receives_owed_.push_back(&receive);
    post_receives();
  }
  int descriptor = -1;
  if (shared_.sleeps && fi_control(waited(), FI_GETWAIT, &descriptor) == 0) wait_descriptor_ = descriptor;
}

std::size_t Engine::operations_wanted(const Options& options) const noexcept {
  return std::clamp<std::size_t>(info_->tx_attr->size, kOperationsLeast, options.operations);
}

/// The operations that each peer may always have under way, each with a line of bounce memory. With hundreds of peers
/// the floors are half of all operations; with more peers there are more operations than wanted.
std::size_t Engine::floor_of_each(const Options& options) const noexcept {
  const std::size_t share = operations_wanted(options) / 2 / static_cast<std::size_t>(shared_.ranks);
  return std::clamp<std::size_t>(share, 1, kFloorMost);
}

std::size_t Engine::all_floors(const Options& options) const noexcept {
  return floor_of_each(options) * static_cast<std::size_t>(shared_.ranks);
}

void Engine::make_stocks(const Options& options) {
  const std::size_t front_bytes = zeros_offset() + kLineBytes;
  const std::size_t floor = floor_of_each(options);
  const std::size_t floors = all_floors(options);
  pool_ = BouncePool(own_memory_ + front_bytes, own_bytes_ - front_bytes);
  pool_stock_ = Stock(pool_.free_bytes() - floors * kLineBytes, floor * kLineBytes);
  const std::size_t wanted = operations_wanted(options);
  const std::size_t shared = wanted - std::min(floors, wanted / 2);
  operation_stock_ = Stock(shared, floor);
  operations_.resize(shared + floors);
  for (Operation& operation : operations_) {
    operation.next_free = free_operation_;
    free_operation_ = &operation;
  }
  probes_.resize(static_cast<std::size_t>(shared_.ranks));
  for (Operation& probe : probes_) probe.is_probe = true;
}

/// With a random key of the length that the provider checks. Providers with FI_MR_PROV_KEY choose keys themselves and
/// ignore it.
fid_mr* Engine::register_with_key(std::byte* base, std::size_t bytes, std::uint64_t access, const std::string& step) {
  const std::size_t key_bytes = std::clamp<std::size_t>(info_->domain_attr->mr_key_size, 1, sizeof(std::uint64_t));
  fid_mr* region = nullptr;
  int code = -FI_ENOKEY;
  for (int trial = 0; trial < kKeysMost && code == -FI_ENOKEY; ++trial) {
    const std::uint64_t key = random_secret() >> (64 - 8 * key_bytes);
    code = fi_mr_reg(opened_.domain.get(), base, bytes, access, 0, key, 0, &region, nullptr);
  }
  check(code, step);
  return region;
}

Fid<fid_mr> Engine::register_memory(std::byte* base, std::size_t bytes, std::uint64_t access, const std::string& what) {
  const std::string step = "registering " + std::to_string(bytes) + " bytes for " + what;
  fid_mr* const region = register_with_key(base, bytes, access, step);
  Fid<fid_mr> owner(region);
  if ((info_->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    check(fi_mr_bind(region, &opened_.endpoint->fid, 0), step);
    check(fi_mr_enable(region), step);
  }
  if (fi_mr_key(region) == FI_KEY_NOTAVAIL) throw Error(Status::transport, "libfabric: " + step + ": no key");
  return owner;
}

EngineCard Engine::card(std::size_t data_bytes) {
  const bool is_virtual = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  EngineCard card{};
  card.arena_base = is_virtual ? reinterpret_cast<std::uintptr_t>(shared_.arena) : 0;
  card.arena_key = fi_mr_key(arena_region_.get());
  card.bell_base = is_virtual ? reinterpret_cast<std::uintptr_t>(own_memory_) : 0;
  card.bell_key = fi_mr_key(own_region_.get());
  notice_bits_ = notice_bits(shared_.registered_bytes);
  mark_ = random_secret() & mark_bits(shared_.registered_bytes, data_bytes);
  card.mark = mark_;
  std::size_t bytes = card.name.size();
  check(fi_getname(&opened_.endpoint->fid, card.name.data(), &bytes), "asking for the endpoint's address");
  card.name_bytes = bytes;
  return card;
}

void Engine::connect(const std::vector<EngineCard>& cards, std::size_t ordered_bytes) {
  ordered_bytes_ = ordered_bytes;
  targets_.resize(cards.size());
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const EngineCard& card = cards[rank];
    Target& to = targets_[rank];
    to.arena_base = card.arena_base;
    to.arena_key = card.arena_key;
    to.bell_base = card.bell_base;
    to.bell_key = card.bell_key;
    to.mark = card.mark;
    std::copy_n(card.name.begin(), to.address_bytes.size(), to.address_bytes.begin());
    if (fi_av_insert(opened_.addresses.get(), card.name.data(), 1, &to.address, 0, nullptr) != 1) {
      throw Error(Status::transport,
                  "libfabric: the address of rank " + std::to_string(rank) + " is none that " +
                      info_->fabric_attr->prov_name + " on " + info_->domain_attr->name + " understands",
                  static_cast<int>(rank));
    }
  }
}

void Engine::post_receives() noexcept {
  while (!receives_owed_.empty()) {
    fi_context2* const receive = receives_owed_.back();
    const ssize_t code =
        fi_recv(opened_.endpoint.get(), own_memory_, 0, fi_mr_desc(own_region_.get()), FI_ADDR_UNSPEC, receive);
    if (code == -FI_EAGAIN) return;
    if (code != 0) {
      break_down("cannot post a receive", code);
      return;
    }
    receives_owed_.pop_back();
  }
}

}  // namespace torii::libfabric
