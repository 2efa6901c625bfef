// SPDX-License-Identifier: Apache-2.0
// Element types and operations: from formats of the buffer protocol, names and NumPy dtypes to those of torii.
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "python/extension/buffers.hpp"
#include "python/extension/errors.hpp"

namespace torii_python {
namespace {

constexpr int kTypesMost = 256;  ///< more than there are: names are asked for until one is NULL
constexpr int kOpLast = TORII_PREMUL_SUM;

/// Names of NumPy, and of packages that extend it, beside those of torii.
struct Alias {
  std::string_view name;
  std::string_view torii;
};
constexpr std::array kAliases = {
    Alias{"int8", "i8"},
    Alias{"uint8", "u8"},
    Alias{"int16", "i16"},
    Alias{"uint16", "u16"},
    Alias{"int32", "i32"},
    Alias{"uint32", "u32"},
    Alias{"int64", "i64"},
    Alias{"uint64", "u64"},
    Alias{"float16", "f16"},
    Alias{"half", "f16"},
    Alias{"bfloat16", "bf16"},
    Alias{"float32", "f32"},
    Alias{"float64", "f64"},
    Alias{"float", "f64"},
    Alias{"complex64", "cf32"},
    Alias{"complex128", "cf64"},
    Alias{"complex", "cf64"},
    Alias{"int", "i64"},
    Alias{"intp", "i64"},
    Alias{"uintp", "u64"},
    Alias{"long", "i64"},
    Alias{"ulong", "u64"},
    Alias{"longlong", "i64"},
    Alias{"ulonglong", "u64"},
    Alias{"intc", "i32"},
    Alias{"uintc", "u32"},
    Alias{"short", "i16"},
    Alias{"ushort", "u16"},
    Alias{"byte", "i8"},
    Alias{"ubyte", "u8"},
    Alias{"single", "f32"},
    Alias{"double", "f64"},
    Alias{"csingle", "cf32"},
    Alias{"cdouble", "cf64"},
    Alias{"bool_", "bool"},
    Alias{"?", "bool"},
    Alias{"f2", "f16"},
    Alias{"f4", "f32"},
    Alias{"f8", "f64"},
    Alias{"c8", "cf32"},
    Alias{"c16", "cf64"},
    Alias{"float8_e4m3fn", "f8e4m3"},
    Alias{"float8_e5m2", "f8e5m2"},
};

/// Codes of NumPy behind a byte order, such as "<f4". Without one, "i8" and "u8" are torii's, of 8 bits.
constexpr std::array kCodes = {
    Alias{"b1", "bool"}, Alias{"i1", "i8"},  Alias{"u1", "u8"},   Alias{"i2", "i16"},   Alias{"u2", "u16"},
    Alias{"f2", "f16"},  Alias{"i4", "i32"}, Alias{"u4", "u32"},  Alias{"f4", "f32"},   Alias{"i8", "i64"},
    Alias{"u8", "u64"},  Alias{"f8", "f64"}, Alias{"c8", "cf32"}, Alias{"c16", "cf64"},
};
constexpr std::string_view kOwnOrders = std::endian::native == std::endian::little ? "<=|" : ">=|";

std::optional<torii_type> type_of_name(std::string_view name) {
  if (!name.empty() && kOwnOrders.find(name[0]) != std::string_view::npos) {
    for (const Alias& code : kCodes) {
      if (code.name == name.substr(1)) return type_of_name(code.torii);
    }
    return std::nullopt;
  }
  for (int type = 0; type < kTypesMost; ++type) {
    const char* const known = torii_type_name(static_cast<torii_type>(type));
    if (known == nullptr) break;
    if (known == name) return static_cast<torii_type>(type);
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return type_of_name(alias.torii);
  }
  return std::nullopt;
}

std::string known_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}
std::string known_types() { return known_names(type_names()); }

Element element_of(torii_type type) { return {type, torii_type_bytes(type)}; }

/// The reason that keeps torii from moving items as they are.
struct Obstacle {
  bool has_pointers = false;       ///< to objects of Python, or of C
  bool has_foreign_order = false;  ///< the bytes of an item of several bytes are in the order of other machines
};

/// Looks through a format of the buffer protocol, but not at names of fields, which stand between colons.
Obstacle obstacle_of(std::string_view format) {
  constexpr std::string_view kForeign = std::endian::native == std::endian::little ? ">!" : "<";
  constexpr std::string_view kOrders = "@=<>!^";
  constexpr std::string_view kSingleBytes = "bBc?sxpT";  // T begins a structure
  Obstacle obstacle;
  bool in_name = false;
  bool is_foreign = false;
  for (const char c : format) {
    if (c == ':') in_name = !in_name;
    if (in_name) continue;
    if (kOrders.find(c) != std::string_view::npos) is_foreign = kForeign.find(c) != std::string_view::npos;
    if (c == 'O' || c == 'P' || c == '&' || c == 'X') obstacle.has_pointers = true;
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '?';
    if (is_foreign && is_letter && kSingleBytes.find(c) == std::string_view::npos) obstacle.has_foreign_order = true;
  }
  return obstacle;
}

const char* format_of(const Buffer& buffer) { return buffer.view().format == nullptr ? "B" : buffer.view().format; }

/// True if the items have the byte order of this machine and no pointers.
bool check_format(const Buffer& buffer) {
  if (!obstacle_of(format_of(buffer)).has_foreign_order) return check_no_pointers(buffer);
  return value_error(
      "%s has elements of format '%s', whose bytes are in the order of other machines; pass a copy in the order of "
      "this one, such as array.astype(array.dtype.newbyteorder('='))",
      buffer.name(), format_of(buffer));
}

/// The letter of a struct format without what says how it is laid out. 0: another byte order, or no single letter.
char letter_of(std::string_view format, std::size_t item_bytes) {
  if (format.starts_with('>') || format.starts_with('!')) {
    if (item_bytes != 1) return 0;
    format.remove_prefix(1);
  } else if (format.starts_with('@') || format.starts_with('=') || format.starts_with('<') || format.starts_with('^')) {
    format.remove_prefix(1);
  }
  if (format == "Zf" || format == "Zd") return 'Z';
  return format.size() == 1 ? format[0] : 0;
}

/// By tables and not by names, because every call comes here.
std::optional<torii_type> type_of_letter(char letter, std::size_t item_bytes) {
  constexpr std::array kSigned = {TORII_I8, TORII_I16, TORII_I32, TORII_I64};
  constexpr std::array kUnsigned = {TORII_U8, TORII_U16, TORII_U32, TORII_U64};
  if (item_bytes == 0 || (item_bytes & (item_bytes - 1)) != 0 || (letter != 'Z' && item_bytes > 8)) return std::nullopt;
  const auto power = static_cast<std::size_t>(std::countr_zero(item_bytes));
  switch (letter) {
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return kSigned.at(power);
    case '?':
      return item_bytes == 1 ? std::optional(TORII_BOOL) : std::nullopt;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
    case 'c':
      return kUnsigned.at(power);
    case 'e':
      return TORII_F16;
    case 'f':
      return TORII_F32;
    case 'd':
      return TORII_F64;
    case 'Z':
      return item_bytes == 8 ? TORII_CF32 : TORII_CF64;
    default:
      return std::nullopt;
  }
}

/// Pairs for minloc and maxloc: NumPy's format of a structure is such as T{f:value:i:index:}, with x for padding.
std::optional<torii_type> type_of_pair(std::string_view format, std::size_t item_bytes) {
  if (!format.starts_with("T{") || !format.ends_with("}")) return std::nullopt;
  std::string letters;
  bool in_name = false;
  for (const char c : format.substr(2, format.size() - 3)) {
    if (c == ':') in_name = !in_name;
    if (!in_name && std::string_view(":x@=<^0123456789").find(c) == std::string_view::npos) letters += c;
  }
  if (letters.size() != 2 || letters[1] != 'i') return std::nullopt;
  struct Pair {
    std::string_view letters;
    torii_type type;
  };
  for (const Pair& pair : {Pair{"h", TORII_I16_I32}, Pair{"i", TORII_I32_I32}, Pair{"lq", TORII_I64_I32},
                           Pair{"f", TORII_F32_I32}, Pair{"d", TORII_F64_I32}}) {
    if (pair.letters.find(letters[0]) != std::string_view::npos && torii_type_bytes(pair.type) == item_bytes)
      return pair.type;
  }
  return std::nullopt;
}

/// The name that an object stands for: a str, or the `name` of a NumPy dtype or scalar type (`__name__`).
Owned name_of(PyObject* dtype) {
  if (PyUnicode_Check(dtype) != 0) return Owned(Py_NewRef(dtype));
  for (const char* attribute : {"name", "__name__"}) {
    Owned name(PyObject_GetAttrString(dtype, attribute));
    if (name && PyUnicode_Check(name.get()) != 0) return name;
    PyErr_Clear();
  }
  return Owned(PyObject_Str(dtype));
}

/// Also NumPy's, which older versions take for integers.
bool is_bool(PyObject* object) {
  if (PyLong_CheckExact(object) != 0) return false;
  const Owned name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
  PyErr_Clear();
  return name && (PyUnicode_CompareWithASCIIString(name.get(), "bool") == 0 ||
                  PyUnicode_CompareWithASCIIString(name.get(), "bool_") == 0);
}

/// The number that an integer, also one of NumPy, stands for; -1 if it is too large. A bool is no number here.
std::optional<long> number_of(PyObject* object) {
  if (PyIndex_Check(object) == 0 || is_bool(object)) return std::nullopt;
  const Owned index(PyNumber_Index(object));
  PyErr_Clear();  // of an array with several numbers
  if (!index) return std::nullopt;
  int overflow = 0;
  const long number = PyLong_AsLongAndOverflow(index.get(), &overflow);
  return overflow == 0 ? number : -1;
}

}  // namespace

