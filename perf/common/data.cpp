// SPDX-License-Identifier: Apache-2.0
// Makes, compares and hashes vectors field by field.
#include "perf/common/data.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "perf/common/names.hpp"

namespace torii::perf {
namespace {

// Numbers are stored by their low bytes.
static_assert(std::endian::native == std::endian::little);

/// The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

/// A binary floating-point format: bits of mantissa, bias and width.
template <int kMantissaBits, int kBias, int kWidth, int kExponentMax>
struct Real {
  static uint64_t from(uint64_t random) {
    const uint64_t mantissa = random & ((uint64_t{1} << kMantissaBits) - 1);
    const uint64_t exponent = kBias - kExponentMax + ((((random >> 52) & 0x7ff) * (2 * kExponentMax + 1)) >> 11);
    return (random >> 63) << (kWidth - 1) | exponent << kMantissaBits | mantissa;
  }
  /// +1 or -1.
  static uint64_t small(uint64_t random) {
    return (random & 1) << (kWidth - 1) | static_cast<uint64_t>(kBias) << kMantissaBits;
  }
  static bool is_nan(uint64_t bits) {
    constexpr uint64_t kInfinity = ((uint64_t{1} << (kWidth - 1 - kMantissaBits)) - 1) << kMantissaBits;
    constexpr uint64_t kMagnitude = ((uint64_t{1} << (kWidth - 1)) - 1);
    return (bits & kMagnitude) > kInfinity;
  }
  static constexpr uint64_t kNan = ((uint64_t{1} << (kWidth - kMantissaBits)) - 1) << (kMantissaBits - 1);
};
struct Integer {
  static uint64_t from(uint64_t random) { return (random >> 60) == 0 ? 0 : mix(random); }
  static uint64_t small(uint64_t random) { return random & 3; }
  static bool is_nan(uint64_t /*bits*/) { return false; }
  static constexpr uint64_t kNan = 0;
};
struct Truth : Integer {
  static uint64_t from(uint64_t random) { return random >> 63; }
};
struct E4m3 : Real<3, 7, 8, 3> {
  static bool is_nan(uint64_t bits) { return (bits & 0x7f) == 0x7f; }
  static constexpr uint64_t kNan = 0x7f;
};
using E5m2 = Real<2, 15, 8, 4>;
using F16 = Real<10, 15, 16, 4>;
using Bf16 = Real<7, 127, 16, 20>;
using F32 = Real<23, 127, 32, 20>;
using F64 = Real<52, 1023, 64, 20>;

/// Calls `body` with the format of `kind`, so that loops over elements are compiled once per format.
template <typename Body>
auto with_format(Kind kind, Body body) {
  switch (kind) {
    case Kind::truth:
      return body(Truth{});
    case Kind::f8e4m3:
      return body(E4m3{});
    case Kind::f8e5m2:
      return body(E5m2{});
    case Kind::f16:
      return body(F16{});
    case Kind::bf16:
      return body(Bf16{});
    case Kind::f32:
      return body(F32{});
    case Kind::f64:
      return body(F64{});
    case Kind::integer:
      break;
  }
  return body(Integer{});
}

uint64_t load(const std::byte* at, size_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  return bits;
}

template <typename Format, int kBytes>
void fill_whole(uint64_t key, size_t first, size_t count, std::byte* out) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = Format::from(mix(key + (first + i) * kGolden));
    std::memcpy(out + i * kBytes, &bits, kBytes);
  }
}

void fill_two_fields(const TypeInfo& type, uint64_t key, size_t first, size_t count, std::byte* out) {
  const bool has_index = is_pair(type.type);
  std::memset(out, 0, count * type.size_bytes);
  with_format(type.fields[0].kind, [&](auto format) {
    using Format = decltype(format);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t random = mix(key + (first + i) * kGolden);
      const uint64_t other = mix(random + kGolden);
      const bool tie = has_index && (other >> 62) == 0;
      const uint64_t value = tie ? Format::small(random) : Format::from(random);
      const uint64_t second = has_index ? other & 0x7fffffff : Format::from(other);
      std::byte* element = out + i * type.size_bytes;
      std::memcpy(element, &value, type.fields[0].size_bytes);
      std::memcpy(element + type.fields[1].offset_bytes, &second, type.fields[1].size_bytes);
    }
  });
}

