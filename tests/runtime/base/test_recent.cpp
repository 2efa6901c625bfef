// SPDX-License-Identifier: Apache-2.0
// What Recent keeps, and what it makes again.
#include "runtime/base/recent.hpp"

#include <gtest/gtest.h>

#include <string>

namespace torii {
namespace {

TEST(Recent, KeepsTheKeysThatWereUsedLast) {
  Recent<std::string, int, bool> recent(2);
  int made = 0;
  const auto get = [&](int number, bool flag) {
    return *recent.get([&] { return ++made, std::to_string(number) + (flag ? "!" : ""); }, number, flag);
  };
  EXPECT_EQ(get(1, false), "1");
  EXPECT_EQ(get(1, true), "1!") << "all parts of the key count";
  EXPECT_EQ(get(1, false), "1");
  EXPECT_EQ(made, 2);
  EXPECT_EQ(get(2, false), "2");
  EXPECT_EQ(get(1, false), "1") << "it was used after 1!";
  EXPECT_EQ(made, 3);
  EXPECT_EQ(get(1, true), "1!");
  EXPECT_EQ(made, 4);
}

}  // namespace
}  // namespace torii
