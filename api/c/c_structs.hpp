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

/// Whether collective, type, operation, root, count and buffers are all of a call of this version, and have known
/// numbers. One branch for all other fields, which few calls have.
inline bool is_plain(const torii_call* call) noexcept {
  const auto is_set = [](auto pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  if (call == nullptr || call->size != sizeof(*call)) return false;
  if (static_cast<unsigned>(number_in(call->collective)) > TORII_EXSCAN) return false;
  if (static_cast<unsigned>(number_in(call->type)) > kTypeLast) return false;
  if (static_cast<unsigned>(number_in(call->op)) >= TORII_USER || call->timeout_seconds != 0) return false;
  return (is_set(call->input_blocks) | is_set(call->result_blocks) | is_set(call->load) | is_set(call->store) |
          is_set(call->leaves) | is_set(call->leaf) | static_cast<unsigned>(call->unequal)) == 0;
}
inline void read_plain(const torii_call& call, CallDescription& described) noexcept {
  described.spec = spec_of(static_cast<Collective>(number_in(call.collective)), static_cast<Type>(number_in(call.type)),
                           static_cast<OpNumber>(number_in(call.op)), call.root, call.count);
  // Input and result must not come by one load of both: if the caller has just stored them one by one, that load waits
  // until both have reached the cache.
  const void* input = call.input;
  asm("" : "+r"(input));
  described.memory = {input, call.result};
}
/// Reads any call on a team; false when it makes no sense, and `status` says what is returned. Whether a team can run
/// it, the team finds out.
bool read_call(const torii_team* team, const torii_call* given, CallDescription& call, torii_status& status);

/// A call with unequal blocks, whose lengths and places are still to be set.
torii_call unequal_call(torii_collective collective, const void* input, void* result, std::size_t count,
                        torii_type type, int root) noexcept;

}  // namespace torii::c
