// SPDX-License-Identifier: Apache-2.0
// The writes of an engine: those that the provider has, and those that wait because it is busy.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"
#include "transports/libfabric/bounce_pool.hpp"
#include "transports/libfabric/endpoint.hpp"
#include "transports/libfabric/options.hpp"
#include "transports/libfabric/own_memory.hpp"
#include "transports/libfabric/shared.hpp"
#include "transports/libfabric/stock.hpp"
#include "transports/network/failures.hpp"

namespace torii::libfabric {

/// A peer, as the writes of an engine reach it.
struct Target {
  static constexpr std::uint64_t kNowhere = UINT64_MAX;

  fi_addr_t address = FI_ADDR_UNSPEC;
  RemoteExtent own;                  ///< the memory of its engine, not a part of its arena
  RemoteExtent first;                ///< of its arena; the only one if it does not pin
  std::vector<RemoteExtent> others;  ///< as its table had them when it was read last
  std::uint64_t sought = kNowhere;   ///< the offset for which it was read
  bool is_read = false;              ///< reading it is under way
  std::uint64_t mark = 0;
  std::uint32_t waiting = 0;      ///< transfers that wait: later ones queue behind them
  std::uint32_t busy_round = 0;   ///< the last round in which the provider took none
  std::uint32_t in_flight = 0;    ///< counted writes
  std::size_t operations = 0;     ///< those of them that use the engine's operations
  std::size_t bounced_bytes = 0;  ///< of the bounce memory
  std::uint32_t confirming = 0;   ///< confirmed writes, waiting ones included
  bool is_used = false;           ///< something of a call was put
  bool is_asked = false;          ///< the confirmed write under way began when the peer was doubted
};

/// One write in libfabric's terms.
struct Transfer {
  int peer = 0;
  bool notifies = false;      ///< `notice` accompanies it
  bool confirms = false;      ///< its completion says that the data has arrived
  bool is_temporary = false;  ///< the source does not outlive the call
  bool leads = false;         ///< a line that begins with `word` precedes the source
  const std::byte* source = nullptr;
  std::size_t bytes = 0;   ///< of the source
  bool is_to_own = false;  ///< `offset` is in the own memory of the peer's engine, not in its arena
  std::uint64_t offset = 0;
  std::uint64_t notice = 0;
  std::uint64_t word = 0;
  PutCount* owner = nullptr;

  std::size_t total() const noexcept { return bytes + (leads ? kLineBytes : 0); }
};

/// Not thread-safe but for are_none_open(): the engine has the lock.
class Writes {
 public:
  /// The memory that writes copy to, for so many ranks.
  static std::size_t bounce_bytes(const fi_info& info, int ranks, const Options& options) noexcept;

  Writes(Endpoint& endpoint, const OwnMemory& own, int number, const Shared& shared);
  void make_stocks(const Options& options);
  /// A rank for each entry, in order.
  void set_targets(std::vector<Target> targets) noexcept { targets_ = std::move(targets); }

  std::vector<Target>& targets() noexcept { return targets_; }
  Target& target(int peer) noexcept { return targets_[static_cast<std::size_t>(peer)]; }
  /// True if nothing is put to the peer through this engine any more.
  bool is_cut(int peer) const noexcept { return failures_.is_cut(peer); }
  /// Something of a call goes to that peer.
  void use(int peer) noexcept {
    Target& to = target(peer);
    if (!to.is_used) ++used_targets_;
    to.is_used = true;
  }
  std::int64_t used_targets() const noexcept { return used_targets_; }
  /// Whether one write can take a line from elsewhere and then this source in place.
  bool gathers(const std::byte* source, std::size_t bytes) const noexcept {
    return info_.tx_attr->iov_limit >= 2 && (!local_keys_ || region_of(source, bytes) != nullptr);
  }

  /// Whether the provider cannot take it, or no bounce memory holds its source.
  bool is_too_long(const Transfer& transfer) const noexcept {
    return transfer.total() > info_.ep_attr->max_msg_size ||
           (is_copied(transfer) && !pool_stock_.can_hold(BouncePool::piece_bytes(transfer.bytes)));
  }
  /// Posts a write, or lets it wait if the provider is busy.
  Status start(const Transfer& transfer) noexcept;
  /// 0, or -FI_EAGAIN if the provider is busy or the peer's table has to be read, or the code of a failure. Nothing may
  /// wait for that peer.
  ssize_t post(const Transfer& transfer) noexcept;
  /// The write waits until post_delayed() posts it; writes to one peer stay in order. no_resource: out of memory.
  Status delay(const Transfer& transfer) noexcept;
  bool are_waiting() const noexcept { return !waiting_.empty(); }
  void post_delayed() noexcept;

