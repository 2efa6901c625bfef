// SPDX-License-Identifier: Apache-2.0
// The transport interface of the executor: engines that put bytes and signals into the arenas of peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/counters.hpp"
#include "runtime/base/deadline.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/extent.hpp"
#include "runtime/fabric/put_owner.hpp"
#include "runtime/fabric/sleep_mark.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {

inline constexpr int kEnginesMax = 16;

/// The abilities of a transport. The executor depends on these only, never on the kind of transport.
struct Capabilities {
  std::string_view name;
  bool mapped = false;          ///< peers' arenas can be addressed: kernels store straight into them
  bool wakes_on_put = false;    ///< a sleeping rank wakes when something is put into its arena
  bool notices_deaths = false;  ///< alive() finds out by itself; otherwise the context has to watch
  int engines = 1;
  bool selects_ties = false;  ///< messages take the ways that Stream::ties names
  int rails = 1;              ///< networks or devices that the engines use: engine e uses number e modulo `rails`
  /// Not 0: extents of the own arena are registered before anything is put there, at most so many bytes from the
  /// arena's beginning (pin()), and their pages must not be replaced.
  std::size_t pinned_bytes = 0;
  /// The longest put that all ranks can make; a longer one is refused with invalid_argument. 0: any.
  std::size_t put_bytes_most = 0;
  /// About as many bytes as travel between nodes in the time that a put without payload takes; equal on all ranks. 0: a
  /// put costs nothing.
  std::size_t put_bytes = 0;
  bool deals_engines = false;  ///< an engine that is free takes the next put, whichever engine the put names
  bool gathers = false;        ///< a payload anywhere in the own arena travels as quickly as one from a send slot
};

/// One put. If `source` is nullptr, the payload is already stored (a kernel wrote it to a mapped target). Otherwise the
/// engine moves `bytes` from `source` to `target_offset` of the peer's arena. Then `signal` becomes visible at
/// `signal_offset`, never before the payload. A put with payload signals a line: `signal_offset` is then a multiple of
/// kLineBytes. Up to 56 bytes of payload may be in that line itself, at signal_offset + 8.
/// A transport that does not map the peer reads `source` until the put's owner is drained; but a payload in the
/// signal's line has been read when put() returns (is_in_line()). Until the signal is visible its word may hold any
/// value but `signal`, so a reader compares it for equality with the awaited value. The next put to a line may be made
/// only after its reader has answered the last put. Two puts in flight may leave any value.
struct Put {
  int peer = 0;  ///< rank in the context
  int engine = 0;
  const std::byte* source = nullptr;
  std::uint64_t target_offset = 0;
  std::size_t bytes = 0;
  std::uint64_t signal_offset = 0;
  std::uint64_t signal = 0;
  /// The line before `source` belongs to this put as `source` does, and may be overwritten. That is so in a send slot
  /// that is laid out like the receive slot. With target_offset = signal_offset + kLineBytes one transfer then carries
  /// both.
  bool line_before = false;
  /// Counts the put from before put() returns until no engine holds it any more or its peer is lost; nullptr: the put
  /// is not counted.
  PutCount* owner = nullptr;

  bool is_in_line() const noexcept {
    return source != nullptr && target_offset == signal_offset + sizeof(signal) && bytes <= kInlineBytes;
  }
};

