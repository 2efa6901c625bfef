// SPDX-License-Identifier: Apache-2.0
// Loads, stores and fences of the weakly ordered machine.
#include "tests/exploration/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace torii::exploration {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr std::uint8_t kNothingToKnow = 0xff;
constexpr std::uint8_t kWriteBit = 1;
constexpr std::uint8_t read_bit(int reader) { return static_cast<std::uint8_t>(2U << reader); }
constexpr int kNumbersMax = 255;

}  // namespace

bool acquires(std::memory_order order) noexcept {
  return order == std::memory_order_acquire || order == std::memory_order_consume ||
         order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

bool releases(std::memory_order order) noexcept {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

std::uint64_t hash_bytes(const void* at, std::size_t bytes, std::uint64_t seed) noexcept {
  const auto* from = static_cast<const std::byte*>(at);
  std::uint64_t hash = seed ^ (bytes * 0x9e3779b97f4a7c15ULL);
  const auto mix = [&](std::uint64_t word) {
    const auto product = static_cast<Wide>(hash ^ word) * 0xa0761d6478bd642fULL;
    hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64) ^ (word << 32 | word >> 32);
  };
  for (; bytes >= 8; bytes -= 8, from += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, from, bytes);
  mix(rest);
  return hash;
}

Memory::Memory(std::size_t words, std::size_t places) : words_max_(words), view_bytes_(words + places) {
  views_.assign(kFixedViews * view_bytes_, 0);
  for (int rank = 0; rank < kRanksMax; ++rank) {
    std::fill_n(of(rank, kKnows).data() + words_max_, places, kNothingToKnow);
  }
}

void Memory::share(void* base, std::size_t bytes) { shared_.emplace_back(static_cast<std::byte*>(base), bytes); }

bool Memory::is_shared(const void* at) const noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  for (const auto& [base, bytes] : shared_) {
    if (address - reinterpret_cast<std::uintptr_t>(base) < bytes) return true;
  }
  return false;
}

void Memory::name(const void* at, std::size_t bytes, std::string text) {
  names_.push_back({static_cast<const std::byte*>(at), bytes, std::move(text)});
}

std::string Memory::name_of(const void* at) const {
  const auto* byte = static_cast<const std::byte*>(at);
  // The name that was given last is the closest.
  for (std::size_t i = names_.size(); i-- > 0;) {
    const Named& named = names_[i];
    if (byte < named.at || byte >= named.at + named.bytes) continue;
    const auto offset = byte - named.at;
    return offset == 0 ? named.text : named.text + " + " + std::to_string(offset);
  }
  return "memory without a name";
}

int Memory::word_at(const void* at, std::size_t bytes) {
  const auto [entry, is_new] = word_numbers_.try_emplace(at, static_cast<int>(words_.size()));
  if (!is_new) return entry->second;
  Word word{at, bytes, 0};
  std::memcpy(&word.first, at, bytes);
  words_.push_back(word);
  if (words_.size() > kWordsMost) std::abort();
  if (words_.size() > words_max_) too_small_ = true;
  return entry->second;
}

int Memory::place_at(const void* at) {
  auto* const whole = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(at) & ~std::uintptr_t{7});
  const auto [entry, is_new] = place_numbers_.try_emplace(whole, static_cast<int>(places_.size()));
  if (!is_new) return entry->second;
  places_.push_back({whole, *whole});
  if (places_.size() > view_bytes_ - words_max_) too_small_ = true;
  return entry->second;
}

void Memory::join(View to, ConstView from) const {
  for (std::size_t i = 0; i < words_max_; ++i) to[i] = std::max(to[i], from[i]);
  for (std::size_t i = words_max_; i < view_bytes_; ++i) to[i] |= from[i];
}

int Memory::find(int word, int number) const {
  const std::uint64_t key = static_cast<std::uint64_t>(word) << 8 | static_cast<std::uint64_t>(number);
  for (std::size_t i = 0; i < stores_.size(); i += 2) {
    if (stores_[i] == key) return static_cast<int>(i / 2);
  }
  return -1;
}

int Memory::last_number(int word) const {
  int last = 0;
  for (std::size_t i = 0; i < stores_.size(); i += 2) {
    if (static_cast<int>(stores_[i] >> 8) == word) last = static_cast<int>(stores_[i] & 0xff);
  }
  return last;
}

int Memory::readable(int rank, int word) const {
  return last_number(word) - of(rank, kKnows)[static_cast<std::size_t>(word)] + 1;
}

std::uint64_t Memory::latest(int word) const {
  const int at = find(word, last_number(word));
  return at < 0 ? words_[static_cast<std::size_t>(word)].first : stores_[static_cast<std::size_t>(at) * 2 + 1];
}

