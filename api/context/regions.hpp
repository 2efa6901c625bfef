// SPDX-License-Identifier: Apache-2.0
// Memory of the caller that it registered with a context.
#pragma once

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

/// One registration; a pointer to it is the caller's handle.
struct Region {
  const void* address;
  std::size_t bytes;
  bool adopted;  ///< its pages are the arena's
};

/// Thread-safe; find() may be called at any time without waiting for others.
class Regions {
 public:
  /// `arena` lives longer.
  explicit Regions(shared_memory::Arena& arena);
  /// Adopted memory becomes private again, contents kept.
  ~Regions();

  /// Remembers the range; with `adopt` peers can reach it in place afterwards, unless it lies in the arena anyway.
  /// Throws Error{invalid_argument | unsupported | no_resource}; memory and contents are then as before.
  Region* add(const void* address, std::size_t bytes, bool adopt);
  /// Throws Error{not_registered} for a handle that add() did not give; what give_back() of Adoption throws, when the
  /// region is gone all the same.
  void remove(Region* handle);

  /// The offset in the own arena, when all of [address, address + bytes) was adopted in one piece.
  std::optional<std::int64_t> find(const void* address, std::size_t bytes) const noexcept;

 private:
  shared_memory::Arena& arena_;
  std::unique_ptr<shared_memory::Adoption> adoption_;
  std::mutex mutex_;
  std::map<const Region*, std::unique_ptr<Region>> regions_;
};

}  // namespace torii