bool check_no_pointers(const Buffer& buffer) {
  return !obstacle_of(format_of(buffer)).has_pointers ||
         value_error(
             "%s has elements of format '%s', which are references to Python objects, or other pointers; they "
             "mean nothing to other processes",
             buffer.name(), format_of(buffer));
}

bool check_same_items(const Buffer& array, const Buffer& out) {
  struct Items {
    std::optional<torii_type> type;
    std::string_view format;
    Py_ssize_t bytes;
  };
  const auto items_of = [](const Buffer& buffer) {
    const Py_ssize_t bytes = buffer.view().itemsize;
    std::string_view format = format_of(buffer);
    const char letter = letter_of(format, static_cast<std::size_t>(bytes));
    if (!format.empty() && std::string_view("@=<^").find(format[0]) != std::string_view::npos) format.remove_prefix(1);
    return Items{type_of_letter(letter, static_cast<std::size_t>(bytes)), format, bytes};
  };
  const Items left = items_of(array);
  const Items right = items_of(out);
  // A type may have several formats, such as "l" and "q". Others are compared by their formats.
  const bool are_same =
      left.bytes == right.bytes && left.type == right.type && (left.type || left.format == right.format);
  return are_same || value_error("%s has elements of format '%s'; %s has '%s', and both must be equal", out.name(),
                                 format_of(out), array.name(), format_of(array));
}

