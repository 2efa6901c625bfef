// SPDX-License-Identifier: Apache-2.0
// The part of a rank's arena that teams use: taken when a team is made, given back or kept when a team is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "transports/shared_memory/arena.hpp"

namespace torii {

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
  virtual Rest rest() noexcept = 0;
  /// Tells the transport that the memory is not used any more; once, when it is at rest.
  virtual void forget() noexcept = 0;
  /// Once the memory is safe: how many bytes have been written, from its beginning. Nothing if that is not known.
  virtual std::optional<std::size_t> touched_bytes() const noexcept = 0;

 private:
  std::uint64_t offset_;
  std::size_t bytes_;
};

/// Thread-safe. Offsets count from the arena's beginning.
class StagingPool {
 public:
  /// The arena must outlive the pool.
  explicit StagingPool(shared_memory::Arena& arena);

  /// Zeroed memory for a team: taken page by page as it is touched, or that of a gone team. Throws Error{no_resource}.
  std::uint64_t allocate(std::size_t bytes);
  void free(std::uint64_t offset) { arena_.free(offset); }
  /// Takes the pages of a part of a team's memory from the machine. Throws Error{no_resource}.
  void reserve(std::uint64_t offset, std::size_t bytes);
  /// The most that one team takes: a fabric that pins the arena makes it small, and other teams want a part of it too.
  std::size_t bytes_max() const noexcept;
  /// Frees a gone team's memory, or keeps it for the next team, as soon as it is at rest.
  void retire(std::unique_ptr<RetiredMemory> memory);
  /// Arena memory for anybody. If there is none left, the pool gives back what it keeps. Throws Error{no_resource}.
  std::uint64_t take(std::size_t bytes, shared_memory::Backing backing);

 private:
  struct Spare {
    std::uint64_t offset;
    std::size_t bytes;
  };
  void free_retired();
  void keep_or_free(const RetiredMemory& memory);

  shared_memory::Arena& arena_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RetiredMemory>> retired_;
  std::vector<Spare> spares_;
};

}  // namespace torii
