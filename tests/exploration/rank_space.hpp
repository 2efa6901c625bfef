// SPDX-License-Identifier: Apache-2.0
// The private memory of a rank: its stack and its heap, side by side at a fixed address. A copy of the bytes in use is
// all that the rank is, so a search can go back to any earlier moment and run on from there.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace torii::exploration {

class RankSpace {
 public:
  RankSpace();
  ~RankSpace();
  RankSpace(const RankSpace&) = delete;
  RankSpace& operator=(const RankSpace&) = delete;

  /// An empty space whose rank will run `program` when it is resumed first.
  void begin(std::function<void()> program);
  /// From outside: runs the rank until it pauses. From inside: back to whoever has resumed it.
  void resume();
  void pause();

  /// Memory that lasts as long as the space; nothing is given back.
  void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
  /// True if the address is in any rank's space.
  static bool is_inside_any(const void* at) noexcept;
  /// Overwrites what calls that have returned left on the stack below the caller: it would make equal moments differ.
  static void forget_calls() noexcept;

  struct Contents {
    std::vector<std::byte> heap;
    std::vector<std::byte> stack;
  };
  void save(Contents& to) const;
  void restore(const Contents& from);
  std::uint64_t hash(std::uint64_t seed) const;

 private:
  struct HeapHead;  ///< at the beginning of the heap, so that copies contain it
  std::size_t stack_bytes() const noexcept;
  static void enter();

  std::byte* base_;
  HeapHead* head_;
  ucontext_t outside_{};
};

}  // namespace torii::exploration