  /// True if `context` is that of a counted write, which is complete then.
  bool take_completion(void* context) noexcept;
  bool take_error(const fi_cq_err_entry& error) noexcept;
  /// Writes to a lost peer need not complete, and nobody waits for them.
  void let_go_of_lost() noexcept;
  /// Nothing waits any more.
  void drop_waiting() noexcept;
  /// Counts nothing any more that the provider has.
  void end() noexcept;
  /// True if nothing is in flight or waits.
  bool are_none_open() const noexcept { return open_.load(std::memory_order_acquire) == 0; }
  /// The same without writes to lost peers, and, if wanted, without confirmed ones.
  bool is_quiet(bool but_for_confirmed) const noexcept;

  /// Records that a write of so many bytes to the peer has failed.
  Status fail(int peer, std::int64_t code, std::size_t bytes) noexcept {
    return failures_.fail_write(peer, bytes, code_text(code), is_lost_connection(code));
  }
  /// Stops the engine for all peers.
  void break_down(const char* what, std::int64_t code) noexcept { failures_.break_down(what, code_text(code)); }

 private:
  /// The pieces of memory that a write reads, in order.
  struct Gathered {
    std::array<iovec, 2> parts;
    std::array<void*, 2> descriptors;
    std::size_t count;
  };
  struct Delayed {
    Transfer transfer;
    std::array<std::byte, kLineBytes> line;  ///< the source, if it was temporary
    PutHold hold;
  };
  /// The state of a write until it completes. The provider owns the first member while the write is in flight.
  struct Operation {
    fi_context2 context;
    Operation* next_free;
    std::size_t bytes;
    BouncePool::Piece piece;
    int peer;
    bool confirms;
    bool reads;             ///< the peer's table, into the piece
    bool is_probe = false;  ///< the one for confirmed writes to one peer
    bool is_busy = false;   ///< if it is a probe
    PutHold hold;
  };

  /// The registered part of the arena that holds a source; nullptr: it is elsewhere.
  const Device::Regions::Region* region_of(const std::byte* at, std::size_t bytes) const noexcept {
    const auto offset = static_cast<std::uint64_t>(at - shared_.arena);
    return at >= shared_.arena ? endpoint_.device().regions().find(offset, bytes) : nullptr;
  }
  bool is_copied(const Transfer& transfer) const noexcept {
    return local_keys_ && !transfer.confirms && region_of(transfer.source, transfer.bytes) == nullptr;
  }
  const RemoteExtent* find_place(const Transfer& transfer) noexcept;
  ssize_t read_table(const Transfer& transfer) noexcept;
  void learn_extents(Target& to, const std::byte* table) noexcept;
  void begin(Operation& operation, const Transfer& transfer, const BouncePool::Piece& piece) noexcept;
  Operation* find_operation(const Transfer& transfer) noexcept;
  BouncePool::Piece find_room(const Target& to, std::size_t bytes) noexcept;
  bool find_source(const Transfer& transfer, Gathered& from, BouncePool::Piece& piece) noexcept;
  ssize_t post_counted(const Transfer& transfer, const RemoteExtent& place) noexcept;
  ssize_t write(const Transfer& transfer, const RemoteExtent& place, Gathered& from, Operation& operation) noexcept;
  bool post_delayed(Delayed& delayed) noexcept;
  Operation* operation_of(void* context) noexcept;
  void complete(Operation& operation, Status status) noexcept;
  void count_open() noexcept { open_.store(in_flight_ + waiting_.size(), std::memory_order_release); }

  Endpoint& endpoint_;
  const fi_info& info_;
  const OwnMemory& own_;
  Shared shared_;
  transports::EngineFailures failures_;
  bool local_keys_;  ///< sources must be registered
  std::size_t inject_bytes_;
  BouncePool pool_;
  Stock pool_stock_;  ///< bytes of the pool
  std::vector<Target> targets_;
  std::int64_t used_targets_ = 0;
  std::vector<Operation> operations_;
  Operation* free_operation_ = nullptr;
  Stock operation_stock_;
  std::vector<Operation> probes_;  ///< by peer: a silent peer keeps its own and nothing that others need
  std::size_t in_flight_ = 0;
  std::vector<Delayed> waiting_;
  std::uint32_t round_ = 0;
  std::atomic<std::size_t> open_ = 0;  ///< in flight and waiting
};

}  // namespace torii::libfabric
