// SPDX-License-Identifier: Apache-2.0
// From a transfer to fi_writedata and its completion, and the queue for when the provider is busy.
#include "transports/libfabric/writes.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace torii::libfabric {
namespace {

constexpr std::size_t kOperationsLeast = 16;
constexpr std::size_t kFloorMost = 16;

std::size_t operations_wanted(const fi_info& info, const Options& options) noexcept {
  return std::clamp<std::size_t>(info.tx_attr->size, kOperationsLeast, options.operations);
}

/// The operations that each peer may always have under way, each with a line of bounce memory. With hundreds of peers
/// the floors are half of all operations; with more peers there are more operations than wanted.
std::size_t floor_of_each(const fi_info& info, int ranks, const Options& options) noexcept {
  const std::size_t share = operations_wanted(info, options) / 2 / static_cast<std::size_t>(ranks);
  return std::clamp<std::size_t>(share, 1, kFloorMost);
}

}  // namespace

std::size_t Writes::bounce_bytes(const fi_info& info, int ranks, const Options& options) noexcept {
  const std::size_t floors = floor_of_each(info, ranks, options) * static_cast<std::size_t>(ranks);
  return std::max(options.bounce_bytes, 64 * kLineBytes) + floors * kLineBytes;
}

/// An injected write that is still queued when its connection breaks ends the process: ofi_rxm (libfabric 1.17) reads
/// behind the context of the failed write, and injected ones have none.
Writes::Writes(Endpoint& endpoint, const OwnMemory& own, int number, const Shared& shared)
    : endpoint_(endpoint),
      info_(endpoint.info()),
      own_(own),
      shared_(shared),
      failures_(shared.peers, number, endpoint.device().name(), shared.probes),
      local_keys_(endpoint.device().wants_local_keys()),
      inject_bytes_(endpoint.device().is_over_rxm() ? 0 : info_.tx_attr->inject_size) {}