std::uint64_t Memory::load(int rank, int word, int which, std::memory_order order) {
  std::uint8_t& knows = of(rank, kKnows)[static_cast<std::size_t>(word)];
  knows = static_cast<std::uint8_t>(knows + which);
  if (order == std::memory_order_seq_cst) {
    std::uint8_t& total = sequential()[static_cast<std::size_t>(word)];
    knows = std::max(knows, total);
    total = knows;
  }
  const int at = find(word, knows);
  if (at < 0) return words_[static_cast<std::size_t>(word)].first;
  const ConstView carried = view(kFixedViews + static_cast<std::size_t>(at));
  join(of(rank, acquires(order) ? kKnows : kBehindAcquire), carried);
  return stores_[static_cast<std::size_t>(at) * 2 + 1];
}

void Memory::append(int word, std::uint64_t value, ConstView carried) {
  const int number = last_number(word) + 1;
  if (number > kNumbersMax) too_small_ = true;
  const std::uint64_t key = static_cast<std::uint64_t>(word) << 8 | static_cast<std::uint64_t>(number);
  std::size_t at = 0;
  while (at < stores_.size() && stores_[at] < key) at += 2;
  const std::vector<std::uint8_t> copy(carried.begin(), carried.end());
  stores_.insert(stores_.begin() + static_cast<std::ptrdiff_t>(at), {key, value});
  views_.insert(views_.begin() + static_cast<std::ptrdiff_t>((kFixedViews + at / 2) * view_bytes_), copy.begin(),
                copy.end());
  view(kFixedViews + at / 2)[static_cast<std::size_t>(word)] = static_cast<std::uint8_t>(number);
}

void Memory::store(int rank, int word, std::uint64_t value, std::memory_order order) {
  const auto number = static_cast<std::uint8_t>(last_number(word) + 1);
  of(rank, kKnows)[static_cast<std::size_t>(word)] = number;
  if (order == std::memory_order_seq_cst) sequential()[static_cast<std::size_t>(word)] = number;
  append(word, value, of(rank, releases(order) ? kKnows : kFenced));
}

/// A read-modify-write goes on carrying what the store that it reads carries, whatever its own order: that store's
/// release sequence.
void Memory::exchange(int rank, int word, std::uint64_t value, std::memory_order order) {
  const int last = last_number(word);
  std::uint8_t& knows = of(rank, kKnows)[static_cast<std::size_t>(word)];
  knows = static_cast<std::uint8_t>(last);
  const int at = find(word, last);
  std::vector<std::uint8_t> carried(view_bytes_, 0);
  if (at >= 0) {
    join(carried, view(kFixedViews + static_cast<std::size_t>(at)));
    join(of(rank, acquires(order) ? kKnows : kBehindAcquire), carried);
  }
  knows = static_cast<std::uint8_t>(last + 1);
  join(carried, of(rank, releases(order) ? kKnows : kFenced));
  if (order == std::memory_order_seq_cst) sequential()[static_cast<std::size_t>(word)] = knows;
  append(word, value, carried);
}

void Memory::fence(int rank, std::memory_order order) {
  if (acquires(order)) join(of(rank, kKnows), of(rank, kBehindAcquire));
  if (order == std::memory_order_seq_cst) {
    join(of(rank, kKnows), sequential());
    join(sequential(), of(rank, kKnows));
  }
  if (releases(order)) join(of(rank, kFenced), of(rank, kKnows));
}

bool Memory::read_place(int place, ConstView knows, ConstView past, int reader) {
  const std::size_t byte = byte_of(place);
  if (((knows[byte] | past[byte]) & kWriteBit) == 0) return false;
  for (std::size_t at = byte; at < views_.size(); at += view_bytes_) {
    views_[at] = static_cast<std::uint8_t>(views_[at] & ~read_bit(reader));
  }
  return true;
}

bool Memory::write_place(int place, ConstView knows, ConstView past) {
  const std::size_t byte = byte_of(place);
  if ((knows[byte] | past[byte]) != kNothingToKnow) return false;
  constexpr std::uint8_t kOthers = static_cast<std::uint8_t>(~kWriteBit);
  for (std::size_t at = byte; at < views_.size(); at += view_bytes_) views_[at] = kOthers;
  return true;
}

namespace {

/// Calls visit(address) for each place of a range of plain data.
template <class Visit>
bool each_place(const void* at, std::size_t bytes, Visit&& visit) {
  if (bytes == 0) return true;
  const auto first = reinterpret_cast<std::uintptr_t>(at) & ~std::uintptr_t{7};
  const auto end = reinterpret_cast<std::uintptr_t>(at) + bytes;
  for (std::uintptr_t place = first; place < end; place += 8) {
    if (!visit(reinterpret_cast<const void*>(place))) return false;
  }
  return true;
}

}  // namespace

bool Memory::read(int rank, const void* at, std::size_t bytes) {
  return each_place(at, bytes, [&](const void* one) {
    const int place = place_at(one);
    if (too_small_) return true;
    if (!read_place(place, of(rank, kKnows), of(rank, kPast), rank)) return false;
    of(rank, kKnows)[byte_of(place)] |= read_bit(rank);
    return true;
  });
}