/// Element with NaNs made equal and padding cleared, in place of the original.
void normalise(const TypeInfo& type, const std::byte* from, size_t count, std::byte* to) {
  std::memset(to, 0, count * type.size_bytes);
  for (int f = 0; f < type.field_count; ++f) {
    const Field& field = type.fields[f];
    with_format(field.kind, [&](auto format) {
      using Format = decltype(format);
      for (size_t i = 0; i < count; ++i) {
        const size_t at = i * type.size_bytes + field.offset_bytes;
        const uint64_t bits = load(from + at, field.size_bytes);
        const uint64_t kept = Format::is_nan(bits) ? Format::kNan : bits;
        std::memcpy(to + at, &kept, field.size_bytes);
      }
    });
  }
}

/// Bytes handled at once where a normalised copy is needed.
constexpr size_t kPartBytes = 64 * 1024;

}  // namespace

void fill(uint64_t seed, torii_type type, int rank, size_t first, size_t count, void* out) {
  const TypeInfo& entry = info(type);
  const uint64_t key = mix(seed + mix(static_cast<uint64_t>(rank) * 64 + static_cast<uint64_t>(type) + kGolden));
  auto* bytes = static_cast<std::byte*>(out);
  if (entry.field_count == 2) return fill_two_fields(entry, key, first, count, bytes);
  switch (entry.fields[0].kind) {
    case Kind::truth:
      return fill_whole<Truth, 1>(key, first, count, bytes);
    case Kind::f8e4m3:
      return fill_whole<E4m3, 1>(key, first, count, bytes);
    case Kind::f8e5m2:
      return fill_whole<E5m2, 1>(key, first, count, bytes);
    case Kind::f16:
      return fill_whole<F16, 2>(key, first, count, bytes);
    case Kind::bf16:
      return fill_whole<Bf16, 2>(key, first, count, bytes);
    case Kind::f32:
      return fill_whole<F32, 4>(key, first, count, bytes);
    case Kind::f64:
      return fill_whole<F64, 8>(key, first, count, bytes);
    case Kind::integer:
      break;
  }
  switch (entry.size_bytes) {
    case 1:
      return fill_whole<Integer, 1>(key, first, count, bytes);
    case 2:
      return fill_whole<Integer, 2>(key, first, count, bytes);
    case 4:
      return fill_whole<Integer, 4>(key, first, count, bytes);
    default:
      return fill_whole<Integer, 8>(key, first, count, bytes);
  }
}

size_t count_wrong(torii_type type, const void* got, const void* expected, size_t count) {
  const TypeInfo& entry = info(type);
  const size_t size = entry.size_bytes;
  if (std::memcmp(got, expected, count * size) == 0) return 0;
  std::vector<bool> wrong(count);
  for (int f = 0; f < entry.field_count; ++f) {
    const Field& field = entry.fields[f];
    with_format(field.kind, [&](auto format) {
      using Format = decltype(format);
      for (size_t i = 0; i < count; ++i) {
        const uint64_t a = load(static_cast<const std::byte*>(got) + i * size + field.offset_bytes, field.size_bytes);
        const uint64_t b =
            load(static_cast<const std::byte*>(expected) + i * size + field.offset_bytes, field.size_bytes);
        if (a != b && !(Format::is_nan(a) && Format::is_nan(b))) wrong[i] = true;
      }
    });
  }
  return static_cast<size_t>(std::count(wrong.begin(), wrong.end(), true));
}

uint64_t hash(torii_type type, const void* data, size_t count) {
  const TypeInfo& entry = info(type);
  const auto* bytes = static_cast<const std::byte*>(data);
  if (entry.field_count == 1 && entry.fields[0].kind == Kind::integer) {
    return XXH3_64bits(bytes, count * entry.size_bytes);
  }
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<std::byte> normalised(kPartBytes);
  const size_t step = kPartBytes / entry.size_bytes;
  for (size_t at = 0; at < count; at += step) {
    const size_t part = std::min(step, count - at);
    normalise(entry, bytes + at * entry.size_bytes, part, normalised.data());
    XXH3_64bits_update(state.get(), normalised.data(), part * entry.size_bytes);
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace torii::perf
