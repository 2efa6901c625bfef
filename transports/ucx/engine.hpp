// SPDX-License-Identifier: Apache-2.0
// One path through UCX: a worker, an endpoint per peer, and the operations in flight.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"
#include "transports/network/peer_states.hpp"
#include "transports/network/sleepers.hpp"
#include "transports/ucx/api.hpp"
#include "transports/ucx/device.hpp"
#include "transports/ucx/message.hpp"

namespace torii::ucx {

/// The common state of a transport's engines.
struct Shared {
  std::byte* arena;
  std::size_t arena_bytes;
  std::size_t registered_bytes;  ///< of the arena, if engines put
  int rank;
  int ranks;
  transports::PeerStates& peers;
  transports::Sleepers& sleepers;
};

/// Thread-safe behind its own lock; UCX is asked for no locks of its own.
class Engine {
 public:
  /// Opens the worker. If the engine puts, the device has the arena registered. Throws Error.
  Engine(std::shared_ptr<Device> device, const Manner& manner, int number, const Shared& shared);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The data with which a peer can send through this engine: addresses and a remote key, packed.
  std::string card() const;
  /// Connects to the peers' engines of the same number. Throws Error.
  void connect(const std::vector<std::string>& cards);

  Status put(const Put& put) noexcept;
  Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept;
  /// Moves what UCX holds and handles messages; does nothing if another thread does so.
  bool progress() noexcept;
  /// True if nothing reads a source any more, except for puts to lost peers.
  bool drained() noexcept;
  /// Asks every peer that received puts to confirm that all have arrived; confirmed() says whether they have.
  void flush() noexcept;
  bool confirmed() noexcept;
  /// Tells a peer that this engine exists. This does not count as using the peer.
  void greet(int peer) noexcept;
  bool is_greeted(int peer) noexcept;
  void take_leave(int peer) noexcept;
  bool has_left(int peer) noexcept;
  /// UCX watches connections by itself, for all engines.
  static bool probe(int, std::int64_t) noexcept { return true; }
  /// Another engine has lost the peer. Asks through this engine whether the peer is there. The result is
  /// PeerStates::answered() or cut(), or neither while the peer is in no call.
  void doubt(int peer, std::int64_t now_ns) noexcept;
  /// Whether UCX is storing a payload in that part of the arena.
  bool is_arriving(std::uint64_t offset, std::size_t bytes) noexcept;
  /// Ends all operations and takes no more: puts do nothing.
  void close() noexcept;

  /// Becomes readable when progress() has something to do; -1 if none was wanted.
  int wait_descriptor() const noexcept { return wait_descriptor_.load(std::memory_order_relaxed); }
  /// False if progress() has to be called before anybody polls wait_descriptor().
  bool may_sleep(int& most_us) noexcept;

 private:
  /// A peer, as this engine reaches it. UCX keeps its address.
  struct Target {
    Engine* engine = nullptr;
    int peer = 0;
    Owner<ucp_rkey_h, ucp_rkey_destroy> key;
    ucp_ep_h endpoint = nullptr;
    std::uint64_t arena_base = 0;
    std::uint64_t secret = 0;
    std::uint32_t in_flight = 0;
    std::uint32_t asked = 0;     ///< confirmations requested
    std::uint32_t answered = 0;  ///< and received
    std::uint32_t owed = 0;      ///< answers still to be sent
    bool is_doubted = false;     ///< the last question was sent because another engine has lost the peer
    bool used = false;
    bool greeted = false;
    bool left = false;
  };

  /// Memory that UCX reads until an operation completes, and the state of the operation.
  struct Operation {
    Engine* engine = nullptr;
    Operation* next_free = nullptr;
    int peer = 0;
    std::size_t bytes = 0;
    Header header{};
    std::array<std::byte, kInlineBytes> payload{};
    PutHold hold;
  };

  /// A payload that is being fetched into the arena after its header has arrived.
  struct Arrival {
    Engine* engine = nullptr;
    Arrival* next_free = nullptr;
    Header header{};
    std::size_t bytes = 0;  ///< 0: nothing is being fetched
  };

