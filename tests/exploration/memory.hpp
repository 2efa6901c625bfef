// SPDX-License-Identifier: Apache-2.0
// A machine with weakly ordered memory, as far as ranks share it. It keeps for every word the stores that somebody may
// still read, and for every rank what it knows of them.
//
// The model is the part of the C++20 memory model in which no load depends on a later store of its own thread (RC11
// without load buffering). What a rank, a store or a message knows is a view:
//   - for each word the oldest store that it may still read; a load takes that one or any later one, by choice;
//   - for each place of plain data whether it knows the last write, and the last read of each rank.
// A release store carries the view of its rank, an acquire load takes over what the store carried. A plain access by a
// rank that does not know the last write, or a write by one that does not know all reads since, is a race. Knowledge
// is one bit per event, not a clock, so equal situations have equal bytes: the search compares states as bytes.
//
// A new store comes last in the order of its word. That is exact for words that one rank stores to, and for words that
// several ranks change by read-modify-writes; torii has no others (memory_order.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torii::exploration {

inline constexpr int kRanksMax = 3;
/// The most words of a world; one with more ends the program.
inline constexpr std::size_t kWordsMost = 256;
/// The number of the reader beside the ranks: the network, which takes payloads out of their sources.
inline constexpr int kNetwork = kRanksMax;

/// The bytes of a view: first one for each word, then one for each place of plain data.
using View = std::span<std::uint8_t>;
using ConstView = std::span<const std::uint8_t>;

class Memory {
 public:
  /// How many words and places views have room for. too_small() tells that this was not enough.
  Memory(std::size_t words, std::size_t places);

  /// The memory that ranks share. Everything outside belongs to one rank alone.
  void share(void* base, std::size_t bytes);
  bool is_shared(const void* at) const noexcept;
  /// Messages of failures call a range of shared memory by this name.
  void name(const void* at, std::size_t bytes, std::string text);
  std::string name_of(const void* at) const;

  int word_at(const void* at, std::size_t bytes);
  const void* address_of(int word) const { return words_[static_cast<std::size_t>(word)].at; }

  /// How many stores of the word the rank may read; the first one is the oldest.
  int readable(int rank, int word) const;
  bool has_newer(int rank, int word) const { return readable(rank, word) > 1; }
  std::uint64_t load(int rank, int word, int which, std::memory_order order);
  std::uint64_t latest(int word) const;
  void store(int rank, int word, std::uint64_t value, std::memory_order order);
  /// Stores `value` behind the latest store, as one step with reading it.
  void exchange(int rank, int word, std::uint64_t value, std::memory_order order);
  void fence(int rank, std::memory_order order);

  /// False if the access is a race. `past_caches`: the write is ordered by past_caches_fence() alone.
  bool read(int rank, const void* at, std::size_t bytes);
  bool write(int rank, const void* at, std::size_t bytes, bool past_caches = false);
  void past_caches_fence(int rank);
  /// A message leaves with what the rank knows. Messages are numbered; this one becomes number `message`, and those
  /// from there on one more.
  void depart(int rank, std::size_t message);
  /// The actions of a message at its end, with the view that it carries. False for a race.
  bool read_by_message(std::size_t message, const void* at, std::size_t bytes);
  bool write_by_message(std::size_t message, const void* at, std::size_t bytes);
  void store_by_message(std::size_t message, int word, std::uint64_t value);
  /// The rank learns all that the message knows.
  void learn(int rank, std::size_t message) { join(of(rank, kKnows), message_view(message)); }
  void forget(std::size_t message);

  /// From now on the rank reads no store older than the latest of each word.
  void catch_up(int rank);
  /// The rank reads nothing any more.
  void leave(int rank);
  /// Forgets what nobody can read any more. Afterwards equal situations are equal bytes.
  void tidy();

  struct Contents {
    std::vector<std::uint8_t> views;  ///< of ranks and of the total order of seq_cst, then of stores, then of messages
    std::vector<std::uint64_t> stores;
    std::vector<std::uint64_t> plain;
    unsigned gone = 0;
  };
  void save(Contents& to) const;
  void restore(const Contents& from);
  std::uint64_t hash(std::uint64_t seed) const;

  bool too_small() const noexcept { return too_small_; }
  std::size_t words() const noexcept { return words_.size(); }
  std::size_t places() const noexcept { return places_.size(); }

 private:
  struct Word {
    const void* at;
    std::size_t bytes;
    std::uint64_t first;  ///< its value before all stores
  };
  struct Place {
    std::uint64_t* at;
    std::uint64_t first;
  };
  struct Named {
    const std::byte* at;
    std::size_t bytes;
    std::string text;
  };
  /// The views of a rank: what it knows; what an acquire fence would add; what stores after its last release fence
  /// carry; what it has stored past the caches.
  enum Kind { kKnows, kBehindAcquire, kFenced, kPast, kKinds };
  static constexpr std::size_t kFixedViews = kRanksMax * kKinds + 1;  ///< the last is that of seq_cst

  View view(std::size_t number) { return {views_.data() + number * view_bytes_, view_bytes_}; }
  ConstView view(std::size_t number) const { return {views_.data() + number * view_bytes_, view_bytes_}; }
  View of(int rank, Kind kind) { return view(static_cast<std::size_t>(rank) * kKinds + kind); }
  ConstView of(int rank, Kind kind) const { return view(static_cast<std::size_t>(rank) * kKinds + kind); }
  std::size_t message_number(std::size_t message) const { return kFixedViews + stores_.size() / 2 + message; }
  View message_view(std::size_t message) { return view(message_number(message)); }
  View sequential() { return view(kFixedViews - 1); }
  void join(View to, ConstView from) const;
  /// The index in stores_ of a word's store with this number, or -1 for its first value.
  int find(int word, int number) const;
  int last_number(int word) const;
  void append(int word, std::uint64_t value, ConstView carried);
  int place_at(const void* at);
  std::size_t byte_of(int place) const { return words_max_ + static_cast<std::size_t>(place); }
  bool read_place(int place, ConstView knows, ConstView past, int reader);
  bool write_place(int place, ConstView knows, ConstView past);

  std::size_t words_max_;
  std::size_t view_bytes_;
  std::vector<std::pair<const std::byte*, std::size_t>> shared_;
  std::vector<Named> names_;
  std::vector<Word> words_;
  std::vector<Place> places_;
  std::unordered_map<const void*, int> word_numbers_;
  std::unordered_map<const void*, int> place_numbers_;
  std::vector<std::uint8_t> views_;
  std::vector<std::uint64_t> stores_;  ///< two for each store, by word and number: word << 8 | number, then the value
  unsigned gone_ = 0;                  ///< a bit for each rank
  bool too_small_ = false;
};

bool acquires(std::memory_order order) noexcept;
bool releases(std::memory_order order) noexcept;
std::uint64_t hash_bytes(const void* at, std::size_t bytes, std::uint64_t seed) noexcept;

}  // namespace torii::exploration
