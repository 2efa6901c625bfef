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

inline std::string first_fault(const PlanSet& set) {
  const Verdict verdict = verdict_of(set);
  return verdict.ok() ? "no fault" : verdict.faults.front();
}

}  // namespace torii::tests
