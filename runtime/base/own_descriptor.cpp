// SPDX-License-Identifier: Apache-2.0
// The numbers of the descriptors that a forked child closes, and the handlers of fork. In a child the heap may miss
// pages until the handlers of adopted memory have run, so these handlers touch none of it.
#include "runtime/base/own_descriptor.hpp"

#include <pthread.h>
#include <unistd.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

constinit std::mutex forks;  // nothing destroys it: a fork may come while static objects are destroyed

// Guarded by `forks`: a bit for each number. The kernel gives out the lowest free numbers, and pages for high ones cost
// nothing until they are used.
constexpr int kNumbers = 1 << 20;
constexpr int kBits = 64;
constinit std::uint64_t own_numbers[kNumbers / kBits] = {};
constinit std::size_t used_words = 0;  // no bit is set behind these words

std::uint64_t& word_of(int number) { return own_numbers[number / kBits]; }
std::uint64_t bit_of(int number) { return std::uint64_t{1} << number % kBits; }

}  // namespace

constinit int OwnDescriptor::forks_before_ = 0;

std::mutex& OwnDescriptor::no_fork() {
  static const int code = pthread_atfork([] { forks.lock(); }, [] { forks.unlock(); }, close_in_child);
  if (code != 0) throw Error(Status::no_resource, "out of memory");
  return forks;
}

void OwnDescriptor::close_in_child() noexcept {
  ++forks_before_;
  for (; used_words != 0; --used_words) {
    std::uint64_t& word = own_numbers[used_words - 1];
    for (; word != 0; word &= word - 1) {
      close(static_cast<int>(used_words - 1) * kBits + std::countr_zero(word));
    }
  }
  forks.unlock();
}

void OwnDescriptor::keep(Descriptor made) {
  if (!made.open()) return;
  if (made.get() >= kNumbers) {
    throw Error(Status::no_resource, "more than " + std::to_string(kNumbers) + " open files");
  }
  number_ = made.release();
  word_of(number_) |= bit_of(number_);
  const std::size_t words = static_cast<std::size_t>(number_) / kBits + 1;
  if (words > used_words) used_words = words;
}

OwnDescriptor::~OwnDescriptor() {
  if (!open()) return;
  const std::lock_guard lock(forks);
  word_of(number_) &= ~bit_of(number_);
  close(number_);
}

}  // namespace torii