bool Memory::write(int rank, const void* at, std::size_t bytes, bool past_caches) {
  return each_place(at, bytes, [&](const void* one) {
    const int place = place_at(one);
    if (too_small_) return true;
    if (!write_place(place, of(rank, kKnows), of(rank, kPast))) return false;
    of(rank, past_caches ? kPast : kKnows)[byte_of(place)] = kNothingToKnow;
    return true;
  });
}

void Memory::past_caches_fence(int rank) {
  join(of(rank, kKnows), of(rank, kPast));
  std::ranges::fill(of(rank, kPast), std::uint8_t{0});
}

void Memory::depart(int rank, std::size_t message) {
  const std::vector<std::uint8_t> copy(of(rank, kKnows).begin(), of(rank, kKnows).end());
  const auto at = views_.begin() + static_cast<std::ptrdiff_t>(message_number(message) * view_bytes_);
  views_.insert(at, copy.begin(), copy.end());
}

void Memory::forget(std::size_t message) {
  const auto at = views_.begin() + static_cast<std::ptrdiff_t>(message_number(message) * view_bytes_);
  views_.erase(at, at + static_cast<std::ptrdiff_t>(view_bytes_));
}

bool Memory::read_by_message(std::size_t message, const void* at, std::size_t bytes) {
  return each_place(at, bytes, [&](const void* one) {
    const int place = place_at(one);
    if (too_small_) return true;
    const View knows = message_view(message);
    if (!read_place(place, knows, knows, kNetwork)) return false;
    knows[byte_of(place)] |= read_bit(kNetwork);
    return true;
  });
}

bool Memory::write_by_message(std::size_t message, const void* at, std::size_t bytes) {
  return each_place(at, bytes, [&](const void* one) {
    const int place = place_at(one);
    if (too_small_) return true;
    const View knows = message_view(message);
    if (!write_place(place, knows, knows)) return false;
    knows[byte_of(place)] = kNothingToKnow;
    return true;
  });
}

void Memory::store_by_message(std::size_t message, int word, std::uint64_t value) {
  append(word, value, message_view(message));
}

void Memory::catch_up(int rank) {
  for (std::size_t word = 0; word < words_.size(); ++word) {
    of(rank, kKnows)[word] = static_cast<std::uint8_t>(last_number(static_cast<int>(word)));
  }
}

void Memory::leave(int rank) {
  gone_ |= 1U << rank;
  for (int kind = 0; kind < kKinds; ++kind) std::ranges::fill(of(rank, static_cast<Kind>(kind)), std::uint8_t{0});
}

/// Numbers are counted anew from the oldest store that a rank may still read.
void Memory::tidy() {
  for (std::size_t word = 0; word < std::min(words_.size(), words_max_); ++word) {
    std::uint8_t oldest = kNumbersMax;
    for (int rank = 0; rank < kRanksMax; ++rank) {
      if ((gone_ >> rank & 1U) == 0) oldest = std::min(oldest, of(rank, kKnows)[word]);
    }
    oldest = std::min(oldest, static_cast<std::uint8_t>(last_number(static_cast<int>(word))));
    if (oldest == 0) continue;
    for (std::size_t i = 0; i < stores_.size();) {
      if (stores_[i] >> 8 != word) {
        i += 2;
      } else if ((stores_[i] & 0xff) < oldest) {
        const auto first = static_cast<std::ptrdiff_t>((kFixedViews + i / 2) * view_bytes_);
        views_.erase(views_.begin() + first, views_.begin() + first + static_cast<std::ptrdiff_t>(view_bytes_));
        stores_.erase(stores_.begin() + static_cast<std::ptrdiff_t>(i),
                      stores_.begin() + static_cast<std::ptrdiff_t>(i) + 2);
      } else {
        stores_[i] -= oldest;
        i += 2;
      }
    }
    for (std::size_t at = word; at < views_.size(); at += view_bytes_) {
      views_[at] = static_cast<std::uint8_t>(views_[at] - std::min(views_[at], oldest));
    }
  }
}

void Memory::save(Contents& to) const {
  to.views = views_;
  to.stores = stores_;
  to.plain.resize(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) to.plain[i] = *places_[i].at;
  to.gone = gone_;
}

void Memory::restore(const Contents& from) {
  views_ = from.views;
  stores_ = from.stores;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    *places_[i].at = i < from.plain.size() ? from.plain[i] : places_[i].first;
  }
  gone_ = from.gone;
}

std::uint64_t Memory::hash(std::uint64_t seed) const {
  std::uint64_t hash = hash_bytes(views_.data(), views_.size(), seed);
  hash = hash_bytes(stores_.data(), stores_.size() * sizeof(std::uint64_t), hash);
  // A place that nobody has touched yet in this search counts as one that nobody has changed.
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (*places_[i].at == places_[i].first) continue;
    const std::uint64_t changed[] = {i, *places_[i].at};
    hash = hash_bytes(changed, sizeof(changed), hash);
  }
  return hash;
}

}  // namespace torii::exploration