void Writes::make_stocks(const Options& options) {
  const std::size_t floor = floor_of_each(info_, shared_.ranks, options);
  const std::size_t floors = floor * static_cast<std::size_t>(shared_.ranks);
  pool_ = BouncePool(own_.bounce().data(), own_.bounce().size());
  pool_stock_ = Stock(pool_.free_bytes() - floors * kLineBytes, floor * kLineBytes);
  const std::size_t wanted = operations_wanted(info_, options);
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

Status Writes::start(const Transfer& transfer) noexcept {
  if (target(transfer.peer).waiting != 0) return delay(transfer);
  const ssize_t code = post(transfer);
  if (code == 0) return Status::ok;
  return code == -FI_EAGAIN ? delay(transfer) : fail(transfer.peer, code, transfer.total());
}

/// Where the transfer goes; nullptr: its peer's table has to be read.
const RemoteExtent* Writes::find_place(const Transfer& transfer) noexcept {
  const Target& to = target(transfer.peer);
  if (transfer.is_to_own) return &to.own;
  if (to.first.extent.holds(transfer.offset, transfer.total())) return &to.first;
  for (const RemoteExtent& one : to.others) {
    if (one.extent.holds(transfer.offset, transfer.total())) return &one;
  }
  return nullptr;
}

/// The peer has told an offset in memory that it has registered since. -FI_EAGAIN, or the code of a failure.
ssize_t Writes::read_table(const Transfer& transfer) noexcept {
  Target& to = target(transfer.peer);
  if (to.is_read) return -FI_EAGAIN;
  if (to.sought == transfer.offset) return -FI_ENOKEY;
  Operation* const operation = operation_stock_.may_take(to.operations, 1) ? free_operation_ : nullptr;
  if (operation == nullptr) return -FI_EAGAIN;
  const BouncePool::Piece piece = find_room(to, sizeof(ExtentTable));
  if (piece.at == nullptr) return -FI_EAGAIN;
  const ssize_t code = fi_read(endpoint_.get(), piece.at, sizeof(ExtentTable), own_.descriptor(), to.address,
                               to.own.base + own_.table_offset(), to.own.key, operation);
  if (code != 0) {
    pool_.give_back(piece);
    return code;
  }
  to.is_read = true;
  to.sought = transfer.offset;
  begin(*operation, {.peer = transfer.peer, .bytes = sizeof(ExtentTable)}, piece);
  operation->reads = true;
  return -FI_EAGAIN;
}

void Writes::learn_extents(Target& to, const std::byte* table) noexcept {
  ExtentTable rows;
  std::memcpy(&rows, table, sizeof(rows));
  try {
    to.others = extents_in(rows);
  } catch (const std::exception&) {
    // Out of memory: the next write reads it again.
    to.sought = Target::kNowhere;
  }
}

ssize_t Writes::post(const Transfer& transfer) noexcept {
  endpoint_.disarm();
  const RemoteExtent* const place = find_place(transfer);
  if (place == nullptr) return read_table(transfer);
  if (transfer.total() > inject_bytes_ || transfer.confirms || transfer.leads) return post_counted(transfer, *place);
  const Target& to = target(transfer.peer);
  const std::uint64_t address = place->base + transfer.offset;
  if (!transfer.notifies) {
    return fi_inject_write(endpoint_.get(), transfer.source, transfer.bytes, to.address, address, place->key);
  }
  return fi_inject_writedata(endpoint_.get(), transfer.source, transfer.bytes, to.mark | transfer.notice, to.address,
                             address, place->key);
}

/// The confirmed write to a peer has its own operation, because a peer that is in no call does not answer it.
Writes::Operation* Writes::find_operation(const Transfer& transfer) noexcept {
  Operation& probe = probes_[static_cast<std::size_t>(transfer.peer)];
  if (transfer.confirms && !probe.is_busy) return &probe;
  return operation_stock_.may_take(target(transfer.peer).operations, 1) ? free_operation_ : nullptr;
}

BouncePool::Piece Writes::find_room(const Target& to, std::size_t bytes) noexcept {
  return pool_stock_.may_take(to.bounced_bytes, BouncePool::piece_bytes(bytes)) ? pool_.take(bytes)
                                                                                : BouncePool::Piece{};
}

/// Finds the memory that the provider reads. False if there is no room for a copy now.
bool Writes::find_source(const Transfer& transfer, Gathered& from, BouncePool::Piece& piece) noexcept {
  const Target& to = target(transfer.peer);
  from = {{{{const_cast<std::byte*>(transfer.source), transfer.bytes}}}, {}, 1};
  if (transfer.confirms) {
    from.descriptors[0] = own_.descriptor();
    return true;
  }
  const Device::Regions::Region* const region = local_keys_ ? region_of(transfer.source, transfer.bytes) : nullptr;
  if (region != nullptr) from.descriptors[0] = fi_mr_desc(region->memory.get());
  if (transfer.leads) {
    piece = find_room(to, kLineBytes);
    if (piece.at == nullptr) return false;
    std::memcpy(piece.at, &transfer.word, sizeof(transfer.word));
    std::memset(piece.at + sizeof(transfer.word), 0, kInlineBytes);
    from = {{{{piece.at, kLineBytes}, from.parts[0]}}, {own_.descriptor(), from.descriptors[0]}, 2};
  } else if (transfer.is_temporary || (local_keys_ && region == nullptr)) {
    piece = find_room(to, transfer.bytes);
    if (piece.at == nullptr) return false;
    std::memcpy(piece.at, transfer.source, transfer.bytes);
    from.parts[0].iov_base = piece.at;
    from.descriptors[0] = own_.descriptor();
  }
  return true;
}

/// Posts a write whose source the provider reads until it completes.
ssize_t Writes::post_counted(const Transfer& transfer, const RemoteExtent& place) noexcept {
  Operation* const operation = find_operation(transfer);
  if (operation == nullptr) return -FI_EAGAIN;
  Gathered from;
  BouncePool::Piece piece;
  if (!find_source(transfer, from, piece)) return -FI_EAGAIN;
  const ssize_t code = write(transfer, place, from, *operation);
  if (code == 0) {
    begin(*operation, transfer, piece);
  } else if (piece.at != nullptr) {
    pool_.give_back(piece);
  }
  return code;
}

/// The provider has it.
void Writes::begin(Operation& operation, const Transfer& transfer, const BouncePool::Piece& piece) noexcept {
  operation.bytes = transfer.total();
  operation.piece = piece;
  operation.peer = transfer.peer;
  operation.confirms = transfer.confirms;
  operation.reads = false;
  operation.hold = PutHold(transfer.owner);
  Target& to = target(transfer.peer);
  if (operation.is_probe) {
    operation.is_busy = true;
  } else {
    free_operation_ = operation.next_free;
    operation_stock_.take(to.operations, 1);
  }
  pool_stock_.take(to.bounced_bytes, piece.bytes);
  ++in_flight_;
  ++to.in_flight;
  count_open();
}

ssize_t Writes::write(const Transfer& transfer, const RemoteExtent& place, Gathered& from,
                      Operation& operation) noexcept {
  const fi_addr_t peer = target(transfer.peer).address;
  const std::uint64_t notice = target(transfer.peer).mark | transfer.notice;
  const std::uint64_t address = place.base + transfer.offset;
  if (transfer.confirms || transfer.leads) {
    fi_rma_iov to = {address, transfer.total(), place.key};
    const fi_msg_rma message = {
        from.parts.data(), from.descriptors.data(), from.count, peer, &to, 1, &operation, notice};
    return fi_writemsg(endpoint_.get(), &message,
                       FI_COMPLETION | (transfer.confirms ? FI_DELIVERY_COMPLETE : FI_REMOTE_CQ_DATA));
  }
  const void* const source = from.parts[0].iov_base;
  void* const descriptor = from.descriptors[0];
  if (!transfer.notifies) {
    return fi_write(endpoint_.get(), source, transfer.bytes, descriptor, peer, address, place.key, &operation);
  }
  return fi_writedata(endpoint_.get(), source, transfer.bytes, descriptor, notice, peer, address, place.key,
                      &operation);
}

/// Queues a transfer until the provider takes it; transfers to one peer stay in order.
Status Writes::delay(const Transfer& transfer) noexcept {
  try {
    Delayed& delayed = waiting_.emplace_back();
    delayed.transfer = transfer;
    delayed.hold = PutHold(transfer.owner);
    if (transfer.is_temporary) std::memcpy(delayed.line.data(), transfer.source, transfer.bytes);
  } catch (const std::exception&) {
    return Status::no_resource;
  }
  ++target(transfer.peer).waiting;
  count_open();
  return Status::ok;
}

void Writes::post_delayed() noexcept {
  ++round_;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (!post_delayed(waiting_[i])) continue;
    if (kept != i) waiting_[kept] = std::move(waiting_[i]);
    ++kept;
  }
  waiting_.resize(kept);
  count_open();
}

