// SPDX-License-Identifier: Apache-2.0
// What the verifier says about a plan set, in short.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "collectives/proof/verify.hpp"
#include "tests/collectives/proof/test_verify_plans.hpp"

namespace torii::tests {

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << part << "\" is not in \"" << text << "\"";
}

inline Verdict verdict_of(const PlanSet& set) {
  ExpressionPool pool;
  return verify(set.request, set.plans, pool);
}

/// With the executor's rules, or wrong ones.
inline std::string first_fault(const PlanSet& set, const ExecutorRules& rules = {}) {
  ExpressionPool pool;
  const Verdict verdict = verify(set.request, set.plans, pool, {}, rules);
  return verdict.ok() ? "no fault" : verdict.faults.front();
}

inline PlanSet with_slots(PlanSet set, int slots) {
  for (Plan& plan : set.plans) plan.slots = slots;
  return set;
}

}  // namespace torii::tests
