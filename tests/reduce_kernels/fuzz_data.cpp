// SPDX-License-Identifier: Apache-2.0
// Guarded memory, random elements and comparison for the kernel tests.
#include "tests/reduce_kernels/fuzz_data.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "reduce_kernels/float16.hpp"
#include "reduce_kernels/float8.hpp"

namespace torii::kernels::testing {
namespace {

template <typename T>
void put(void* to, size_t index, T value) {
  std::memcpy(static_cast<char*>(to) + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T get(const void* from, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(from) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
T random_integer(Random& random) {
  switch (pick(random, 0, 3)) {
    case 0:
      return 0;
    case 1:
      return static_cast<T>(pick(random, -2, 2));
    case 2:
      return pick(random, 0, 1) != 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
    default:
      return static_cast<T>(random());
  }
}

template <typename T>
T random_float(Random& random) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr std::array<T, 10> kSpecial = {T(0),
                                          -T(0),
                                          kInfinity,
                                          -kInfinity,
                                          std::numeric_limits<T>::quiet_NaN(),
                                          std::numeric_limits<T>::denorm_min(),
                                          std::numeric_limits<T>::max(),
                                          std::numeric_limits<T>::lowest(),
                                          T(1),
                                          T(-1)};
  switch (pick(random, 0, 7)) {
    case 0:
      return kSpecial[static_cast<size_t>(pick(random, 0, kSpecial.size() - 1))];
    case 1:
      return std::bit_cast<T>(static_cast<Bits>(random()));
    default:
      return static_cast<T>(std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random), pick(random, -12, 12)));
  }
}

uint16_t random_float16(Type type, Random& random) {
  if (pick(random, 0, 3) == 0) return static_cast<uint16_t>(random());
  const float value = random_float<float>(random);
  return type == Type::f16 ? f32_to_f16(value) : f32_to_bf16(value);
}

template <typename V>
void put_pair(void* to, size_t index, V value, Random& random) {
  // The padding is random too: it has to travel with the operand that wins.
  std::array<uint64_t, sizeof(Pair<V>) / 8> raw;
  for (uint64_t& word : raw) word = random();
  Pair<V> pair;
  std::memcpy(&pair, raw.data(), sizeof pair);
  pair.value = value;
  pair.index = pick(random, 0, 4) == 0 ? static_cast<int32_t>(random()) : pick(random, -2, 5);
  std::memcpy(raw.data(), &pair.value, sizeof pair.value);
  std::memcpy(reinterpret_cast<char*>(raw.data()) + offsetof(Pair<V>, index), &pair.index, sizeof pair.index);
  std::memcpy(static_cast<char*>(to) + index * sizeof pair, raw.data(), sizeof pair);
}

void put_random(Type type, bool wide, void* to, size_t index, Random& random) {
  switch (type) {
    case Type::i8:
    case Type::u8:
    case Type::boolean:
      return put(to, index, random_integer<int8_t>(random));
    case Type::i16:
    case Type::u16:
      return put(to, index, random_integer<int16_t>(random));
    case Type::i32:
    case Type::u32:
      return put(to, index, random_integer<int32_t>(random));
    case Type::i64:
    case Type::u64:
      return put(to, index, random_integer<int64_t>(random));
    case Type::f16:
    case Type::bf16:
      return wide ? put(to, index, random_float<float>(random)) : put(to, index, random_float16(type, random));
    case Type::f8e4m3:
    case Type::f8e5m2:
      return wide ? put(to, index, random_float<float>(random)) : put(to, index, static_cast<uint8_t>(random()));
    case Type::f32:
      return put(to, index, random_float<float>(random));
    case Type::f64:
      return put(to, index, random_float<double>(random));
    case Type::cf32:
      put(to, 2 * index, random_float<float>(random));
      return put(to, 2 * index + 1, random_float<float>(random));
    case Type::cf64:
      put(to, 2 * index, random_float<double>(random));
      return put(to, 2 * index + 1, random_float<double>(random));
    case Type::i16_i32:
      return put_pair(to, index, random_integer<int16_t>(random), random);
    case Type::i32_i32:
      return put_pair(to, index, random_integer<int32_t>(random), random);
    case Type::i64_i32:
      return put_pair(to, index, random_integer<int64_t>(random), random);
    case Type::f32_i32:
      return put_pair(to, index, random_float<float>(random), random);
    case Type::f64_i32:
      return put_pair(to, index, random_float<double>(random), random);
  }
}

template <typename T>
bool both_nan(const void* left, const void* right, size_t index) {
  return std::isnan(get<T>(left, index)) && std::isnan(get<T>(right, index));
}

/// One element, or one part of a complex element: equal in bits or both NaN.
template <typename T>
bool same_part(const void* left, const void* right, size_t index) {
  const size_t offset = index * sizeof(T);
  return std::memcmp(static_cast<const char*>(left) + offset, static_cast<const char*>(right) + offset, sizeof(T)) ==
             0 ||
         both_nan<T>(left, right, index);
}

bool same_float16(Type type, const void* left, const void* right, size_t index) {
  const auto a = get<uint16_t>(left, index);
  const auto b = get<uint16_t>(right, index);
  const int infinity = type == Type::f16 ? 0x7c00 : 0x7f80;
  return a == b || ((a & 0x7fff) > infinity && (b & 0x7fff) > infinity);
}

bool same_float8(Type type, const void* left, const void* right, size_t index) {
  const auto a = get<uint8_t>(left, index);
  const auto b = get<uint8_t>(right, index);
  const int last = type == Type::f8e4m3 ? 0x7e : 0x7c;
  return a == b || ((a & 0x7f) > last && (b & 0x7f) > last);
}

bool same_element(Type type, bool wide, const void* left, const void* right, size_t index) {
  if (is_small_float(type) && !wide) {
    return size_of(type) == 1 ? same_float8(type, left, right, index) : same_float16(type, left, right, index);
  }
  if (type == Type::f32 || is_small_float(type)) return same_part<float>(left, right, index);
  if (type == Type::f64) return same_part<double>(left, right, index);
  if (type == Type::cf32) {
    return same_part<float>(left, right, 2 * index) && same_part<float>(left, right, 2 * index + 1);
  }
  if (type == Type::cf64) {
    return same_part<double>(left, right, 2 * index) && same_part<double>(left, right, 2 * index + 1);
  }
  const size_t bytes = size_of(type);
  return std::memcmp(static_cast<const char*>(left) + index * bytes, static_cast<const char*>(right) + index * bytes,
                     bytes) == 0;
}

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  usable_bytes_ = (bytes + page - 1) / page * page;
  mapping_bytes_ = usable_bytes_ + 2 * page;
  void* mapping = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::runtime_error("mmap failed");
  mapping_ = static_cast<char*>(mapping);
  usable_ = mapping_ + page;
  if (mprotect(usable_, usable_bytes_, PROT_READ | PROT_WRITE) != 0) throw std::runtime_error("mprotect failed");
}

GuardedMemory::~GuardedMemory() { munmap(mapping_, mapping_bytes_); }

char* GuardedMemory::place(size_t bytes, Place where, size_t offset_bytes) {
  if (where == Place::start) return usable_;
  if (where == Place::end) return usable_ + usable_bytes_ - bytes;
  return usable_ + offset_bytes;
}

void fill_random(Type type, bool wide, void* to, size_t count, Random& random) {
  for (size_t i = 0; i < count; ++i) put_random(type, wide, to, i, random);
}

size_t first_difference(Type type, bool wide, const void* left, const void* right, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!same_element(type, wide, left, right, i)) return i;
  }
  return count;
}

std::string element_text(Type type, bool wide, const void* vector, size_t index) {
  const size_t bytes = wire_size(type, wide);
  std::string text;
  for (size_t i = bytes; i-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", get<uint8_t>(vector, index * bytes + i));
    text += digits;
  }
  return text;
}

std::vector<Defined> all_defined() {
  std::vector<Defined> all;
  for (int op = 0; op < kOpCount; ++op) {
    for (int type = 0; type < kTypeCount; ++type) {
      const Defined defined{static_cast<Op>(op), static_cast<Type>(type)};
      if (why_not(defined.op, defined.type) == nullptr) all.push_back(defined);
    }
  }
  return all;
}

std::string label(Op op, Type type, Isa isa) {
  return std::string(name(op)) + " " + torii::name(type) + " " + name(isa);
}

}  // namespace torii::kernels::testing
