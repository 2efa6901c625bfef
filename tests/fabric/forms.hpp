// SPDX-License-Identifier: Apache-2.0
// The forms of puts that transports treat differently.
#pragma once

#include <cstdint>

#include "runtime/fabric/words.hpp"
#include "tests/fabric/places.hpp"

namespace torii::tests {

/// Where a put's payload and signal go, and where it comes from.
enum class Form { in_line, slot_with_line_before, slot, landing, from_outside };
inline constexpr Form kForms[] = {Form::in_line, Form::slot_with_line_before, Form::slot, Form::landing,
                                  Form::from_outside};

inline std::uint64_t payload_offset(Form form, int sender) {
  if (form == Form::in_line) return of_rank(kSlots, sender) + sizeof(std::uint64_t);
  if (form == Form::landing) return of_rank(kLandings, sender) + 8;
  return of_rank(kSlots, sender) + kLineBytes;
}

}  // namespace torii::tests
