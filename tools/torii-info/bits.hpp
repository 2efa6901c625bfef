// SPDX-License-Identifier: Apache-2.0
// `torii-info bits`: the expression of a sum over leaves, and which rank computes which part of it.
#pragma once

#include <optional>
#include <string>

#include "tools/torii-info/report.hpp"

namespace torii::tools {

struct BitsQuestion {
  std::optional<std::string> leaves;  ///< as read_intervals() reads them
  std::optional<int> ranks;           ///< default: as many as `leaves` lists, else 4
};

/// Throws Error{invalid_argument} naming what is wrong with the question.
Report bits(const BitsQuestion& question);

}  // namespace torii::tools
