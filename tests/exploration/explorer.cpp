// SPDX-License-Identifier: Apache-2.0
// The ranks' accesses to shared memory, and the places where ranks stop for them.
//
// Which accesses are choices. A load stops its rank first, since others may store before it. A store does not: a reader
// may still take the older value, so a store made early allows all that one made late does. Nor does a load of a word
// that no other rank stores to. These two hold for words with one writer; who writes a word is learned on the way, and
// the search begins again when it learns of another writer. Plain accesses are no choices: a race is seen in whatever
// order two accesses are made that nothing orders. Operations of order seq_cst always stop.
#include "tests/exploration/explorer.hpp"

#include <cstring>

namespace torii::exploration {
namespace {

/// While a rank is inside the explorer, memory is the process's own.
class Unobserved {
 public:
  Unobserved() : before_(set_heap(nullptr)) {}
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;
  ~Unobserved() {
    set_heap(before_);
    RankSpace::forget_calls();
  }

 private:
  RankSpace* before_;
};

std::uint64_t changed(std::uint64_t value, const Explorer::Change& change) {
  using What = Explorer::Change::What;
  switch (change.what) {
    case What::exchange:
    case What::compare:
      return change.operand;
    case What::add:
      return value + change.operand;
    case What::subtract:
      return value - change.operand;
    case What::bit_and:
      return value & change.operand;
    case What::bit_or:
      return value | change.operand;
    case What::bit_xor:
      return value ^ change.operand;
  }
  return value;
}

std::uint64_t cut(std::uint64_t value, std::size_t bytes) {
  return bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

}  // namespace

Explorer& explorer() noexcept {
  static Explorer the_explorer;
  return the_explorer;
}

bool Explorer::is_shared_by_others(int word, unsigned mask) const {
  const auto writers = writers_.find(memory_->address_of(word));
  return writers != writers_.end() && (writers->second & mask) != 0;
}

void Explorer::learn_writer(int word, int writer) {
  unsigned& writers = writers_[memory_->address_of(word)];
  const unsigned own = 1U << writer;
  if ((writers & own) != 0) return;
  writers |= own;
  learned_writer_ = true;
}

/// How many stores the rank may still read at all words that it has read since it was idle, but for this one. Having
/// read a word, it knows that store. If what it acquires lets it read fewer afterwards, it would see another value if
/// it looked once more, although no store is newer than what it knows.
std::size_t Explorer::readable_elsewhere(int word) const {
  const Pending& pending = pending_[static_cast<std::size_t>(running_)];
  std::size_t all = 0;
  for (int one = 0; one < static_cast<int>(memory_->words()); ++one) {
    const std::uint64_t bits = pending.watched[static_cast<std::size_t>(one) / 64];
    if (one != word && (bits >> (one % 64) & 1) != 0) all += static_cast<std::size_t>(memory_->readable(running_, one));
  }
  return all;
}

/// Stops the rank here until the search lets it go on.
void Explorer::await(At at, int word) {
  Pending& pending = pending_[static_cast<std::size_t>(running_)];
  pending.at = at;
  pending.word = word;
  spaces_[static_cast<std::size_t>(running_)].pause();
}

void Explorer::note(Access access, std::memory_order order, const void* at, std::uint64_t value, const void* site,
                    int which, int readable) {
  events_->push_back({running_, access, order, at, value, site, which, readable});
}

std::uint64_t Explorer::load(const void* at, std::size_t bytes, std::memory_order asked, const void* site) {
  const Unobserved unobserved;
  const std::memory_order order = sites_.order(site, Access::load, asked);
  const int word = memory_->word_at(at, bytes);
  if (memory_->too_small()) stay();
  int which = 0;
  if (order == std::memory_order_seq_cst || turns_at_each_load_) {
    pending_[static_cast<std::size_t>(running_)].begins_block = true;
  }
  if (order == std::memory_order_seq_cst || is_shared_by_others(word, ~(1U << running_))) {
    await(At::load, word);
    which = chosen_;
  }
  Pending& pending = pending_[static_cast<std::size_t>(running_)];
  std::uint64_t& watched = pending.watched[static_cast<std::size_t>(word) / 64];
  const std::uint64_t bit = std::uint64_t{1} << (word % 64);
  if ((watched & bit) != 0 && which > 0) pending.has_overtaken = true;
  watched |= bit;
  pending.begins_block = false;
  const int readable = memory_->readable(running_, word);
  const std::size_t before = readable_elsewhere(word);
  const std::uint64_t value = memory_->load(running_, word, which, order);
  if (readable_elsewhere(word) < before) pending.has_overtaken = true;
  note(Access::load, order, at, value, site, which, readable);
  return value;
}

void Explorer::store(void* at, std::size_t bytes, std::uint64_t value, std::memory_order asked, const void* site) {
  const Unobserved unobserved;
  const std::memory_order order = sites_.order(site, Access::store, asked);
  const int word = memory_->word_at(at, bytes);
  if (memory_->too_small()) return;
  const bool takes_turn = order == std::memory_order_seq_cst || turns_at_each_store_;
  if (takes_turn || is_shared_by_others(word, ~(1U << running_))) await(At::change, word);
  learn_writer(word, running_);
  pending_[static_cast<std::size_t>(running_)].begins_block = true;
  memory_->store(running_, word, cut(value, bytes), order);
  note(Access::store, order, at, value, site);
}

std::uint64_t Explorer::change(void* at, std::size_t bytes, const Change& change, std::memory_order asked,
                               const void* site) {
  const Unobserved unobserved;
  const std::memory_order order = sites_.order(site, Access::change, asked);
  const int word = memory_->word_at(at, bytes);
  if (memory_->too_small()) stay();
  if (asked == std::memory_order_seq_cst || is_shared_by_others(word, ~(1U << running_))) await(At::change, word);
  learn_writer(word, running_);
  pending_[static_cast<std::size_t>(running_)].begins_block = true;
  const std::uint64_t before = memory_->latest(word);
  if (change.what == Change::What::compare && before != change.expected) {
    // A comparison that fails is a load. It takes the latest value: an older one would only fail more often.
    (void)memory_->load(running_, word, memory_->readable(running_, word) - 1, change.on_failure);
    note(Access::load, change.on_failure, at, before, site, 0, 1);
    return before;
  }
  const std::size_t readable = readable_elsewhere(word);
  memory_->exchange(running_, word, cut(changed(before, change), bytes), order);
  if (readable_elsewhere(word) < readable) pending_[static_cast<std::size_t>(running_)].has_overtaken = true;
  note(Access::change, order, at, cut(changed(before, change), bytes), site);
  return before;
}

void Explorer::fence(std::memory_order asked, const void* site) {
  const Unobserved unobserved;
  const std::memory_order order = sites_.order(site, Access::fence, asked);
  if (order == std::memory_order_relaxed) return;
  if (order == std::memory_order_seq_cst) await(At::fence, -1);
  pending_[static_cast<std::size_t>(running_)].begins_block = true;
  const std::size_t before = readable_elsewhere(-1);
  memory_->fence(running_, order);
  if (readable_elsewhere(-1) < before) pending_[static_cast<std::size_t>(running_)].has_overtaken = true;
  note(Access::fence, order, nullptr, 0, site);
}

/// All know every store afterwards, since the rank that has made it fences too.
void Explorer::fence_all() {
  const Unobserved unobserved;
  await(At::fence, -1);
  for (int rank = 0; rank < world_->ranks(); ++rank) {
    if (pending_[static_cast<std::size_t>(rank)].at == At::done) continue;
    memory_->catch_up(rank);
    memory_->fence(rank, std::memory_order_seq_cst);
  }
  pending_[static_cast<std::size_t>(running_)].begins_block = true;
  for (Pending& pending : pending_) pending.has_overtaken = true;
  note(Access::fence, std::memory_order_seq_cst, nullptr, 0, nullptr);
}

void Explorer::past_caches_fence(const void* site) {
  const Unobserved unobserved;
  if (sites_.order(site, Access::past_caches_fence, std::memory_order_release) == std::memory_order_relaxed) return;
  memory_->past_caches_fence(running_);
  note(Access::past_caches_fence, std::memory_order_release, nullptr, 0, site);
}

void Explorer::read(const void* at, std::size_t bytes, const void* site) {
  const Unobserved unobserved;
  if (memory_->read(running_, at, bytes)) return;
  note(Access::plain, std::memory_order_relaxed, at, bytes, site);
  fail("rank " + std::to_string(running_) + " reads " + memory_->name_of(at) + " in " + describe_site(site) +
       ", but nothing orders that behind the last write: a data race");
}

void Explorer::write(const void* at, std::size_t bytes, const void* site, bool past_caches) {
  const Unobserved unobserved;
  if (memory_->write(running_, at, bytes, past_caches)) return;
  note(Access::plain, std::memory_order_relaxed, at, bytes, site);
  fail("rank " + std::to_string(running_) + " writes " + memory_->name_of(at) + " in " + describe_site(site) +
       ", but nothing orders that behind all earlier accesses: a data race");
}

void Explorer::store_from_network(std::size_t message, void* at, std::uint64_t value) {
  const int word = memory_->word_at(at, sizeof(value));
  if (memory_->too_small()) return;
  learn_writer(word, kNetwork);
  memory_->store_by_message(message, word, value);
}

void Explorer::idle() {
  const Unobserved unobserved;
  await(At::idle, -1);
  Pending& pending = pending_[static_cast<std::size_t>(running_)];
  pending.watched = {};
  pending.has_overtaken = false;
  pending.begins_block = true;
}

void Explorer::forget_looks() { pending_[static_cast<std::size_t>(running_)].watched = {}; }

/// As a futex: the kernel compares with the latest value, and a sleeper that has compared misses no wake-up.
void Explorer::sleep_while(const void* at, std::size_t bytes, std::uint64_t value) {
  const Unobserved unobserved;
  const int word = memory_->word_at(at, bytes);
  if (memory_->too_small()) return;
  await(At::sleep, word);
  if (memory_->load(running_, word, memory_->readable(running_, word) - 1, std::memory_order_relaxed) !=
      cut(value, bytes)) {
    return;
  }
  await(At::asleep, word);
}

void Explorer::wake_all(const void* at, std::size_t bytes) {
  const Unobserved unobserved;
  const int word = memory_->word_at(at, bytes);
  for (Pending& pending : pending_) {
    if (pending.at == At::asleep && pending.word == word) pending.at = At::begin;
  }
}

void Explorer::fail(const std::string& text) {
  const Unobserved unobserved;
  // A copy: the text may be in the heap of the rank.
  if (failure_.empty()) failure_ = std::string(text);
  stay();
}

void Explorer::stay() {
  while (running_ >= 0) spaces_[static_cast<std::size_t>(running_)].pause();
}

}  // namespace torii::exploration
