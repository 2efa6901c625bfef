// SPDX-License-Identifier: Apache-2.0
// What a laboratory that cannot be is told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/base/status.hpp"

namespace torii::tests {

/// The text of the Error{invalid_argument} that `step` throws; the test fails when it throws none.
inline std::string refusal(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

}  // namespace torii::tests
