// SPDX-License-Identifier: Apache-2.0
// Opens an engine and connects it to those of its peers.
#include <algorithm>
#include <utility>

#include "runtime/base/secret.hpp"
#include "transports/ucx/engine.hpp"

namespace torii::ucx {

Engine::Engine(std::shared_ptr<Device> device, const Manner& manner, int number, const Shared& shared)
    : manner_(manner), number_(number), device_(std::move(device)), shared_(shared), secret_(random_secret()) {
  open();
}

Engine::~Engine() {
  for (Target& to : targets_) to.key.reset();
  // See close(). Children of a lost peer keep its streams open, so UCX still waits for messages in both directions.
  const auto is_open = [this](const Target& to) { return to.in_flight != 0 || (to.endpoint && is_cut(to.peer)); };
  const auto is_coming = [](const Arrival& one) { return one.bytes != 0; };
  if (std::ranges::any_of(targets_, is_open) || std::ranges::any_of(arrivals_, is_coming)) close_connections();
  // Closes connections without waiting for peers.
  worker_.reset();
}

/// UCX 1.13 ends the process if a worker is destroyed while messages are in flight. Messages take effect only in calls
/// of the worker, so a worker that nobody calls is as good as gone. It lives as long as the process. If the device
/// itself writes, its connections must be closed.
void Engine::close() noexcept {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  wait_descriptor_.store(-1, std::memory_order_relaxed);
  for (Operation& operation : operations_) operation.hold.let_go();
  shared_.sleepers.took();
  for (Target& to : targets_) to.key.reset();
  if (manner_.puts) {
    close_connections();
  } else {
    (void)worker_.release();
    device_->keep();
  }
}

void Engine::close_connections() noexcept {
  constexpr int kRoundsMost = 10'000;
  for (Target& to : targets_) {
    if (to.endpoint == nullptr) continue;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = manner_.peer_errors ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    const ucs_status_ptr_t closing = ucp_ep_close_nbx(to.endpoint, &how);
    to.endpoint = nullptr;
    if (!UCS_PTR_IS_PTR(closing)) continue;
    for (int round = 0; round < kRoundsMost && ucp_request_check_status(closing) == UCS_INPROGRESS; ++round) {
      (void)ucp_worker_progress(worker_.get());
    }
    ucp_request_free(closing);
  }
}

void Engine::open() {
  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  check(ucp_worker_create(device_->context(), &how, &worker), "opening a worker of " + name());
  worker_.reset(worker);
  int descriptor = -1;
  if (manner_.wakes) check(ucp_worker_get_efd(worker, &descriptor), "asking for a descriptor to sleep on");
  wait_descriptor_ = descriptor;
  // UCX 1.13 makes room for an even number of handlers, up to the one that is set. It leaves the others uninitialised:
  // a message for one of those would call a random address. So the last number is set first, and all get a handler.
  for (unsigned id = kHandlers; id-- > 0;) listen(id, &Engine::on_nothing);
  listen(kPut, &Engine::on_put);
  listen(kPiece, &Engine::on_piece);
  listen(kAsk, &Engine::on_ask);
  listen(kAnswer, &Engine::on_answer);
  listen(kGreeting, &Engine::on_greeting);
  listen(kFarewell, &Engine::on_farewell);
}

void Engine::listen(unsigned id, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = id;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = callback;
  handler.arg = this;
  check(ucp_worker_set_am_recv_handler(worker_.get(), &handler), "setting a handler of messages");
}

std::string Engine::card() const {
  ucp_address_t* address = nullptr;
  std::size_t address_bytes = 0;
  check(ucp_worker_get_address(worker_.get(), &address, &address_bytes), "asking for the worker's address");
  const auto give_back = [this](ucp_address_t* it) { ucp_worker_release_address(worker_.get(), it); };
  const std::unique_ptr<ucp_address_t, decltype(give_back)> address_owner(address, give_back);
  const std::string key = device_->arena_key();
  return write_card({reinterpret_cast<std::uintptr_t>(shared_.arena),
                     secret_,
                     {reinterpret_cast<const char*>(address), address_bytes},
                     key});
}

void Engine::connect(const std::vector<std::string>& cards) {
  const std::lock_guard lock(mutex_);
  targets_ = std::vector<Target>(cards.size());
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    Target& to = targets_[rank];
    to.engine = this;
    to.peer = static_cast<int>(rank);
    if (to.peer == shared_.rank) continue;
    const auto refuse_unless = [&](bool fine, const std::string& why) {
      if (fine) return;
      throw Error(Status::transport, name() + " cannot reach rank " + std::to_string(rank) + ": " + why, to.peer);
    };
    const std::optional<Card> card = read_card(cards[rank]);
    refuse_unless(card && card->key.empty() == !manner_.puts, "its card is not whole");
    ucp_ep_params_t how{};
    how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    how.address = reinterpret_cast<const ucp_address_t*>(card->address.data());
    how.err_mode = manner_.peer_errors ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    if (manner_.peer_errors) {
      how.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
      how.err_handler.cb = &Engine::on_error;
      how.err_handler.arg = &to;
    }
    const ucs_status_t connected = ucp_ep_create(worker_.get(), &how, &to.endpoint);
    refuse_unless(connected == UCS_OK, ucs_status_string(connected));
    to.arena_base = card->arena_base;
    to.secret = card->secret;
    if (!manner_.puts) continue;
    ucp_rkey_h key = nullptr;
    const ucs_status_t unpacked = ucp_ep_rkey_unpack(to.endpoint, card->key.data(), &key);
    refuse_unless(unpacked == UCS_OK, ucs_status_string(unpacked));
    to.key.reset(key);
  }
}

}  // namespace torii::ucx