  void open();
  void close_connections() noexcept;
  void listen(unsigned id, ucp_am_recv_callback_t callback);
  Target& target(int peer) noexcept { return targets_[static_cast<std::size_t>(peer)]; }
  /// True if nothing is put to the peer through this engine any more.
  bool is_cut(int peer) const noexcept { return shared_.peers.is_cut(number_, peer); }

  /// A free item, or a new one; nullptr if memory is short.
  template <class Item>
  static Item* take(std::deque<Item>& all, Item*& first_free) noexcept {
    if (Item* const item = first_free) {
      first_free = item->next_free;
      return item;
    }
    try {
      return &all.emplace_back();
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  Status send(int peer, MessageId id, const Header& header, const std::byte* payload, std::size_t bytes,
              PutCount* owner = nullptr) noexcept;
  Status put_and_signal(const Put& put) noexcept;
  void flush_puts(Target& to) noexcept;
  void ask(Target& to) noexcept;
  Status put_bytes(Operation& operation, const std::byte* source, std::uint64_t offset, bool is_in_arena) noexcept;
  /// Counts the operation, or ends it if UCX has completed it already or refused it.
  Status started(Operation& operation, ucs_status_ptr_t request) noexcept;
  void end(Operation& operation) noexcept;
  void let_go_of_lost() noexcept;
  Status fail(int peer, ucs_status_t status, std::size_t bytes) noexcept;
  void break_down(const char* what) noexcept;
  std::string name() const { return "engine " + std::to_string(number_) + " (UCX " + device_->name() + ")"; }

  ucs_status_t take_put(const Header& header, void* data, std::size_t bytes, bool is_here) noexcept;
  void publish(const Header& header) noexcept { store_word(shared_.arena + header.signal_offset, header.signal); }
  void give_answers() noexcept;

  // UCX calls these inside progress(), that is under the lock.
  static void on_sent(void* request, ucs_status_t status, void* operation);
  static void on_error(void* target, ucp_ep_h endpoint, ucs_status_t status);
  static ucs_status_t on_nothing(void* engine, const void* header, std::size_t header_bytes, void* data,
                                 std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t on_put(void* engine, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                             const ucp_am_recv_param_t* how);
  static ucs_status_t on_piece(void* engine, const void* header, std::size_t header_bytes, void* data,
                               std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t on_ask(void* engine, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                             const ucp_am_recv_param_t* how);
  static ucs_status_t on_answer(void* engine, const void* header, std::size_t header_bytes, void* data,
                                std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t on_greeting(void* engine, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* how);
  static ucs_status_t on_farewell(void* engine, const void* header, std::size_t header_bytes, void* data,
                                  std::size_t bytes, const ucp_am_recv_param_t* how);
  static void on_arrived(void* request, ucs_status_t status, std::size_t bytes, void* arrival);
  /// False for a stranger's message, which is counted and changes nothing.
  bool is_ours(const void* header, std::size_t header_bytes) noexcept;
  /// The peer of an ask, answer or greeting; nullptr if no rank sends such a message.
  Target* sender_of(const void* header, std::size_t header_bytes) noexcept;

  Manner manner_;
  int number_;
  std::shared_ptr<Device> device_;
  Shared shared_;
  std::uint64_t secret_;  ///< messages without it are dropped
  Owner<ucp_worker_h, ucp_worker_destroy> worker_;
  std::atomic<int> wait_descriptor_ = -1;

  std::mutex mutex_;
  std::vector<Target> targets_;
  std::deque<Operation> operations_;
  Operation* free_operation_ = nullptr;
  std::deque<Arrival> arrivals_;
  Arrival* free_arrival_ = nullptr;
  std::atomic<std::size_t> in_flight_ = 0;
  bool owes_answers_ = false;
  std::uint32_t seen_changes_ = 0;  ///< of the states of the peers
  bool is_closed_ = false;
};

}  // namespace torii::ucx
