// SPDX-License-Identifier: Apache-2.0
// The arena of a rank: shared memory without a name, mapped by every rank of the node, and the allocator of its
// offsets.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/base/descriptor.hpp"
#include "runtime/fabric/extent.hpp"
#include "transports/shared_memory/life.hpp"

namespace torii::shared_memory {

/// The smallest useful arena.
inline constexpr std::size_t kArenaBytesMin = std::size_t{256} << 20;

/// Asks that pages of a shared mapping come from this NUMA node if it has any left, whichever process touches them
/// first. The policy belongs to the file and holds for every mapping of it. Returns 0, or the errno with which the
/// kernel refuses.
int prefer_node(void* base, std::size_t bytes, int node) noexcept;

/// A shared mapping of a whole memfd; the destructor unmaps it.
class Mapping {
 public:
  Mapping() noexcept = default;
  /// Maps `bytes` of `fd`; nothing is reserved. Throws Error{no_resource}.
  Mapping(int fd, std::size_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::byte* base() const noexcept { return base_; }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

/// When an allocation takes its memory. Either at once, so that running out is an error here, or page by page on first
/// touch, where the kernel ends a process that runs out.
enum class Backing { reserved, on_touch };

/// A sparse memfd that cannot shrink under its mappings. Thread-safe.
class Arena {
 public:
  /// The largest size of which this process could map `arenas`: `wanted_bytes`, halved as often as needed. Throws
  /// Error{no_resource} if that is below kArenaBytesMin.
  static std::size_t possible_bytes(std::size_t wanted_bytes, int arenas);

  /// `bytes` is a multiple of the page size. If the calling thread may run on one NUMA node only, pages come from that
  /// node. Peers touch slots first when they store into them, but this rank reads them. Throws Error{no_resource}.
  explicit Arena(std::size_t bytes);

  /// The default size of the part of an arena that fabrics may pin, for this many ranks on the machine.
  static std::size_t pinnable_bytes(int ranks);
  /// Pins a further extent with a fabric. Throws Error{no_resource}.
  using Pinner = std::function<void(const Extent& extent)>;
  /// The extents with which a fabric that pins begins: all that are pinned already, or one that holds what is in use,
  /// of `most` bytes at most. Until the result is destroyed, which may be after pin(), pages that are freed stay.
  std::shared_ptr<const std::vector<Extent>> extents_to_pin(std::size_t most);
  /// A fabric has pinned these extents, and will pin others by `pinner`, one at a time, until the result is destroyed.
  /// From now on only pinned memory is handed out, of the first `most` bytes, a multiple of 64 KiB. No allocation
  /// crosses the ends of extents, and their pages stay: the fabric writes to the pages that it knows. Nothing behind
  /// `most` may be in use. Throws Error{no_resource}.
  [[nodiscard]] std::shared_ptr<const void> pin(std::size_t most, const std::vector<Extent>& pinned, Pinner pinner);
  bool is_pinned() const noexcept { return pinned_most_ != 0; }

  int fd() const noexcept { return fd_.get(); }
  /// Ends with the arena, or before with the process.
  const Descriptor& life() const noexcept { return life_; }
  std::byte* base() const noexcept { return mapping_.base(); }
  std::size_t bytes() const noexcept { return bytes_; }
  /// The part that can be allocated.
  std::size_t capacity_bytes() const noexcept { return is_pinned() ? pinned_most_.load() : bytes_; }
  /// Allocated bytes, after rounding.
  std::size_t used_bytes() const noexcept;
  /// The offsets of all allocations, ascending.
  std::vector<std::size_t> used_offsets() const;
  /// The bytes of an allocation, after rounding. Throws Error{invalid_argument} if nothing was allocated at `offset`.
  std::size_t bytes_at(std::size_t offset) const;
  /// True if [address, address + bytes) is in the own mapping.
  bool contains(const void* address, std::size_t bytes) const noexcept;

  /// The offset of `bytes` zeroed bytes: a multiple of 64 KiB for 64 KiB or more, otherwise of 64. Throws
  /// Error{invalid_argument} for 0 bytes, {no_resource} if the arena or the machine does not have that much left.
  std::size_t allocate(std::size_t bytes, Backing backing = Backing::reserved);
  /// Gives the memory back to the machine, unless it is pinned. Throws Error{invalid_argument} if nothing was allocated
  /// at `offset`.
  void free(std::size_t offset);

  /// For an allocation made on_touch, at multiples of the page: takes the pages of a range from the machine. Throws
  /// Error{no_resource}; release() then gives back the pages taken so far.
  void reserve(std::size_t offset, std::size_t bytes) {
    ask_platform(bytes);
    if (!is_pinned()) populate(offset, bytes);  // otherwise they are there
  }
  /// Gives the pages back; they are zero when they are touched again.
  void release(std::size_t offset, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    give_back_pages(offset, bytes);
  }

 private:
  struct Keeping;
  struct Unpinning;
  std::size_t take(std::size_t bytes, std::size_t alignment);
  std::optional<std::size_t> find_room(std::size_t bytes, std::size_t alignment);
  std::optional<std::size_t> first_in(const Extent& part, std::size_t bytes, std::size_t alignment) const noexcept;
  std::size_t used_end() const noexcept;
  void pin_more(std::size_t bytes);
  void pin_next(std::size_t bytes);
  using Ranges = std::map<std::size_t, std::size_t>;  // offset -> bytes
  Ranges::const_iterator find(std::size_t offset) const;
  void give_back(Ranges::node_type range) noexcept;
  void give_back_pages(std::size_t offset, std::size_t bytes) noexcept;
  void punch(std::size_t offset, std::size_t bytes) noexcept;
  static void ask_platform(std::size_t bytes);
  void populate(std::size_t offset, std::size_t bytes);
  void ask_for(std::size_t together, std::size_t bytes);

  std::size_t bytes_;
  std::atomic<std::size_t> pinned_most_ = 0;  ///< 0: nothing is pinned
  Descriptor fd_;
  Descriptor life_ = make_life();
  Mapping mapping_;
  mutable std::mutex mutex_;
  std::vector<Extent> extents_;  ///< that are pinned, in order and without gaps
  int keepers_ = 0;              ///< fabrics that have begun to pin
  std::map<int, Pinner> pinners_;
  int last_pinner_ = 0;
  Ranges free_;  // never adjacent; pages wholly inside are holes, so zero
  Ranges used_;
  std::size_t used_bytes_ = 0;
  std::atomic<std::size_t> unasked_bytes_ = 0;  ///< may be taken before asking the kernel again
};

}  // namespace torii::shared_memory
