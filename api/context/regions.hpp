// SPDX-License-Identifier: Apache-2.0
// Memory that the caller registered with a context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace torii {

namespace shared_memory {
class Adoption;
class Arena;
}  // namespace shared_memory
class LateWriters;

/// One registration; a pointer to it is the caller's handle.
struct Region {
  const void* address;
  std::size_t bytes;
  bool adopted;  ///< its pages belong to the arena
};

/// Thread-safe; find() never waits for a lock.
class Regions {
 public:
  /// The arguments must outlive this object.
  Regions(shared_memory::Arena& arena, LateWriters& late_writers);
  /// Adopted memory becomes private again and keeps its contents.
  ~Regions();

  /// Registers the range. With `adopt`, peers can then access it in place; memory of the arena needs no adoption.
  /// Throws Error{invalid_argument | unsupported | no_resource} and then changes nothing.
  Region* add(const void* address, std::size_t bytes, bool adopt);
  /// Throws Error{not_registered} for a handle that add() did not return. Removes the region even if
  /// Adoption::give_back() throws.
  void remove(Region* handle);

  /// The offset in this rank's arena if all of [address, address + bytes) was adopted in one piece.
  std::optional<std::int64_t> find(const void* address, std::size_t bytes) const noexcept;
  /// A rank is left out, and LateWriters knows it: that rank may know the memory that is adopted now.
  void hold() noexcept;
  /// Uses the arena again that such a rank could know, if it cannot write there any more.
  void end_hold() noexcept;

 private:
  shared_memory::Arena& arena_;
  LateWriters& late_writers_;
  std::unique_ptr<shared_memory::Adoption> adoption_;
  std::mutex hold_mutex_;
  std::atomic<bool> is_held_ = false;  ///< changes under that lock
  std::mutex mutex_;
  std::map<const Region*, std::unique_ptr<Region>> regions_;
};

}  // namespace torii
