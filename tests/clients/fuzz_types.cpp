// SPDX-License-Identifier: Apache-2.0
// What MPI types look like in memory, written out by hand so that nothing of an MPI library is trusted for it.
#include "tests/clients/fuzz_types.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace torii::clients {
namespace {

constexpr unsigned char kPattern = 0xA5;
constexpr std::size_t kLongDoubleBytes = 10;  // of the 16 that it takes on x86-64

const Layout* used_layout = nullptr;
MPI_Op op_sum = MPI_OP_NULL;
MPI_Op op_affine = MPI_OP_NULL;

std::uint32_t load(const void* base, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, static_cast<const unsigned char*>(base) + at, sizeof(value));
  return value;
}

void store(void* base, std::size_t at, std::uint32_t value) {
  std::memcpy(static_cast<unsigned char*>(base) + at, &value, sizeof(value));
}

void sum_function(void* in, void* inout, int* length, MPI_Datatype*) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(*length); ++i) {
    for (const std::size_t place : used_layout->places()) {
      const std::size_t at = i * used_layout->extent() + place;
      store(inout, at, load(in, at) + load(inout, at));
    }
  }
}

/// in is applied first: it stands on the left.
void affine_function(void* in, void* inout, int* length, MPI_Datatype*) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(*length); ++i) {
    const std::size_t a = i * used_layout->extent() + used_layout->places()[0];
    const std::size_t b = i * used_layout->extent() + used_layout->places()[1];
    store(inout, b, load(inout, a) * load(in, b) + load(inout, b));
    store(inout, a, load(inout, a) * load(in, a));
  }
}

template <typename Value>
void put(unsigned char* element, Value value) {
  std::memcpy(element, &value, sizeof(value));
}

void write_integer(std::size_t bytes, int value, unsigned char* element) {
  const auto wide = static_cast<std::int64_t>(value);
  std::memcpy(element, &wide, bytes);  // little endian
}

void write_real(std::size_t bytes, int value, unsigned char* element) {
  if (bytes == sizeof(float)) {
    put(element, static_cast<float>(value));
  } else if (bytes == sizeof(double)) {
    put(element, static_cast<double>(value));
  } else {
    const auto wide = static_cast<long double>(value);
    std::memcpy(element, &wide, kLongDoubleBytes);
  }
}

template <typename Value>
Basic pair(const char* name, MPI_Datatype type) {
  struct Pair {
    Value value;
    int index;
  };
  return {name, type, Holds::pair, sizeof(Pair), sizeof(Value)};
}

std::size_t index_place(const Basic& basic) { return std::max(basic.value_bytes, sizeof(int)); }

bool is_real_pair(const Basic& basic) {
  return basic.type == MPI_FLOAT_INT || basic.type == MPI_DOUBLE_INT || basic.type == MPI_LONG_DOUBLE_INT;
}

std::pair<MPI_Datatype, std::vector<std::size_t>> shape_of(const Basic& basic, int shape) {
  const std::size_t one = basic.bytes;
  MPI_Datatype type = basic.type;
  switch (shape) {
    case 1:
      MPI_Type_contiguous(3, basic.type, &type);
      return {type, {0, one, 2 * one}};
    case 2:
      MPI_Type_vector(2, 2, 3, basic.type, &type);
      return {type, {0, one, 3 * one, 4 * one}};
    case 3:
      MPI_Type_create_resized(basic.type, 0, static_cast<MPI_Aint>(3 * one), &type);
      return {type, {0}};
    case 4: {
      const int places[] = {5, 2, 3};
      MPI_Datatype scattered;
      MPI_Type_create_indexed_block(3, 1, places, basic.type, &scattered);
      MPI_Type_create_resized(scattered, 0, static_cast<MPI_Aint>(7 * one), &type);
      MPI_Type_free(&scattered);
      return {type, {5 * one, 2 * one, 3 * one}};
    }
    case 5:
      MPI_Type_create_resized(basic.type, -static_cast<MPI_Aint>(one), static_cast<MPI_Aint>(3 * one), &type);
      return {type, {0}};
    case 6: {
      const MPI_Aint before = -static_cast<MPI_Aint>(one);
      MPI_Type_create_hindexed_block(1, 1, &before, basic.type, &type);
      return {type, {std::size_t{0} - one}};
    }
    default:
      return {type, {0}};
  }
}

}  // namespace

