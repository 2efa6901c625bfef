// SPDX-License-Identifier: Apache-2.0
// A row of the catalogue: an algorithm is three pure functions of a request.
#pragma once

#include <string>
#include <string_view>

#include "runtime/plan/expression.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

struct Algorithm {
  std::string_view name;    ///< as on command lines, e.g. "trinaryx3"
  std::string_view source;  ///< paper and section it stands on
  /// Why the algorithm cannot serve this request, or an empty string.
  std::string (*why_not)(const PlanRequest& request);
  /// The plan of `rank`; call it only when why_not() is empty. Pure: equal requests give equal plans.
  Plan (*plan)(const PlanRequest& request, int rank);
  /// The declared order: the expression of every element of `block`, for combining collectives; of scan and exscan, of
  /// the result of that rank. The verifier compares it with the one it derives from the plans.
  ExpressionId (*order)(const PlanRequest& request, int block, ExpressionPool& pool);
};

}  // namespace torii