/// True if the transfer has to wait longer.
bool Writes::post_delayed(Delayed& delayed) noexcept {
  Transfer& transfer = delayed.transfer;
  Target& to = target(transfer.peer);
  ssize_t code = -FI_ECONNRESET;
  Status status = Status::peer_lost;
  if (!is_cut(transfer.peer)) {
    if (to.busy_round == round_) return true;
    if (transfer.is_temporary) transfer.source = delayed.line.data();
    code = post(transfer);
    if (code == -FI_EAGAIN) {
      to.busy_round = round_;
      return true;
    }
    if (code != 0) status = fail(transfer.peer, code, transfer.total());
  }
  if (code != 0) delayed.hold.fail(status);
  --to.waiting;
  if (code != 0 && transfer.confirms) --to.confirming;
  return false;
}

/// The operation that a completion names, or nullptr: for injected writes providers return any context.
Writes::Operation* Writes::operation_of(void* context) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(context);
  for (const std::vector<Operation>* const all : {&operations_, &probes_}) {
    const auto first = reinterpret_cast<std::uintptr_t>(all->data());
    if (at >= first && at < first + all->size() * sizeof(Operation)) return static_cast<Operation*>(context);
  }
  return nullptr;
}

void Writes::complete(Operation& operation, Status status) noexcept {
  Target& to = target(operation.peer);
  if (operation.reads) {
    to.is_read = false;
    if (status == Status::ok) learn_extents(to, operation.piece.at);
  }
  if (operation.piece.at != nullptr) pool_.give_back(operation.piece);
  pool_stock_.give_back(to.bounced_bytes, operation.piece.bytes);
  if (status != Status::ok) operation.hold.fail(status);
  operation.hold.let_go();
  --to.in_flight;
  if (operation.confirms && --to.confirming == 0 && to.is_asked && !is_cut(operation.peer)) {
    to.is_asked = false;
    shared_.peers.answered(operation.peer);
  }
  if (operation.is_probe) {
    operation.is_busy = false;
  } else {
    operation.next_free = free_operation_;
    free_operation_ = &operation;
    operation_stock_.give_back(to.operations, 1);
  }
  --in_flight_;
  count_open();
}

bool Writes::take_completion(void* context) noexcept {
  Operation* const operation = operation_of(context);
  if (operation != nullptr) complete(*operation, Status::ok);
  return operation != nullptr;
}

bool Writes::take_error(const fi_cq_err_entry& error) noexcept {
  Operation* const operation = operation_of(error.op_context);
  if (operation == nullptr) return false;
  complete(*operation, fail(operation->peer, error.err, operation->bytes));
  return true;
}

void Writes::let_go_of_lost() noexcept {
  for (Operation& operation : operations_) {
    if (failures_.has_lost(operation.peer)) operation.hold.fail(Status::peer_lost);
  }
}

void Writes::drop_waiting() noexcept {
  for (Delayed& delayed : waiting_) delayed.hold.fail(Status::transport);
  waiting_.clear();
  for (Target& to : targets_) to.waiting = 0;
  count_open();
}

void Writes::end() noexcept {
  for (Operation& operation : operations_) operation.hold.fail(Status::transport);
  in_flight_ = 0;
  for (Target& to : targets_) to.in_flight = to.confirming = 0;
  count_open();
}

bool Writes::is_quiet(bool but_for_confirmed) const noexcept {
  for (std::size_t peer = 0; peer < targets_.size(); ++peer) {
    const Target& to = targets_[peer];
    const std::uint32_t allowed = but_for_confirmed ? to.confirming : 0;
    if (to.in_flight + to.waiting > allowed && !is_cut(static_cast<int>(peer))) return false;
  }
  return true;
}

}  // namespace torii::libfabric
