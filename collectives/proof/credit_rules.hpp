// SPDX-License-Identifier: Apache-2.0
// The rules of credits that a proof is about.
#pragma once

#include <cstdint>

#include "runtime/plan/crediting.hpp"

namespace torii {

/// The rules by which the executor's rings fill slots again (runtime/plan/crediting.hpp). Tests plant wrong ones.
struct CreditRules {
  int (*group)(const Stream& stream, int slots) = credit_group;
  std::uint64_t (*awaited)(std::uint64_t message, std::uint64_t slots, std::uint64_t group) = awaited_group;
  std::uint64_t (*taken)(std::uint64_t begun, std::uint64_t ended, std::uint64_t messages) = taken_before;
};

}  // namespace torii