const std::vector<Basic>& basics() {
  static const std::vector<Basic> all = {
      {"int8", MPI_INT8_T, Holds::integer, 1, 1},
      {"uint8", MPI_UINT8_T, Holds::integer, 1, 1},
      {"int16", MPI_INT16_T, Holds::integer, 2, 2},
      {"unsigned short", MPI_UNSIGNED_SHORT, Holds::integer, 2, 2},
      {"int", MPI_INT, Holds::integer, 4, 4},
      {"uint32", MPI_UINT32_T, Holds::integer, 4, 4},
      {"long", MPI_LONG, Holds::integer, 8, 8},
      {"uint64", MPI_UINT64_T, Holds::integer, 8, 8},
      {"float", MPI_FLOAT, Holds::real, 4, 4},
      {"double", MPI_DOUBLE, Holds::real, 8, 8},
      {"long double", MPI_LONG_DOUBLE, Holds::real, 16, 16},
      {"complex float", MPI_C_FLOAT_COMPLEX, Holds::complex, 8, 4},
      {"complex double", MPI_C_DOUBLE_COMPLEX, Holds::complex, 16, 8},
      {"complex long double", MPI_C_LONG_DOUBLE_COMPLEX, Holds::complex, 32, 16},
      {"bool", MPI_C_BOOL, Holds::truth, 1, 1},
      {"byte", MPI_BYTE, Holds::bytes, 1, 1},
      pair<float>("float_int", MPI_FLOAT_INT),
      pair<double>("double_int", MPI_DOUBLE_INT),
      pair<long>("long_int", MPI_LONG_INT),
      pair<int>("2int", MPI_2INT),
      pair<short>("short_int", MPI_SHORT_INT),
      pair<long double>("long_double_int", MPI_LONG_DOUBLE_INT),
  };
  return all;
}

void write_value(const Basic& basic, int value, unsigned char* element) {
  switch (basic.holds) {
    case Holds::integer:
    case Holds::bytes:
      write_integer(basic.bytes, value, element);
      break;
    case Holds::truth:
      write_integer(basic.bytes, value & 1, element);
      break;
    case Holds::real:
      write_real(basic.value_bytes, value, element);
      break;
    case Holds::complex:
      write_real(basic.value_bytes, value, element);
      // 0 where values are factors: with imaginary parts the order of a product decides between 0 and -0.
      write_real(basic.value_bytes, value / 8, element + basic.value_bytes);
      break;
    case Holds::pair:
      if (is_real_pair(basic)) {
        write_real(basic.value_bytes, value / 2, element);
      } else {
        write_integer(basic.value_bytes, value / 2, element);
      }
      put(element + index_place(basic), value % 7);
      break;
  }
}

void clear_holes(const Basic& basic, unsigned char* element) {
  if (basic.value_bytes == sizeof(long double)) {
    for (std::size_t at = 0; at < basic.bytes && at + kLongDoubleBytes < basic.bytes; at += sizeof(long double)) {
      const bool is_index = basic.holds == Holds::pair && at != 0;
      const std::size_t kept = is_index ? sizeof(int) : kLongDoubleBytes;
      std::memset(element + at + kept, 0, sizeof(long double) - kept);
    }
  } else if (basic.holds == Holds::pair) {
    const std::size_t index = index_place(basic);
    std::memset(element + basic.value_bytes, 0, index - basic.value_bytes);
    std::memset(element + index + sizeof(int), 0, basic.bytes - index - sizeof(int));
  }
}

Layout::Layout(const Basic& basic, MPI_Datatype type, std::vector<std::size_t> places, bool owned)
    : basic_(basic), owned_(owned) {
  adopt(type, std::move(places));
}

