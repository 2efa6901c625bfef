// SPDX-License-Identifier: Apache-2.0
// The board in a rank's arena on which ranks of its node found teams: layout and words. Who does what, and when, is in
// api/agreement/node_founding.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/fabric/words.hpp"

namespace torii {

/// Why a founding has failed, as one member tells it.
struct FoundingFailure {
  static constexpr std::size_t kTextBytes = 296;
  std::int32_t status;  ///< a Status, never ok
  std::int32_t member;  ///< that the text names; -1: none
  char text[kTextBytes];
};

/// Everything that has to be equal on all members, as this rank has it.
struct FoundingTerms {
  std::uint64_t number = 0;
  std::uint64_t digest = 0;          ///< of `text`
  std::string_view text;             ///< options and settings, a "NAME=value" a line
  std::span<const int> members;      ///< ranks of the context, in the team's order
  std::span<const int> rank_places;  ///< by rank of the context: its place among the ranks of its node
};

/// A member's way through one founding.
enum class FoundingState : std::uint8_t {
  none,     ///< no member, or fresh memory
  awaited,  ///< the opener has opened the founding
  inside,   ///< the member uses the entry
  come,     ///< its slot has the offset of its memory for the team
  made,     ///< it has made its object
  left,     ///< it uses the entry no more, or is not waited for
};
enum class FoundingVerdict : std::uint8_t { open, made, failed };  // any other byte counts as `failed`

/// A view of one entry of a board. There is a slot and a failure for each rank of the node, by its place.
class FoundingEntry {
 public:
  static constexpr std::size_t kTextBytes = 4096;
  static std::size_t bytes(int places) noexcept;
  FoundingEntry(std::byte* memory, int places) noexcept : memory_(memory), places_(places) {}

  struct Head {
    std::atomic<std::uint64_t> number;
    std::atomic<std::uint64_t> use;      ///< of the board
    std::atomic<std::uint64_t> verdict;  ///< a FoundingVerdict; above it the place whose failure it is
    std::uint64_t digest;
    std::uint32_t count;  ///< of members
    std::uint32_t text_bytes;
  };
  struct Slot {
    std::atomic<std::uint64_t> state;  ///< a FoundingState; above it the serial of the founding
    std::uint64_t offset;
  };
  Head& head() const noexcept { return *reinterpret_cast<Head*>(memory_); }
  Slot& slot(int place) const noexcept { return reinterpret_cast<Slot*>(memory_ + kLineBytes)[place]; }
  FoundingFailure& failure(int place) const noexcept;
  int* members() const noexcept;
  char* text() const noexcept;
  int places() const noexcept { return places_; }

 private:
  std::byte* memory_;
  int places_;
};

/// A rank's seat in a founding, from when it is inside until it leaves. Meanwhile the entry is used for nothing else.
class FoundingSeat {
 public:
  FoundingSeat(FoundingEntry entry, int place, std::uint64_t serial) noexcept
      : entry_(entry), place_(place), serial_(serial) {}

  void tell_come(std::uint64_t offset) noexcept;
  void tell_made() noexcept { tell(FoundingState::made); }
  /// The last use of the entry.
  void leave() noexcept { tell(FoundingState::left); }
  /// Whether the rank at that place has told so. Where a living one has left since, there is a verdict.
  bool has_come(int place) const noexcept { return has_told(place, FoundingState::come); }
  bool has_made(int place) const noexcept { return has_told(place, FoundingState::made); }
  /// For a rank that has come.
  std::uint64_t offset_of(int place) const noexcept { return entry_.slot(place).offset; }

  // The opener's terms. They are bytes of a peer: only their lengths are sure.
  std::uint64_t digest() const noexcept { return entry_.head().digest; }
  std::string_view text() const noexcept;
  std::span<const int> members() const noexcept;

  FoundingVerdict verdict() const noexcept;
  /// All members have made their objects.
  void conclude() noexcept;
  /// False, and nothing happens, if there is a verdict already.
  bool fail(const FoundingFailure& failure) noexcept;
  /// The reason of a founding that has failed: its status is a bad one, and its text ends.
  FoundingFailure failure() const noexcept;
  /// A rank that has not come to a founding that has failed is not waited for any more, and a dead one never.
  void excuse(int place, bool is_dead) noexcept;

 private:
  bool has_told(int place, FoundingState state) const noexcept;
  void tell(FoundingState state) noexcept;

  FoundingEntry entry_;
  int place_;
  std::uint64_t serial_;
};

/// Memory of one rank, the opener, zero at first. A FoundingOpener opens entries; other ranks enter. Contexts use a
/// board one after the other: each such `use` has its number, and its ranks never enter an entry of another use.
class FoundingBoard {
 public:
  /// So many foundings of one opener may be under way at a time: as many as fit into 1 MiB, but 16 at least. A fabric
  /// that pins the arena pins boards as well.
  static constexpr int kEntriesMost = 64;
  static int entries_for(int places) noexcept;
  static std::size_t bytes(int places, int entries) noexcept;
  FoundingBoard(std::byte* memory, int places, std::uint64_t use, int entries) noexcept
      : memory_(memory), places_(places), use_(use), entries_(entries) {}

  /// Whether a founding of that number waits for the rank at `place`.
  bool awaits(std::uint64_t number, int place) const noexcept { return find(number, place).has_value(); }
  /// The rank is inside the oldest such founding from now on.
  std::optional<FoundingSeat> enter(std::uint64_t number, int place) noexcept;

 private:
  friend class FoundingOpener;
  struct Found {
    int entry;
    std::uint64_t word;  ///< of the rank's slot
  };
  std::optional<Found> find(std::uint64_t number, int place) const noexcept;
  /// How many entries were ever used: nobody looks at the others, which have no pages unless they are pinned.
  std::atomic<std::uint32_t>& used() const noexcept { return *reinterpret_cast<std::atomic<std::uint32_t>*>(memory_); }
  FoundingEntry entry(int number) const noexcept;

  std::byte* memory_;
  int places_;
  std::uint64_t use_;
  int entries_;
};

/// Opens the foundings of its rank's board. Thread-safe.
class FoundingOpener {
 public:
  FoundingOpener(FoundingBoard board, int place) noexcept : board_(board), place_(place) {}

  /// The next context uses the board, in which this rank has that place.
  void begin_use(int place) noexcept;
  std::uint64_t use() const noexcept { return board_.use_; }
  int places() const noexcept { return board_.places_; }
  int entries() const noexcept { return board_.entries_; }
  const std::byte* memory() const noexcept { return board_.memory_; }
  /// Nobody is inside an entry, or can enter one.
  bool is_at_rest() noexcept;

  /// The opener is the first to come, with its memory for the team at `offset`; or it fails the founding at once, for
  /// `refusal`. None if all entries are in use. From `late_ns` on, a member that has not come counts as late.
  std::optional<FoundingSeat> open(const FoundingTerms& terms, std::uint64_t offset, const FoundingFailure* refusal,
                                   std::int64_t late_ns) noexcept;
  /// Excuses members that are late to a founding which has failed, and the dead.
  void make_room(std::int64_t now_ns, bool (*has_ended)(void* data, int place), void* data) noexcept;

 private:
  bool is_free(int entry) const noexcept;
  FoundingSeat write(FoundingEntry entry, const FoundingTerms& terms) noexcept;

  std::mutex mutex_;
  FoundingBoard board_;
  int place_;
  int used_ = 0;
  std::array<std::int64_t, FoundingBoard::kEntriesMost> late_ns_{};
  std::uint64_t serial_ = 0;  ///< of the last founding
};

}  // namespace torii
