// SPDX-License-Identifier: Apache-2.0
// A send or a receive of a user.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "reduce_kernels/kernels.hpp"
#include "runtime/point_to_point/operations.hpp"

namespace torii {

struct PairCall {
  bool sends = false;
  const void* data = nullptr;  ///< a receive writes there
  std::size_t count = 0;       ///< elements; of a receive: the most
  Type type = Type::u8;
  int peer = kAnyRank;
  int tag = kAnyTag;
  std::variant<std::monostate, Send, Receive> operation;  ///< none yet: most calls end without a Send

  const Receive& receive() const noexcept { return *std::get_if<Receive>(&operation); }
  Receive& receive() noexcept { return *std::get_if<Receive>(&operation); }
  std::size_t bytes() const noexcept { return count * size_of(type); }
};

/// "receive of up to 40 x f32, tag 3, from any rank".
std::string pair_text(const PairCall& call);

}  // namespace torii
