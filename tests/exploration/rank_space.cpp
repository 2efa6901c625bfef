// SPDX-License-Identifier: Apache-2.0
// Stacks and heaps of ranks, and the switch between them.
#include "tests/exploration/rank_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <system_error>

#include "tests/exploration/memory.hpp"

namespace torii::exploration {
namespace {

constexpr std::size_t kHeapBytes = std::size_t{1} << 20;
constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr std::size_t kSpaceBytes = kHeapBytes + kStackBytes;
constexpr std::size_t kForgottenBytes = 3072;
constexpr std::size_t kSpacesMax = 8;

std::array<std::byte*, kSpacesMax> bases{};

/// The space that is entered for the first time.
RankSpace* entered = nullptr;
/// Its program, which lies outside: only what it allocates and changes later is the rank's.
std::function<void()>* entered_program = nullptr;

}  // namespace

struct RankSpace::HeapHead {
  ucontext_t context;
  std::size_t used = sizeof(HeapHead);
  std::function<void()>* program = nullptr;
};

RankSpace::RankSpace() {
  void* const memory = mmap(nullptr, kSpaceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap for a rank");
  base_ = static_cast<std::byte*>(memory);
  head_ = new (base_) HeapHead;
  *std::ranges::find(bases, static_cast<std::byte*>(nullptr)) = base_;
}

RankSpace::~RankSpace() {
  delete head_->program;
  std::ranges::replace(bases, base_, static_cast<std::byte*>(nullptr));
  munmap(base_, kSpaceBytes);
}

void RankSpace::enter() {
  RankSpace& space = *entered;
  (*entered_program)();
  while (true) space.pause();
}

void RankSpace::begin(std::function<void()> program) {
  delete head_->program;
  std::memset(base_, 0, kSpaceBytes);
  head_ = new (base_) HeapHead;
  head_->program = new std::function<void()>(std::move(program));
  getcontext(&head_->context);
  head_->context.uc_stack.ss_sp = base_ + kHeapBytes;
  head_->context.uc_stack.ss_size = kStackBytes;
  head_->context.uc_link = nullptr;
  makecontext(&head_->context, &RankSpace::enter, 0);
}

void RankSpace::resume() {
  entered = this;
  entered_program = head_->program;
  swapcontext(&outside_, &head_->context);
}

void RankSpace::pause() { swapcontext(&head_->context, &outside_); }

void* RankSpace::allocate(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t at = (head_->used + alignment - 1) / alignment * alignment;
  if (at + bytes > kHeapBytes) return nullptr;
  head_->used = at + bytes;
  return base_ + at;
}

bool RankSpace::is_inside_any(const void* at) noexcept {
  for (const std::byte* const base : bases) {
    if (base != nullptr && reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(base) < kSpaceBytes)
      return true;
  }
  return false;
}

[[gnu::noinline]] void RankSpace::forget_calls() noexcept {
  std::byte below[kForgottenBytes];
  std::memset(below, 0, sizeof(below));
  asm volatile("" : : "r"(below) : "memory");
}

/// The part of the stack that the paused rank uses.
std::size_t RankSpace::stack_bytes() const noexcept {
#if defined(__x86_64__)
  const auto top = static_cast<std::uintptr_t>(head_->context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  const auto top = static_cast<std::uintptr_t>(head_->context.uc_mcontext.sp);
#endif
  return reinterpret_cast<std::uintptr_t>(base_) + kSpaceBytes - top;
}

void RankSpace::save(Contents& to) const {
  to.heap.assign(base_, base_ + head_->used);
  std::byte* const end = base_ + kSpaceBytes;
  to.stack.assign(end - stack_bytes(), end);
}

void RankSpace::restore(const Contents& from) {
  std::memcpy(base_, from.heap.data(), from.heap.size());
  std::memcpy(base_ + kSpaceBytes - from.stack.size(), from.stack.data(), from.stack.size());
}

std::uint64_t RankSpace::hash(std::uint64_t seed) const {
  const std::size_t stack = stack_bytes();
  std::uint64_t hash = hash_bytes(base_ + sizeof(HeapHead), head_->used - sizeof(HeapHead), seed);
  // Only the registers that a call keeps matter.
#if defined(__x86_64__)
  for (const int kept : {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP}) {
    hash = hash_bytes(&head_->context.uc_mcontext.gregs[kept], sizeof(greg_t), hash);
  }
#elif defined(__aarch64__)
  hash = hash_bytes(&head_->context.uc_mcontext.regs[19], 12 * sizeof(std::uint64_t), hash);
  hash = hash_bytes(&head_->context.uc_mcontext.pc, sizeof(std::uint64_t), hash);
#endif
  return hash_bytes(base_ + kSpaceBytes - stack, stack, hash);
}

}  // namespace torii::exploration