Layout::Layout(const Basic& basic, int shape) : basic_(basic), owned_(shape != 0) {
  auto [type, places] = shape_of(basic, shape);
  adopt(type, std::move(places));
}

Layout Layout::pair_of(const Basic& basic, bool gaps) {
  MPI_Datatype type;
  if (!gaps) {
    MPI_Type_contiguous(2, basic.type, &type);
    return Layout(basic, type, {0, basic.bytes}, true);
  }
  MPI_Datatype apart;
  MPI_Type_vector(2, 1, 2, basic.type, &apart);
  MPI_Type_create_resized(apart, 0, static_cast<MPI_Aint>(5 * basic.bytes), &type);
  MPI_Type_free(&apart);
  return Layout(basic, type, {0, 2 * basic.bytes}, true);
}

void Layout::adopt(MPI_Datatype type, std::vector<std::size_t> places) {
  if (owned_) MPI_Type_commit(&type);
  type_ = type;
  places_ = std::move(places);
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(type_, &lower, &extent);
  extent_ = static_cast<std::size_t>(extent);
}

Layout::Layout(Layout&& other) noexcept
    : basic_(other.basic_),
      type_(other.type_),
      owned_(other.owned_),
      extent_(other.extent_),
      places_(std::move(other.places_)) {
  other.owned_ = false;
}

Layout::~Layout() {
  if (owned_) MPI_Type_free(&type_);
}

Buffer::Buffer(const Layout& layout, std::size_t elements)
    : elements_(elements), bytes_(2 * kMargin + elements * layout.extent(), kPattern) {}

std::ptrdiff_t Buffer::first_difference(const Layout& layout, Buffer a, Buffer b, std::size_t elements) {
  for (Buffer* buffer : {&a, &b}) {
    for (std::size_t element = 0; element < buffer->elements_; ++element) {
      for (const std::size_t place : layout.places()) {
        clear_holes(layout.basic(), buffer->bytes_.data() + (kMargin + element * layout.extent() + place));
      }
    }
  }
  const auto end = elements >= a.elements_ ? a.bytes_.end() : a.bytes_.begin() + kMargin + elements * layout.extent();
  const auto at = std::mismatch(a.bytes_.begin(), end, b.bytes_.begin()).first;
  return at == end ? -1 : at - a.bytes_.begin() - static_cast<std::ptrdiff_t>(kMargin);
}

std::vector<Operation> operations_of(const Basic& basic) {
  const std::vector<Operation> order = {{"max", MPI_MAX}, {"min", MPI_MIN}};
  const std::vector<Operation> arithmetic = {{"sum", MPI_SUM}, {"prod", MPI_PROD}};
  const std::vector<Operation> logic = {{"land", MPI_LAND}, {"lor", MPI_LOR}, {"lxor", MPI_LXOR}};
  const std::vector<Operation> bits = {{"band", MPI_BAND}, {"bor", MPI_BOR}, {"bxor", MPI_BXOR}};
  std::vector<Operation> all;
  const auto add = [&](const std::vector<Operation>& some) { all.insert(all.end(), some.begin(), some.end()); };
  const bool is_integer = basic.holds == Holds::integer;
  if (is_integer || basic.holds == Holds::real) add(order);
  if (is_integer || basic.holds == Holds::real || basic.holds == Holds::complex) add(arithmetic);
  if (is_integer || basic.holds == Holds::truth) add(logic);
  if (is_integer || basic.holds == Holds::bytes) add(bits);
  if (basic.holds == Holds::pair) add({{"maxloc", MPI_MAXLOC}, {"minloc", MPI_MINLOC}});
  return all;
}

void use_layout(const Layout& layout) { used_layout = &layout; }
MPI_Op user_sum() { return op_sum; }
MPI_Op user_affine() { return op_affine; }

void make_user_operations() {
  MPI_Op_create(sum_function, 1, &op_sum);
  MPI_Op_create(affine_function, 0, &op_affine);
}

void free_user_operations() {
  MPI_Op_free(&op_sum);
  MPI_Op_free(&op_affine);
}

}  // namespace torii::clients
