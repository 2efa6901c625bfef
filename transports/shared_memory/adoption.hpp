// SPDX-License-Identifier: Apache-2.0
// Memory of the process that becomes memory of the arena, at its own addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "transports/shared_memory/address_table.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/mappings.hpp"

namespace torii::shared_memory {

/// Exchanges whole pages, so other data on the first and last page of a buffer is adopted with it: same address, same
/// contents. Pages are counted, so buffers may share them. Neighbouring buffers are neighbours in the arena too,
/// because a window keeps the distance between addresses and offsets. A buffer is therefore one piece in the arena even
/// if its first page came with another buffer. A forked child gets private pages at the same addresses, and keeps their
/// contents when they are given back here. Thread-safe.
class Adoption {
 public:
  explicit Adoption(Arena& arena);
  /// Gives back adopted memory. If the kernel refuses, the pages stay shared, with their contents.
  ~Adoption();
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

  /// Adopts the pages of [address, address + bytes). Throws Error{invalid_argument} for no bytes, or for pages of an
  /// earlier call that were unmapped since; Error{unsupported} for memory that is not private, anonymous, readable and
  /// writable; Error{no_resource}. After an exception memory and contents are as before.
  void adopt(const void* address, std::size_t bytes);
  /// Undoes one adopt() of the same range: pages without another user become private again with their contents,
  /// wherever mremap has moved them. Throws Error{invalid_argument} if they were moved or unmapped, and
  /// Error{no_resource} if private memory is refused; the pages then stay shared, with their contents. The range counts
  /// as given back in any case.
  void give_back(const void* address, std::size_t bytes);

  /// A rank that may be in the middle of a store into adopted pages does not count any more. From now on the places in
  /// the arena of pages that are given back are not used again, until end_hold().
  void hold() noexcept;
  void end_hold() noexcept;

  /// The arena's offset of `address` if all of [address, address + bytes) is adopted in one piece.
  std::optional<std::int64_t> find(const void* address, std::size_t bytes) const noexcept {
    return table_.find(address, bytes);
  }

 private:
  /// Addresses for which a range of the arena is reserved.
  struct Window {
    AddressRange range;
    std::size_t offset = 0;     ///< in the arena, of range.first
    bool stranded = false;      ///< has pages that could not be given back: never used again nor freed
    bool is_unwatched = false;  ///< nobody can tell when the last forked child that sees its pages ends
    bool held = false;          ///< there was a hold() since it was made
    bool left = false;          ///< pages were given back while it was held: not used again nor freed meanwhile
    bool is_usable() const noexcept { return !stranded && !left; }
    std::size_t offset_of(std::uintptr_t address) const noexcept { return offset + (address - range.first); }
  };
  /// Adopted pages, from the key in pages_ to `end`.
  struct Pages {
    std::uintptr_t end;
    Window* window;
    int count;
  };
  struct Piece {
    AddressRange range;
    Window* window;
  };

  Window& window_for(AddressRange range);
  Window& make_window(AddressRange range);
  void drop_unused_windows() noexcept;
  void check_still_there(AddressRange range, const std::vector<MappedRange>& mappings) const;
  std::vector<AddressRange> fresh_parts(AddressRange range) const;
  void exchange(const std::vector<AddressRange>& parts, Window& window);
  void split_at(std::uintptr_t address);
  void add(AddressRange range, Window& window);
  void remove(AddressRange range, std::vector<Piece>& freed) noexcept;
  void publish() noexcept;
  std::size_t restore(const Piece& piece, const std::vector<MappedRange>& mappings);
  void release(const Piece& piece) noexcept;
  void release_kept() noexcept;
  bool is_kept(AddressRange range, const Window& window) const noexcept;
  void take_back(AddressRange range, const Window& window) noexcept;
  bool is_own(const MappedRange& mapping) const noexcept;

  /// One lock for all contexts of the process. Nobody else may exchange pages between the look at the mappings and the
  /// exchange, nor fork in the middle.
  static std::mutex& exchanging();
  static std::size_t page_bytes();

  // Pages for forked children (adoption_fork.cpp). Callers hold exchanging().
  static std::vector<const Adoption*>& adoptions();
  void join_forks();
  void leave_forks() noexcept;
  static void before_fork() noexcept;
  static void after_fork(bool is_child) noexcept;
  static void give_child_pages() noexcept;
  bool is_seen_by_child(const Piece& piece) const noexcept;

  Arena& arena_;
  std::uint64_t inode_ = 0, device_major_ = 0, device_minor_ = 0;
  std::list<Window> windows_;
  std::map<std::uintptr_t, Pages> pages_;
  std::vector<Piece> kept_;                   ///< given back here, but forked children still see them
  std::vector<AddressTable::Entry> entries_;  ///< room for publish()
  AddressTable table_;
};

}  // namespace torii::shared_memory
