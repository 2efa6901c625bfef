// SPDX-License-Identifier: Apache-2.0
// The functions that g++ calls in code compiled with -fsanitize=thread, here without a sanitizer behind them: they tell
// the explorer of each access to shared memory. Memory of one rank alone, and code outside an exploration, is accessed
// as usual.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "reduce_kernels/kernels.hpp"
#include "tests/exploration/explorer.hpp"

namespace torii::exploration {
namespace {

RankSpace* heap = nullptr;

bool is_watched(const void* at) noexcept { return explorer().is_running() && explorer().memory().is_shared(at); }

std::memory_order order_of(int order) noexcept { return static_cast<std::memory_order>(order); }

}  // namespace

RankSpace* set_heap(RankSpace* next) noexcept {
  RankSpace* const before = heap;
  heap = next;
  return before;
}

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (heap != nullptr) {
    void* const at = heap->allocate(bytes, alignment);
    if (at == nullptr) std::abort();
    return at;
  }
  void* const at = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

/// Memory of ranks goes with its space.
void give_back(void* at) noexcept {
  if (!RankSpace::is_inside_any(at)) std::free(at);
}

}  // namespace

}  // namespace torii::exploration

void* operator new(std::size_t bytes) { return torii::exploration::allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return torii::exploration::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* at) noexcept { torii::exploration::give_back(at); }
void operator delete(void* at, std::size_t) noexcept { torii::exploration::give_back(at); }
void operator delete(void* at, std::align_val_t) noexcept { torii::exploration::give_back(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { torii::exploration::give_back(at); }

// The executor copies and fences by these. A copy past the caches is ordered by store_fence() alone, however short it
// is here.
namespace torii::kernels {

void copy(void* target, const void* source, std::size_t bytes, bool non_temporal) noexcept {
  using namespace exploration;
  const void* const site = __builtin_return_address(0);
  if (target == source || bytes == 0) return;
  if (is_watched(source)) explorer().read(source, bytes, site);
  if (is_watched(target)) explorer().write(target, bytes, site, non_temporal);
  std::memmove(target, source, bytes);
}

void copy_to_targets(const Operands& operands, std::size_t bytes) noexcept {
  for (int i = 0; i < operands.target_count; ++i) {
    copy(operands.targets[i], operands.sources[0], bytes, (operands.non_temporal_targets >> i & 1U) != 0);
  }
}

void store_fence() noexcept {
  using namespace exploration;
  if (explorer().is_running()) explorer().past_caches_fence(__builtin_return_address(0));
}

}  // namespace torii::kernels

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-declarations"
using torii::exploration::Explorer;
using torii::exploration::explorer;
using torii::exploration::is_watched;
using torii::exploration::order_of;
using What = Explorer::Change::What;

// NOLINTBEGIN: the names are the compiler's.
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

/// Copies that the compiler leaves to the C library (-fno-builtin).
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  if (is_watched(from)) explorer().read(from, bytes, __builtin_return_address(0));
  if (is_watched(to)) explorer().write(to, bytes, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}

#define TORII_PLAIN(name, access, bytes)                                           \
  void name(void* at) {                                                            \
    if (is_watched(at)) explorer().access(at, bytes, __builtin_return_address(0)); \
  }
#define TORII_PLAIN_SIZES(bytes)                           \
  TORII_PLAIN(__tsan_read##bytes, read, bytes)             \
  TORII_PLAIN(__tsan_write##bytes, write, bytes)           \
  TORII_PLAIN(__tsan_unaligned_read##bytes, read, bytes)   \
  TORII_PLAIN(__tsan_unaligned_write##bytes, write, bytes) \
  TORII_PLAIN(__tsan_volatile_read##bytes, read, bytes)    \
  TORII_PLAIN(__tsan_volatile_write##bytes, write, bytes)
TORII_PLAIN_SIZES(1)
TORII_PLAIN_SIZES(2)
TORII_PLAIN_SIZES(4)
TORII_PLAIN_SIZES(8)
TORII_PLAIN_SIZES(16)

void __tsan_read_range(void* at, std::size_t bytes) {
  if (is_watched(at)) explorer().read(at, bytes, __builtin_return_address(0));
}
void __tsan_write_range(void* at, std::size_t bytes) {
  if (is_watched(at)) explorer().write(at, bytes, __builtin_return_address(0));
}

#define TORII_CHANGE(bits, name, what_it_is, builtin)                                                             \
  std::uint##bits##_t __tsan_atomic##bits##_##name(volatile std::uint##bits##_t* at, std::uint##bits##_t operand, \
                                                   int order) {                                                   \
    if (!is_watched(const_cast<std::uint##bits##_t*>(at))) return builtin(at, operand, __ATOMIC_SEQ_CST);         \
    return static_cast<std::uint##bits##_t>(explorer().change(const_cast<std::uint##bits##_t*>(at), bits / 8,     \
                                                              {.operand = operand, .what = What::what_it_is},     \
                                                              order_of(order), __builtin_return_address(0)));     \
  }
#define TORII_COMPARE(bits, strength)                                                                              \
  int __tsan_atomic##bits##_compare_exchange_##strength(volatile std::uint##bits##_t* at,                          \
                                                        std::uint##bits##_t* expected, std::uint##bits##_t wanted, \
                                                        int order, int on_failure) {                               \
    if (!is_watched(const_cast<std::uint##bits##_t*>(at))) {                                                       \
      return __atomic_compare_exchange_n(at, expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
    }                                                                                                              \
    const auto before = static_cast<std::uint##bits##_t>(explorer().change(                                        \
        const_cast<std::uint##bits##_t*>(at), bits / 8,                                                            \
        {.operand = wanted, .expected = *expected, .what = What::compare, .on_failure = order_of(on_failure)},     \
        order_of(order), __builtin_return_address(0)));                                                            \
    if (before == *expected) return 1;                                                                             \
    *expected = before;                                                                                            \
    return 0;                                                                                                      \
  }
#define TORII_ATOMIC(bits)                                                                                   \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at, int order) {        \
    if (!is_watched(const_cast<std::uint##bits##_t*>(at))) return __atomic_load_n(at, __ATOMIC_SEQ_CST);     \
    return static_cast<std::uint##bits##_t>(explorer().load(const_cast<std::uint##bits##_t*>(at), bits / 8,  \
                                                            order_of(order), __builtin_return_address(0)));  \
  }                                                                                                          \
  void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t value, int order) { \
    if (!is_watched(const_cast<std::uint##bits##_t*>(at))) {                                                 \
      __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                         \
      return;                                                                                                \
    }                                                                                                        \
    explorer().store(const_cast<std::uint##bits##_t*>(at), bits / 8, value, order_of(order),                 \
                     __builtin_return_address(0));                                                           \
  }                                                                                                          \
  TORII_CHANGE(bits, exchange, exchange, __atomic_exchange_n)                                                \
  TORII_CHANGE(bits, fetch_add, add, __atomic_fetch_add)                                                     \
  TORII_CHANGE(bits, fetch_sub, subtract, __atomic_fetch_sub)                                                \
  TORII_CHANGE(bits, fetch_and, bit_and, __atomic_fetch_and)                                                 \
  TORII_CHANGE(bits, fetch_or, bit_or, __atomic_fetch_or)                                                    \
  TORII_CHANGE(bits, fetch_xor, bit_xor, __atomic_fetch_xor)                                                 \
  TORII_COMPARE(bits, strong)                                                                                \
  TORII_COMPARE(bits, weak)
TORII_ATOMIC(8)
TORII_ATOMIC(16)
TORII_ATOMIC(32)
TORII_ATOMIC(64)

void __tsan_atomic_thread_fence(int order) {
  if (explorer().is_running()) {
    explorer().fence(order_of(order), __builtin_return_address(0));
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}
void __tsan_atomic_signal_fence(int) {}
}
// NOLINTEND
#pragma GCC diagnostic pop
