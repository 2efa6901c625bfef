// SPDX-License-Identifier: Apache-2.0
// Publishes signals whose payload has arrived, and matches halves.
#include "transports/libfabric/arrivals.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "runtime/base/status.hpp"
#include "runtime/fabric/words.hpp"
#include "transports/libfabric/notice.hpp"

namespace torii::libfabric {

Arrivals::Arrivals(std::byte* arena, std::size_t arena_bytes)
    : arena_(arena), lines_(arena_bytes / kLineBytes), halves_bytes_(round_up(lines_ / 8 + 8, sizeof(std::uint64_t))) {
  void* const bits =
      mmap(nullptr, halves_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bits == MAP_FAILED) {
    throw Error(Status::no_resource,
                "cannot map " + std::to_string(halves_bytes_) + " bytes for counting arrivals; set TORII_ARENA lower");
  }
  halves_ = static_cast<std::uint64_t*>(bits);
}

Arrivals::~Arrivals() { munmap(halves_, halves_bytes_); }

bool Arrivals::is_second_half(std::uint64_t line) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << line % 64;
  // The halves of one line arrive through one engine, but lines of one word may arrive through several.
  return (std::atomic_ref(halves_[line / 64]).fetch_xor(bit, std::memory_order_acq_rel) & bit) != 0;
}

void Arrivals::forget(std::uint64_t offset, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  // Memory is given out in whole pages, so the words of bits at both ends belong to no other memory.
  const std::uint64_t last = std::min((offset + bytes - 1) / kLineBytes, lines_ - 1);
  for (std::uint64_t word = offset / kLineBytes / 64; word <= last / 64; ++word) {
    const std::atomic_ref bits(halves_[word]);
    if (bits.load(std::memory_order_relaxed) != 0) bits.store(0, std::memory_order_release);
  }
}

bool Arrivals::take(std::uint64_t notice) noexcept {
  const std::uint64_t line = line_of(notice);
  const auto action = static_cast<NoticeAction>(action_bits(notice));
  if (line >= lines_) return false;
  switch (action) {
    case NoticeAction::wake:
      return true;
    case NoticeAction::join:
      if (!is_second_half(line)) return true;
      break;
    case NoticeAction::publish:
      break;
    default:
      return false;
  }
  std::byte* const word = arena_ + line * kLineBytes;
  store_word(word, ~load_word(word));
  return true;
}

}  // namespace torii::libfabric
