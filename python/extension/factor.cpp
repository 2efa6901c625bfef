// SPDX-License-Identifier: Apache-2.0
// Short floats are rounded here: Python's C interface has no function for them in its stable part.
#include "python/extension/factor.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>

#include "python/extension/errors.hpp"

namespace torii_python {
namespace {

/// The parts of a float of at most 16 bits. `largest` has the bits of the largest finite number, `beyond` those of what
/// rounds to more.
struct ShortFloat {
  int exponent_bits;
  int mantissa_bits;
  unsigned largest;
  unsigned beyond;
  unsigned nan;
};
constexpr ShortFloat kF16 = {5, 10, 0x7bff, 0x7c00, 0x7e00};
constexpr ShortFloat kBf16 = {8, 7, 0x7f7f, 0x7f80, 0x7fc0};
constexpr ShortFloat kE4m3 = {4, 3, 0x7e, 0x7f, 0x7f};
constexpr ShortFloat kE5m2 = {5, 2, 0x7b, 0x7c, 0x7e};

unsigned bits_of(double value, const ShortFloat& form) {
  const unsigned sign = std::signbit(value) ? 1U << (form.exponent_bits + form.mantissa_bits) : 0;
  if (std::isnan(value)) return sign | form.nan;
  if (std::isinf(value)) return sign | form.beyond;
  const int bias = (1 << (form.exponent_bits - 1)) - 1;
  const double magnitude = std::fabs(value);
  const int exponent = magnitude == 0 ? 1 - bias : std::max(std::ilogb(magnitude), 1 - bias);
  // In units of the last place, so that the default rounding of doubles is that of the short type.
  const double units = std::nearbyint(std::ldexp(magnitude, form.mantissa_bits - exponent));
  if (exponent > bias + 1) return sign | form.beyond;
  // The implicit bit adds one to the exponent; so does a fraction that rounds up to the next power of two.
  const auto bits = (static_cast<unsigned>(exponent + bias - 1) << form.mantissa_bits) + static_cast<unsigned>(units);
  return sign | (bits > form.largest ? form.beyond : bits);
}

template <typename Value>
void write(const Value& value, Factor& factor) {
  std::memcpy(factor.data(), &value, sizeof(value));
}

/// Returns false, after an exception of Python that does not name the argument.
bool no_number(PyObject* factor, torii_type type, const char* kind) {
  if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
    PyErr_Clear();
    return value_error("factor is %R, which is more than elements of type %s can hold", factor, torii_type_name(type));
  }
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0 && PyErr_ExceptionMatches(PyExc_ValueError) == 0) return false;
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "factor is %R; for elements of type %s it must be %s", factor, torii_type_name(type),
               kind);
  return false;
}

template <typename Integer>
bool read_whole(PyObject* number, torii_type type, Factor& factor) {
  using Limits = std::numeric_limits<Integer>;
  using Wide = std::conditional_t<std::is_signed_v<Integer>, long long, unsigned long long>;
  const Owned index(PyNumber_Index(number));
  if (!index) return no_number(number, type, "an integer");
  Wide value = 0;
  if constexpr (std::is_signed_v<Integer>) {
    value = PyLong_AsLongLong(index.get());
  } else {
    value = PyLong_AsUnsignedLongLong(index.get());
  }
  const bool overflows = PyErr_Occurred() != nullptr;
  if (!overflows && value >= Limits::min() && value <= Limits::max()) {
    write(static_cast<Integer>(value), factor);
    return true;
  }
  PyErr_Clear();
  if constexpr (std::is_signed_v<Integer>) {
    return value_error("factor is %R; for elements of type %s it must be %lld to %lld", number, torii_type_name(type),
                       static_cast<long long>(Limits::min()), static_cast<long long>(Limits::max()));
  } else {
    return value_error("factor is %R; for elements of type %s it must be 0 to %llu", number, torii_type_name(type),
                       static_cast<unsigned long long>(Limits::max()));
  }
}

bool read_float(PyObject* number, torii_type type, Factor& factor) {
  const double value = PyFloat_AsDouble(number);
  if (value == -1 && PyErr_Occurred() != nullptr) return no_number(number, type, "a real number");
  if (type == TORII_F64) {
    write(value, factor);
  } else if (type == TORII_F32) {
    write(static_cast<float>(value), factor);
  } else if (type == TORII_F16 || type == TORII_BF16) {
    write(static_cast<std::uint16_t>(bits_of(value, type == TORII_F16 ? kF16 : kBf16)), factor);
  } else {
    write(static_cast<std::uint8_t>(bits_of(value, type == TORII_FLOAT8_E4M3 ? kE4m3 : kE5m2)), factor);
  }
  return true;
}

bool read_complex(PyObject* number, torii_type type, Factor& factor) {
  if (PyUnicode_Check(number) != 0) PyErr_SetNone(PyExc_TypeError);  // complex() would read it
  if (PyErr_Occurred() != nullptr) return no_number(number, type, "a complex number");
  // NumPy's short complex numbers are no complex of Python.
  const Owned value(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PyComplex_Type), number, nullptr));
  if (!value) return no_number(number, type, "a complex number");
  const std::complex<double> parts(PyComplex_RealAsDouble(value.get()), PyComplex_ImagAsDouble(value.get()));
  if (type == TORII_CF64) {
    write(parts, factor);
  } else {
    write(std::complex<float>(parts), factor);
  }
  return true;
}

}  // namespace

bool read_factor(PyObject* number, torii_type type, Factor& factor) {
  factor = {};
  switch (type) {
    case TORII_I8:
      return read_whole<std::int8_t>(number, type, factor);
    case TORII_U8:
      return read_whole<std::uint8_t>(number, type, factor);
    case TORII_I16:
      return read_whole<std::int16_t>(number, type, factor);
    case TORII_U16:
      return read_whole<std::uint16_t>(number, type, factor);
    case TORII_I32:
      return read_whole<std::int32_t>(number, type, factor);
    case TORII_U32:
      return read_whole<std::uint32_t>(number, type, factor);
    case TORII_I64:
      return read_whole<std::int64_t>(number, type, factor);
    case TORII_U64:
      return read_whole<std::uint64_t>(number, type, factor);
    case TORII_F16:
    case TORII_BF16:
    case TORII_F32:
    case TORII_F64:
    case TORII_FLOAT8_E4M3:
    case TORII_FLOAT8_E5M2:
      return read_float(number, type, factor);
    case TORII_CF32:
    case TORII_CF64:
      return read_complex(number, type, factor);
    default:
      return true;
  }
}

}  // namespace torii_python
