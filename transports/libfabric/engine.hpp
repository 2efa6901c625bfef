// SPDX-License-Identifier: Apache-2.0
// One path to the fabric: an endpoint with its domain and completion queue, the transfers in flight, and the transfers
// that wait because the provider is busy.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"
#include "transports/libfabric/api.hpp"
#include "transports/libfabric/arrivals.hpp"
#include "transports/libfabric/bounce_pool.hpp"
#include "transports/libfabric/opened.hpp"
#include "transports/libfabric/options.hpp"
#include "transports/libfabric/stock.hpp"
#include "transports/libfabric/streams.hpp"
#include "transports/network/peer_states.hpp"
#include "transports/network/sleepers.hpp"

namespace torii::libfabric {

/// The data with which a peer can put through an engine; sent as it is in memory.
struct EngineCard {
  std::uint64_t arena_base;  ///< the remote address of the arena's first byte: virtual, or 0
  std::uint64_t arena_key;
  std::uint64_t bell_base;  ///< outside the arena: a line that anybody may write into, then a word per rank
  std::uint64_t bell_key;
  std::uint64_t mark;  ///< goes with every notice, see mark_bits()
  std::uint64_t name_bytes;
  std::array<std::byte, 256> name;  ///< the endpoint's address
};

/// The common state of a transport's engines.
struct Shared {
  std::byte* arena;
  std::size_t registered_bytes;  ///< of the arena
  int rank;
  int ranks;
  Arrivals& arrivals;
  transports::PeerStates& peers;
  transports::Sleepers& sleepers;
  bool sleeps;            ///< completion queues have a descriptor if the provider offers one
  bool alone_in_process;  ///< see EngineOptions
  bool probes;            ///< peers are asked whether they live
};

/// Thread-safe behind its own lock; the provider is asked for no locks of its own.
class Engine {
 public:
  /// Opens the endpoint. Throws Error.
  Engine(const Api& api, const fi_info& info, int number, const Shared& shared, const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Registers the arena and bounce memory of its own. Throws Error.
  void make_ready(const Options& options);
  /// Makes the engine's random mark. The completions of every rank carry at least `data_bytes` of data.
  EngineCard card(std::size_t data_bytes);
  /// Connects to the peers' engines of the same number. `ordered_bytes`: the longest write that a later write through
  /// the same engine cannot overtake, with any rank's provider.
  void connect(const std::vector<EngineCard>& cards, std::size_t ordered_bytes);

  Status put(const Put& put) noexcept;
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept;
  /// Handles completions and posts queued transfers; does nothing if another thread does so. False if there was
  /// nothing.
  bool progress() noexcept;
  /// True if nothing reads a source any more, except for puts to lost peers. Confirmed writes do not count: a peer that
  /// is in no call answers late, and no call of this rank may wait for that.
  bool drained() noexcept { return is_quiet(true); }
  /// Asks every peer that received writes to confirm that all have arrived; confirmed() says whether they have. After
  /// take_leave() it also says whether peers have left, if the endpoint cannot be closed before (may_close()).
  void flush() noexcept;
  bool confirmed() noexcept { return part() && is_quiet(false); }
  /// Writes this rank's word behind the bell of a peer. This does not count as using the peer.
  void greet(int peer) noexcept;
  bool is_greeted(int peer) const noexcept { return greeting(peer) != 0; }
  /// Writes the same word again, before this rank closes its engines.
  void take_leave(int peer) noexcept;
  bool has_left(int peer) const noexcept { return greeting(peer) >= kLeaving; }
  /// Keeps one confirmed write under way, so that a rank that only waits for the peer notices its end. If the answer is
  /// late, asks the peer's host whether it still listens. False if nothing was ever written to the peer through this
  /// engine.
  bool probe(int peer, std::int64_t now_ns) noexcept;
  /// Another engine has lost the peer. Asks through this engine whether the peer is there. The result is
  /// PeerStates::answered() or cut(), or neither while the peer is in no call and its host does not say more.
  void doubt(int peer, std::int64_t now_ns) noexcept;
  /// Ends all transfers and takes no more: puts do nothing and return ok.
  void close() noexcept;

  /// Becomes readable when progress() has something to do; -1 if the provider has no such descriptor.
  int wait_descriptor() const noexcept { return wait_descriptor_.load(std::memory_order_relaxed); }
  /// False if progress() has to be called before anybody polls wait_descriptor(). Shortens `most_us` if the descriptor
  /// may stay unreadable although there is something to do.
  bool may_sleep(int& most_us) noexcept;

 private:
  static constexpr auto kJoinedBytesMax = tuned<std::size_t>("sending.joined_bytes_max");

  /// A peer, as this engine reaches it.
  struct Target {
    fi_addr_t address = FI_ADDR_UNSPEC;
    std::uint64_t arena_base = 0;
    std::uint64_t arena_key = 0;
    std::uint64_t bell_base = 0;
    std::uint64_t bell_key = 0;
    std::uint64_t mark = 0;
    std::uint32_t waiting = 0;      ///< transfers in `waiting_`: later ones queue behind them
    std::uint32_t busy_round = 0;   ///< the last round in which the provider took none
    std::uint32_t in_flight = 0;    ///< counted writes
    std::size_t operations = 0;     ///< those of them that use the engine's operations
    std::size_t bounced_bytes = 0;  ///< of the bounce memory
    std::uint32_t confirming = 0;   ///< confirmed writes, waiting ones included
    bool used = false;
    bool is_greeted = false;            ///< by this rank
    bool is_told = false;               ///< that all it has sent was taken: see part()
    bool is_asked = false;              ///< the confirmed write under way began when the peer was doubted
    std::int64_t doubted_ns = 0;        ///< when doubt() asked last
    std::int64_t doubted_since_ns = 0;  ///< and first; 0: never
    std::int64_t probed_ns = 0;
    std::int64_t patience_ns = 0;     ///< how long after probed_ns the peer's host is asked
    std::int64_t waits_since_ns = 0;  ///< since when the provider takes no transfers; 0: none waited at the last look
    std::int64_t waits_patience_ns = 0;  ///< how long after that the peer's host is asked
    /// The beginning of the peer's address: the whole address if the provider uses socket addresses.
    SocketAddress address_bytes{};
  };

  /// One write in libfabric's terms.
  struct Transfer {
    int peer = 0;
    bool notifies = false;      ///< `notice` accompanies it
    bool confirms = false;      ///< its completion says that the data has arrived
    bool is_temporary = false;  ///< the source does not outlive the call
    bool leads = false;         ///< a line that begins with `word` precedes the source
    const std::byte* source = nullptr;
    std::size_t bytes = 0;  ///< of the source
    std::uint64_t address = 0;
    std::uint64_t key = 0;
    std::uint64_t notice = 0;
    std::uint64_t word = 0;
    PutCount* owner = nullptr;

    std::size_t total() const noexcept { return bytes + (leads ? kLineBytes : 0); }
  };
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
    bool is_probe = false;  ///< the one for confirmed writes to one peer
    bool is_busy = false;   ///< if it is a probe
    PutHold hold;
  };

