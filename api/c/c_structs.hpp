// SPDX-License-Identifier: Apache-2.0
// Reads the structs that C callers hand in: sizes of other versions, enums with any number, fields that do not go
// together.
#pragma once

#include <torii/torii.h>

#include <algorithm>
#include <cstring>

#include "api/c/c_objects.hpp"

namespace torii::c {

/// Whether the size at the beginning of a struct of the caller can be one. If not, `status` says what is returned.
bool is_size(std::size_t size, const char* what, torii_status& status);

/// Whether all is zero from `known` to `bytes` in a struct of the caller. If not, `status` says what is returned.
bool is_zero_beyond(const void* given, std::size_t known, std::size_t bytes, const char* what, torii_status& status);

/// Copies a struct of an older or newer caller. Fields that an older struct lacks become zero. Fields of a newer struct
/// beyond ours must be zero, since they would be ignored. NULL is read as all zero.
template <typename Struct>
bool read_struct(const Struct* given, Struct& own, const char* what, torii_status& status) {
  std::memset(&own, 0, sizeof(own));
  if (given == nullptr) return true;
  if (!is_size(given->size, what, status)) return false;
  std::memcpy(&own, given, std::min(given->size, sizeof(own)));
  return is_zero_beyond(given, sizeof(own), given->size, what, status);
}

/// The number in an enum of a caller's struct: C can write any, and in C++ loading one without a name is undefined.
template <typename Enum>
int number_in(const Enum& field) {
  int number = 0;
  static_assert(sizeof(field) == sizeof(number));
  std::memcpy(&number, &field, sizeof(number));
  return number;
}

/// Reads a call on a team; false when it makes no sense, and `status` says what is returned. Whether a team can run it,
/// the team finds out.
bool read_call(const torii_team* team, const torii_call* given, CallArguments& arguments, torii_status& status);

/// Reads a call of this version with unequal blocks that BlockCalls may take. False for others, and for
/// all that read_call() refuses.
bool read_blocks_call(const torii_call& call, CallArguments& arguments) noexcept;

/// A call with unequal blocks, whose lengths and places are still to be set.
torii_call unequal_call(torii_collective collective, const void* input, void* result, std::size_t count,
                        torii_type type, int root) noexcept;

}  // namespace torii::c