bool find_type(PyObject* dtype, Element& element) {
  if (const auto number = number_of(dtype)) {
    if (*number < 0 || *number >= kTypesMost || torii_type_bytes(static_cast<torii_type>(*number)) == 0) {
      return value_error("dtype is %R, which is no type of torii", dtype);
    }
    element = element_of(static_cast<torii_type>(*number));
    return true;
  }
  const Owned name = name_of(dtype);
  const char* const text = name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr;
  if (text == nullptr) return false;
  const auto type = type_of_name(text);
  if (!type) {
    return value_error("dtype is %R; use one of %s, or the NumPy type of one of them", dtype, known_types().c_str());
  }
  element = element_of(*type);
  return true;
}

bool find_element(const Buffer& buffer, PyObject* dtype, Element& element) {
  const auto item_bytes = static_cast<std::size_t>(buffer.view().itemsize);
  const char* const format = format_of(buffer);
  if (dtype != Py_None) {
    if (!find_type(dtype, element) || !check_format(buffer)) return false;
    if (item_bytes == element.bytes) return true;
    if (item_bytes == 1 && buffer.bytes() % element.bytes == 0) return true;
    return value_error("%s has %zd bytes in items of %zu (format '%s'); dtype %R needs items of %zu bytes, or of 1",
                       buffer.name(), buffer.view().len, item_bytes, format, dtype, element.bytes);
  }
  const char letter = letter_of(format, item_bytes);
  auto type = type_of_letter(letter, item_bytes);
  if (!type && !check_format(buffer)) return false;
  if (!type) type = type_of_pair(format, item_bytes);
  if (!type) {
    return value_error(
        "%s has elements of format '%s', which torii cannot combine or move by itself; name their type "
        "by dtype=, one of %s",
        buffer.name(), format, known_types().c_str());
  }
  element = element_of(*type);
  return true;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (int type = 0; torii_type_name(static_cast<torii_type>(type)) != nullptr; ++type) {
    names.emplace_back(torii_type_name(static_cast<torii_type>(type)));
  }
  return names;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (int op = 0; torii_op_name(static_cast<torii_op>(op)) != nullptr; ++op) {
    if (op != TORII_USER) names.emplace_back(torii_op_name(static_cast<torii_op>(op)));
  }
  return names;
}

bool find_op(PyObject* object, torii_op& op) {
  if (const auto number = number_of(object)) {
    if (*number >= 0 && *number <= kOpLast && *number != TORII_USER) {
      op = static_cast<torii_op>(*number);
      return true;
    }
  } else if (PyUnicode_Check(object) != 0) {
    const char* const text = PyUnicode_AsUTF8AndSize(object, nullptr);
    if (text == nullptr) return false;
    for (int i = 0; i <= kOpLast; ++i) {
      const char* const name = torii_op_name(static_cast<torii_op>(i));
      if (i == TORII_USER || name == nullptr || std::string_view(text) != name) continue;
      op = static_cast<torii_op>(i);
      return true;
    }
  }
  return value_error("op is %R; use one of %s", object, known_names(op_names()).c_str());
}

}  // namespace torii_python