  void open(const Api& api);
  std::size_t operations_wanted(const Options& options) const noexcept;
  std::size_t floor_of_each(const Options& options) const noexcept;
  std::size_t all_floors(const Options& options) const noexcept;
  void make_stocks(const Options& options);
  fid* waited() noexcept { return opened_.watch != nullptr ? &opened_.watch->fid : &opened_.queue->fid; }
  /// Whether end_streams() can tell the engine's sockets from others.
  bool finds_streams() const noexcept { return wait_descriptor() >= 0 || shared_.alone_in_process; }
  void end_streams() noexcept;
  int shut_down_own_streams() noexcept;
  bool part() noexcept;
  void take_all() noexcept;
  bool may_close() noexcept;
  void close_endpoint() noexcept;
  void keep_endpoint() noexcept;
  Fid<fid_mr> register_memory(std::byte* base, std::size_t bytes, std::uint64_t access, const std::string& what);
  fid_mr* register_with_key(std::byte* base, std::size_t bytes, std::uint64_t access, const std::string& step);
  Target& target(int peer) noexcept { return targets_[static_cast<std::size_t>(peer)]; }
  /// True if nothing is put to the peer through this engine any more.
  bool is_cut(int peer) const noexcept { return shared_.peers.is_cut(number_, peer); }
  bool in_arena(const std::byte* at, std::size_t bytes) const noexcept {
    return at >= shared_.arena && bytes <= shared_.registered_bytes &&
           static_cast<std::size_t>(at - shared_.arena) <= shared_.registered_bytes - bytes;
  }

