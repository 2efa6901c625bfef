// SPDX-License-Identifier: Apache-2.0
// One path to the fabric: an endpoint of a device, its writes, and what arrives through it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/tuned_constants.hpp"
#include "runtime/fabric/transport.hpp"
#include "transports/libfabric/endpoint.hpp"
#include "transports/libfabric/liveness.hpp"
#include "transports/libfabric/options.hpp"
#include "transports/libfabric/own_memory.hpp"
#include "transports/libfabric/receives.hpp"
#include "transports/libfabric/shared.hpp"
#include "transports/libfabric/writes.hpp"

namespace torii::libfabric {

/// The data with which a peer can put through an engine; sent as it is in memory.
struct EngineCard {
  RemoteExtent first;  ///< of the arena; others are in the table of the engine's own memory
  RemoteExtent own;
  std::uint64_t mark;  ///< goes with every notice, see mark_bits()
  std::uint64_t name_bytes;
  std::array<std::byte, 256> name;  ///< the endpoint's address
};

/// Thread-safe behind its own lock. The provider is asked for no locks of its own, unless engines share the device.
class Engine {
 public:
  /// Opens an endpoint. Throws Error.
  Engine(std::shared_ptr<Device> device, int number, const Shared& shared, const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Registers extents of the arena, if no other engine of the device has done so, and memory of its own. Throws
  /// Error{no_resource}.
  void make_ready(const Options& options, const std::vector<Extent>& extents);
  /// Registers one more extent, as make_ready() does, and shows it to peers. Throws Error{no_resource}.
  void pin(const Extent& extent);
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
  /// take_leave() it also says whether peers have left, if the endpoint cannot be closed before.
  void flush() noexcept;
  bool confirmed() noexcept { return part() && is_quiet(false); }
  /// See Liveness.
  void greet(int peer) noexcept;
  bool is_greeted(int peer) const noexcept { return liveness_.is_greeted(peer); }
  void take_leave(int peer) noexcept;
  bool has_left(int peer) const noexcept { return liveness_.has_left(peer); }
  bool probe(int peer, std::int64_t now_ns) noexcept;
  void doubt(int peer, std::int64_t now_ns) noexcept;
  /// Takes no more: puts do nothing. Ends all transfers but those that a device has: progress() awaits
  /// their ends.
  void close() noexcept;

  /// Becomes readable when progress() has something to do; -1 if the provider has no such descriptor.
  int wait_descriptor() const noexcept { return endpoint_.wait_descriptor(); }
  /// False if progress() has to be called before anybody polls wait_descriptor(). Shortens `most_us` if the descriptor
  /// may stay unreadable although there is something to do.
  bool may_sleep(int& most_us) noexcept;

 private:
  static constexpr auto kJoinedBytesMax = tuned<std::size_t>("sending.joined_bytes_max");

  void add_extent(const Extent& extent);
  bool part() noexcept;
  bool may_close() noexcept;
  void close_endpoint() noexcept;
  void keep_endpoint() noexcept;
  /// Whether a device writes and reads by itself, to and from memory that stays registered for other engines.
  bool outlives_closing() const noexcept { return needs_parting_ && device_->is_shareable(); }
  bool is_quiet(bool but_for_confirmed) noexcept;

  bool put_joined(Transfer transfer, const Put& put) noexcept;
  /// Marks the peer as used and starts the transfer.
  Status send(const Transfer& transfer) noexcept;
  Status send_word(const Put& put, std::uint64_t value, std::uint64_t notice) noexcept;

  bool end_more() noexcept;
  bool take_completions() noexcept;
  void take_all() noexcept;
  void take_completion(const fi_cq_data_entry& entry) noexcept;
  void take_error() noexcept;
  void post_receives() noexcept;

  Shared shared_;
  // Closed from the last to the first.
  std::shared_ptr<Device> device_;
  OwnMemory own_;
  Endpoint endpoint_;
  bool is_closed_ = false;  ///< guarded by mutex_
  bool is_ending_ = false;  ///< it is closed, but a device may still have writes of it; guarded by mutex_

  mutable std::mutex mutex_;
  Writes writes_;
  Liveness liveness_;
  Receives receives_;
  bool needs_parting_;  ///< the endpoint may be closed only after part()
  std::size_t ordered_bytes_ = 0;
  std::uint64_t mark_ = 0;          ///< in the upper bits of all notices to this engine
  std::uint64_t notice_bits_ = 0;   ///< the lower bits, which are the notice itself
  std::uint32_t seen_changes_ = 0;  ///< of the states of the peers
};

}  // namespace torii::libfabric