/// Ranks are those of the context. Threads may put and call progress() at once, even to one peer by one engine: teams
/// do so, and an abort. The data path is noexcept.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Those of the context, for all that runs over this transport.
  Counters& counters() noexcept { return counters_; }
  const Counters& counters() const noexcept { return counters_; }

  virtual const Capabilities& capabilities() const noexcept = 0;
  virtual int rank() const noexcept = 0;
  virtual int ranks() const noexcept = 0;

  /// The node of a rank: ranks of one node, and only they, map each other's arenas. Equal on all ranks.
  virtual int node(int rank) const noexcept = 0;
  /// The address of byte `offset` of `peer`'s arena in this process, or nullptr if the peer is not mapped. The own
  /// arena is always mapped.
  virtual std::byte* mapped(int peer, std::uint64_t offset) noexcept = 0;

  /// The length of the arena of a mapped peer: the limit of the offsets that it offers.
  virtual std::uint64_t arena_bytes() const noexcept { return UINT64_MAX; }

  /// The word in which a mapped peer marks that it sleeps. A rank that has stored a signal without put() calls ring()
  /// if the mark is not 0. nullptr: every put to that peer goes through put().
  virtual const std::atomic<std::uint32_t>* sleeping(int peer) noexcept {
    (void)peer;
    return nullptr;
  }
  virtual void ring(int peer) noexcept { (void)peer; }

  /// Pins one more extent of the own arena, so that peers can put there, and this rank from there; for transports that
  /// pin memory (Capabilities::pinned_bytes). No put may cross the ends of an extent. Called by one thread at a time.
  /// Throws Error{no_resource}.
  virtual void pin(const Extent& extent) { (void)extent; }
  virtual Status put(const Put& put) noexcept = 0;
  /// Whether read() can take bytes out of the private memory of that peer's process.
  virtual bool readable(int peer) const noexcept {
    (void)peer;
    return false;
  }
  /// Copies `bytes` at `address` of the peer's process to `to`, now. peer_lost when the process has ended or runs
  /// another program, unsupported when the kernel refuses, which it may begin to do at any time.
  virtual Status read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) noexcept {
    (void)peer, (void)address, (void)to, (void)bytes;
    return Status::unsupported;
  }
  /// Makes one word visible in a peer's arena after everything this thread did before: a credit. The next value for a
  /// word is put after the peer has answered the last one.
  virtual Status put_word(int peer, std::uint64_t offset, std::uint64_t value) noexcept = 0;
  /// Moves the puts that engines hold and processes completions. If peers are not mapped, without these calls nothing
  /// becomes visible here, and puts may not leave.
  virtual Status progress() noexcept = 0;
  /// True when no engine holds a put that still reads its source, of any owner: for setup and tests. A call checks only
  /// its own puts (PutOwner), since a peer that takes nothing delays the puts of others.
  virtual bool drained() noexcept = 0;

  /// Nanoseconds of the clock by which this rank waits, and times its engines: that of the machine, or of a simulation.
  virtual std::int64_t clock_ns() const noexcept { return now_ns(); }
  /// Sleeps until something is put into the own arena, `most_us` at the longest. Threads may sleep at once.
  /// `still_idle` is asked once more after peers can see that this rank sleeps, so that no put in between is missed.
  /// Sleeps of one wait in which nothing moves have one mark, which peers see until it is cleared.
  virtual void sleep(SleepMark& mark, int most_us, bool (*still_idle)(void* data), void* data) noexcept = 0;
  /// The same for a sleep that stands alone.
  void sleep_once(int most_us, bool (*still_idle)(void* data), void* data) noexcept {
    SleepMark mark;
    sleep(mark, most_us, still_idle, data);
  }
  /// For a thread that has waited for so long and goes on to wait (Waiting), if every rank has a CPU. A transport may
  /// tell peers on which one the thread is, and may move it to another one that its affinity has. 0: the thread only
  /// tells, and leaves alone what another one of its rank has just told.
  virtual void note_wait(std::int64_t waited_ns, std::int64_t now_ns) noexcept { (void)waited_ns, (void)now_ns; }
  /// False once a peer is known to be dead, or is not reached any more.
  virtual bool alive(int peer) noexcept = 0;
  /// False once the peer's end is proved. That no engine reaches it proves nothing: a switch may have failed.
  virtual bool may_live(int peer) noexcept { return alive(peer); }
  /// Gives up a set of engines, a bit each, on this rank. Later puts that name them go through the others, of which one
  /// has to be open. What a peer has put through them is not awaited any more. A device may still write it where it was
  /// put to, so that memory must never serve another purpose (GoneTeam). What a device still reads counts for its owner
  /// until it is done.
  virtual void close_engines(std::uint32_t engines) noexcept { (void)engines; }
  /// Open engines that do not reach a living peer. While there are any, progress() returns Status::transport.
  virtual std::uint32_t lost_engines() const noexcept { return 0; }
  virtual std::uint32_t closed_engines() const noexcept { return 0; }
  /// Memory of the own arena is about to serve another purpose, and nothing is in flight to it. Messages of which a
  /// part has come will never be complete.
  virtual void forget(std::uint64_t offset, std::size_t bytes) noexcept { (void)offset, (void)bytes; }
  /// Whether something that a peer has announced is still being stored in that part of the own arena. Later puts of the
  /// peer, through the same engine too, may have come already.
  virtual bool is_arriving(std::uint64_t offset, std::size_t bytes) noexcept {
    (void)offset, (void)bytes;
    return false;
  }
  /// The number of dropped messages and notices that did not come from a rank of the job.
  virtual std::uint64_t strangers() const noexcept { return 0; }
  /// Why a call returned Status::transport or peer_lost, or a peer is not alive: a sentence, or nothing.
  virtual std::string failure_text() const { return {}; }
  /// This machine has more ranks than CPUs: a waiting rank yields its CPU early.
  virtual bool oversubscribed() const noexcept = 0;
  /// Oversubscribed, and each poll of an engine is a system call or more, which delays the work of other ranks.
  bool polling_is_costly() const noexcept {
    return oversubscribed() && capabilities().wakes_on_put && !capabilities().mapped;
  }

 private:
  Counters counters_;
};

}  // namespace torii