  static constexpr std::uint64_t kHere = 1;
  static constexpr std::uint64_t kLeaving = 2;
  static constexpr std::uint64_t kGone = 3;  ///< the peer has left, and has taken all that this rank has sent
  void say(int peer, std::uint64_t greeting) noexcept;
  std::uint64_t greeting(int peer) const noexcept { return load_word(own_memory_ + greeting_offset(peer)); }
  static std::size_t greeting_offset(int rank) noexcept {
    return kLineBytes + static_cast<std::size_t>(rank) * sizeof(std::uint64_t);
  }
  std::size_t zeros_offset() const noexcept { return round_up(greeting_offset(shared_.ranks), kLineBytes); }
  bool put_joined(Transfer transfer, const Put& put) noexcept;
  /// Whether one write can take a line from elsewhere and then this source in place.
  bool gathers(const std::byte* source, std::size_t bytes) const noexcept {
    return info_->tx_attr->iov_limit >= 2 && (!local_keys_ || in_arena(source, bytes));
  }
  /// Marks the peer as used and starts the transfer.
  Status send(const Transfer& transfer) noexcept;
  Status start(const Transfer& transfer) noexcept;
  bool is_quiet(bool but_for_confirmed) noexcept;
  Status send_word(Target& to, const Put& put, std::uint64_t value, std::uint64_t notice) noexcept;
  ssize_t post(const Transfer& transfer) noexcept;
  Operation* find_operation(const Transfer& transfer) noexcept;
  BouncePool::Piece find_room(const Target& to, std::size_t bytes) noexcept;
  bool find_source(const Transfer& transfer, Gathered& from, BouncePool::Piece& piece) noexcept;
  ssize_t post_counted(const Transfer& transfer) noexcept;
  ssize_t write(const Transfer& transfer, Gathered& from, Operation& operation) noexcept;
  Status delay(const Transfer& transfer) noexcept;
  void post_delayed() noexcept;
  bool post_delayed(Delayed& delayed) noexcept;
  void send_confirmed(int peer) noexcept;
  void break_down(const char* what, std::int64_t code) noexcept;
  Status fail(int peer, std::int64_t code, std::size_t bytes) noexcept;
  std::string name() const {
    return "engine " + std::to_string(number_) + " (" + info_->fabric_attr->prov_name + " on " +
           info_->domain_attr->name + ")";
  }

  bool take_completions() noexcept;
  void take_completion(const fi_cq_data_entry& entry) noexcept;
  void take_error() noexcept;
  void complete(Operation& operation) noexcept;
  void let_go_of_lost() noexcept;
  Operation* operation_of(void* context) noexcept;
  void post_receives() noexcept;
  bool take_back_receive(void* context) noexcept;
  void count_open() noexcept { open_.store(in_flight_ + waiting_.size(), std::memory_order_release); }
  bool ask_listener(int peer) noexcept;
  void ask_about_waiting(std::int64_t now_ns) noexcept;

  Info info_;
  int number_;
  Shared shared_;
  // Closed from the last to the first; the destructor handles the endpoint and the registrations.
  Opened opened_;
  Fid<fid_mr> arena_region_;
  Fid<fid_mr> own_region_;
  /// The bell's line, the words of greeting peers, a line of zeros for confirmed writes, and the bounce memory.
  std::byte* own_memory_ = nullptr;
  std::size_t own_bytes_ = 0;
  std::atomic<int> wait_descriptor_ = -1;
  bool is_closed_ = false;  ///< guarded by mutex_
  bool is_armed_ = false;   ///< the descriptor becomes readable when something happens; guarded by mutex_

  mutable std::mutex mutex_;
  bool local_keys_ = false;     ///< sources must be registered
  bool has_listener_ = false;   ///< addresses of peers are those of TCP listeners
  bool is_over_rxm_ = false;    ///< the provider is layered over ofi_rxm, which has faults of its own
  bool needs_parting_ = false;  ///< the endpoint may be closed only after part()
  std::size_t inject_bytes_ = 0;
  std::size_t ordered_bytes_ = 0;
  std::uint64_t mark_ = 0;         ///< in the upper bits of all notices to this engine
  std::uint64_t notice_bits_ = 0;  ///< the lower bits, which are the notice itself
  BouncePool pool_;
  Stock pool_stock_;  ///< bytes of the pool
  std::vector<Target> targets_;
  std::int64_t used_targets_ = 0;
  std::vector<Operation> operations_;
  Operation* free_operation_ = nullptr;
  Stock operation_stock_;
  std::vector<Operation> probes_;   ///< by peer: a silent peer keeps its own and nothing that others need
  std::uint32_t seen_changes_ = 0;  ///< of the states of the peers
  std::size_t in_flight_ = 0;
  std::vector<Delayed> waiting_;
  std::uint32_t round_ = 0;
  std::int64_t asked_ns_ = 0;          ///< the last look of ask_about_waiting()
  std::atomic<std::size_t> open_ = 0;  ///< in flight and waiting
  std::vector<fi_context2> receives_;
  std::vector<fi_context2*> receives_owed_;  ///< used up by arrivals, to be posted again
};

}  // namespace torii::libfabric
