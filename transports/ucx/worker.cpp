// SPDX-License-Identifier: Apache-2.0
// Opens a worker, connects it, and closes it.
#include "transports/ucx/worker.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "runtime/base/secret.hpp"

namespace torii::ucx {

Worker::Worker(std::shared_ptr<Device> device, int number, const Shared& shared)
    : device_(std::move(device)),
      shared_(shared),
      failures_(shared.peers, number, "UCX " + device_->name()),
      secret_(random_secret()) {
  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  check(ucp_worker_create(device_->context(), &how, &worker), "opening a worker of " + failures_.name());
  worker_.reset(worker);
  int descriptor = -1;
  if (device_->manner().wakes) check(ucp_worker_get_efd(worker, &descriptor), "asking for a descriptor to sleep on");
  wait_descriptor_ = descriptor;
  // UCX 1.13 makes room for an even number of handlers, up to the one that is set. It leaves the others uninitialised:
  // a message for one of those would call a random address. So the last number is set first, and all get a handler.
  for (unsigned id = kHandlers; id-- > 0;) listen(id, &Worker::on_nothing, this);
}

/// See give_up().
Worker::~Worker() {
  if (is_kept_) (void)worker_.release();
}

void Worker::listen(unsigned id, ucp_am_recv_callback_t callback, void* receiver) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = id;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = callback;
  handler.arg = receiver;
  check(ucp_worker_set_am_recv_handler(worker_.get(), &handler), "setting a handler of messages");
}

std::string Worker::card() const {
  ucp_address_t* address = nullptr;
  std::size_t address_bytes = 0;
  check(ucp_worker_get_address(worker_.get(), &address, &address_bytes), "asking for the worker's address");
  const auto give_back = [this](ucp_address_t* it) { ucp_worker_release_address(worker_.get(), it); };
  const std::unique_ptr<ucp_address_t, decltype(give_back)> address_owner(address, give_back);
  const ExtentTable* const table = device_->table();
  const PackedKey key = table != nullptr ? device_->table_key() : PackedKey{};
  return write_card({reinterpret_cast<std::uintptr_t>(table),
                     secret_,
                     {reinterpret_cast<const char*>(address), address_bytes},
                     {reinterpret_cast<const char*>(key.data.data()), key.bytes},
                     {reinterpret_cast<const char*>(table), table != nullptr ? sizeof(table->front()) : 0}});
}

void Worker::connect(const std::vector<std::string>& cards) {
  const Manner& manner = device_->manner();
  connections_ = std::vector<Connection>(cards.size());
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    Connection& to = connections_[rank];
    to.failures = &failures_;
    to.peer = static_cast<int>(rank);
    if (to.peer == shared_.rank) continue;
    const auto refuse_unless = [&](bool fine, const std::string& why) {
      if (fine) return;
      throw Error(Status::transport, failures_.name() + " cannot reach rank " + std::to_string(rank) + ": " + why,
                  to.peer);
    };
    const std::optional<Card> card = read_card(cards[rank]);
    refuse_unless(card && card->key.empty() == !manner.puts, "its card is not whole");
    ucp_ep_params_t how{};
    how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    how.address = reinterpret_cast<const ucp_address_t*>(card->address.data());
    how.err_mode = manner.peer_errors ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    if (manner.peer_errors) {
      how.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
      how.err_handler.cb = &Worker::on_error;
      how.err_handler.arg = &to;
    }
    const ucs_status_t connected = ucp_ep_create(worker_.get(), &how, &to.endpoint);
    refuse_unless(connected == UCS_OK, ucs_status_string(connected));
    to.table_address = card->key_base;
    to.secret = card->secret;
    if (!manner.puts) continue;
    ucp_rkey_h key = nullptr;
    const ucs_status_t unpacked = ucp_ep_rkey_unpack(to.endpoint, card->key.data(), &key);
    refuse_unless(unpacked == UCS_OK, ucs_status_string(unpacked));
    to.table_key.reset(key);
    to.places.reserve(kExtentsMost);  // they stay where they are
    ExtentTable first{};
    refuse_unless(card->row.size() == sizeof(first.front()), "its card is not whole");
    std::memcpy(&first.front(), card->row.data(), sizeof(first.front()));
    learn_places(to.peer, first);
  }
}

void Worker::learn_places(int peer, const ExtentTable& table) noexcept {
  Connection& to = connections_[static_cast<std::size_t>(peer)];
  if (to.endpoint == nullptr) return;  // the connection is being closed
  try {
    const auto extents = transports::extents_in<PackedKey>(table);
    for (std::size_t i = to.places.size(); i < extents.size(); ++i) {
      const PackedKey& packed = extents[i].key;
      ucp_rkey_h key = nullptr;
      if (packed.bytes > packed.data.size() || ucp_ep_rkey_unpack(to.endpoint, packed.data.data(), &key) != UCS_OK) {
        return;
      }
      to.places.push_back({extents[i].extent, extents[i].base, Connection::Key(key)});
    }
  } catch (const std::exception&) {
    // Out of memory: payloads travel in messages.
  }
}

ucs_status_t Worker::on_nothing(void* worker, const void*, std::size_t, void*, std::size_t,
                                const ucp_am_recv_param_t*) {
  static_cast<Worker*>(worker)->shared_.peers.count_stranger();
  return UCS_OK;
}

void Worker::on_error(void* connection, ucp_ep_h, ucs_status_t status) {
  const Connection& to = *static_cast<Connection*>(connection);
  to.failures->end_connection(to.peer, ucs_status_string(status));
}

/// UCX 1.13 ends the process if a worker is destroyed while messages are in flight. Messages take effect only in calls
/// of the worker, so a worker that nobody calls is as good as gone. It lives as long as the process. If the device
/// itself writes, its connections must be closed.
void Worker::give_up() noexcept {
  wait_descriptor_.store(-1, std::memory_order_relaxed);
  if (device_->manner().puts) {
    close_connections();
  } else {
    is_kept_ = true;
    device_->keep();
  }
  release_keys();
}

void Worker::close(bool is_busy) noexcept {
  // See give_up(). Children of a lost peer keep its streams open, so UCX still waits for messages in both directions.
  const auto is_lost = [this](const Connection& to) { return to.endpoint && failures_.is_cut(to.peer); };
  if (is_busy || std::ranges::any_of(connections_, is_lost)) close_connections();
  release_keys();  // nothing uses them any more
  // Closes connections without waiting for peers.
  if (!is_kept_) worker_.reset();
}

void Worker::release_keys() noexcept {
  for (Connection& to : connections_) {
    to.table_key.reset();
    to.places.clear();
  }
}

void Worker::close_connections() noexcept {
  constexpr int kRoundsMost = 10'000;
  for (Connection& to : connections_) {
    if (to.endpoint == nullptr) continue;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = device_->manner().peer_errors ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    const ucs_status_ptr_t closing = ucp_ep_close_nbx(to.endpoint, &how);
    to.endpoint = nullptr;
    if (!UCS_PTR_IS_PTR(closing)) continue;
    // Without errors of peers it waits for the peer. Nobody calls a worker that is kept, so nothing arrives there.
    const int rounds = is_kept_ ? 0 : kRoundsMost;
    for (int round = 0; round < rounds && ucp_request_check_status(closing) == UCS_INPROGRESS; ++round) {
      (void)ucp_worker_progress(worker_.get());
    }
    ucp_request_free(closing);
  }
}

}  // namespace torii::ucx
