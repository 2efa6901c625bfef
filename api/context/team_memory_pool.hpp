// SPDX-License-Identifier: Apache-2.0
// The arena memory of teams: allocated when a team is made, freed or cached when the team is gone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "api/context/late_writers.hpp"
#include "transports/shared_memory/arena.hpp"

namespace torii {

/// The outbox of a channel's standing rings. It is given back with the memory of its team, when no member reads it.
/// It is not cleared then: the next team writes each payload before anybody is told of it.
struct OutboxMemory {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  std::size_t touched_bytes = 0;  ///< from its beginning: these may have pages
};

/// A part of memory.
struct Stretch {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};
/// All that may have been written: control memory, messages of sends, and words of standing rings.
using Touched = std::array<Stretch, 3>;

/// The memory of a gone team, into which other ranks may still write.
class RetiredMemory {
 public:
  enum class Rest {
    none,   ///< a rank may still write into the memory, or an engine may read it
    safe,   ///< no rank writes into it any more
    never,  ///< a write may come at any time, so the addresses must never be used again
  };
  RetiredMemory(std::uint64_t offset, std::size_t bytes) : offset_(offset), bytes_(bytes) {}
  virtual ~RetiredMemory() = default;
  RetiredMemory(const RetiredMemory&) = delete;
  RetiredMemory& operator=(const RetiredMemory&) = delete;

  std::uint64_t offset() const noexcept { return offset_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Outboxes that other ranks may still read until the memory is at rest.
  void add_outboxes(std::vector<OutboxMemory> outboxes) noexcept { outboxes_ = std::move(outboxes); }
  const std::vector<OutboxMemory>& outboxes() const noexcept { return outboxes_; }
  /// Further allocations, from the arena's beginning, into which ranks of other nodes may still write.
  void add_entries(std::vector<Stretch> entries) noexcept { entries_ = std::move(entries); }
  const std::vector<Stretch>& entries() const noexcept { return entries_; }
  /// As of AttachedTeam::lose().
  virtual bool hold(int context_rank, const std::shared_ptr<const void>& writer) noexcept {
    return (void)context_rank, (void)writer, true;
  }
  virtual Rest rest() noexcept = 0;
  /// Whether nobody writes there once this rank's engines are closed.
  virtual bool is_left_to_engines() const noexcept = 0;
  /// Tells the transport that the memory is not used any more. Called once, after rest() was not `none`.
  virtual void forget() noexcept = 0;
  /// If the memory is safe: what may have been written; nothing if unknown.
  virtual std::optional<Touched> touched() const noexcept = 0;

 private:
  std::uint64_t offset_;
  std::size_t bytes_;
  std::vector<OutboxMemory> outboxes_;
  std::vector<Stretch> entries_;
};

/// Thread-safe. Offsets count from the arena's beginning.
class TeamMemoryPool {
 public:
  /// The arguments must outlive the pool.
  TeamMemoryPool(shared_memory::Arena& arena, LateWriters& late_writers);
  /// For an arena that outlives the pool: frees all memory of gone teams that is at rest. Returns the offsets of the
  /// memory that will be at rest when the engines are closed. Memory into which a rank of this node may still write is
  /// never used again. The last call.
  std::vector<std::uint64_t> close();

  /// Zeroed memory for a team: new memory, whose pages are taken on first touch, or cached memory. Throws
  /// Error{no_resource}.
  std::uint64_t allocate(std::size_t bytes);
  void free(std::uint64_t offset) { arena_.free(offset); }
  /// Memory with any content for the outbox of a channel, whose pages are taken on first touch. Throws
  /// Error{no_resource}.
  OutboxMemory take_outbox(std::size_t bytes);
  /// Allocates the pages of a part of a team's memory. Throws Error{no_resource}.
  void reserve(std::uint64_t offset, std::size_t bytes);
  /// The most memory of one team. If a fabric pins the arena, the arena is small and several teams must share it.
  std::size_t bytes_max() const noexcept;
  /// An allocation whose owner gives it back is freed when no rank may write there any more. Throws
  /// Error{invalid_argument} if nothing was allocated at `offset`.
  void set_aside(std::size_t offset);
  /// All memory of gone teams that shares it with the rank holds `writer`.
  bool hold(int context_rank, const std::shared_ptr<const void>& writer) noexcept;
  /// Frees or caches a gone team's memory as soon as no rank writes there.
  void retire(std::unique_ptr<RetiredMemory> memory);
  /// Arena memory for any purpose. If the arena is full, frees the cached memory first. Throws Error{no_resource}.
  std::uint64_t take(std::size_t bytes, shared_memory::Backing backing);

  /// Frees what no rank writes to any more.
  void free_retired();

 private:
  struct Spare {
    std::uint64_t offset;
    std::size_t bytes;
  };
  void free_spares() noexcept;
  void keep_or_free(const RetiredMemory& memory);
  void keep_or_free(const OutboxMemory& outbox);

  shared_memory::Arena& arena_;
  LateWriters& late_writers_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RetiredMemory>> retired_;
  std::vector<Spare> spares_;                 ///< zeroed memory of gone teams
  std::vector<OutboxMemory> spare_outboxes_;  ///< which hold old payloads
};

}  // namespace torii
