// SPDX-License-Identifier: Apache-2.0
// The catalogue at the end of a process.
#include "collectives/selection/catalogue.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/base/settings.hpp"

namespace torii {
namespace {

/// A program's own object: made before the names are first asked for, it goes after whatever was made later.
struct GoesLast {
  const Settings* settings = nullptr;
  std::vector<std::string> expected;
  ~GoesLast() {
    if (settings == nullptr) return;
    bool same = settings->algorithms.size() == expected.size();
    for (std::size_t i = 0; same && i < expected.size(); ++i) same = settings->algorithms[i] == expected[i];
    _exit(same ? 0 : 1);
  }
} goes_last;

/// In a process of its own, whose end is watched.
void end_with_settings() {
  static const Settings* const settings = new Settings(Settings::load({}, nullptr, algorithm_names()));
  goes_last.settings = settings;
  for (const Algorithm& algorithm : catalogue()) goes_last.expected.emplace_back(algorithm.name);
  std::exit(2);
}

TEST(Catalogue, NamesServeUntilTheProcessHasEnded) {
  ASSERT_FALSE(algorithm_names().empty());
  EXPECT_EXIT(end_with_settings(), testing::ExitedWithCode(0), "");
}

TEST(Catalogue, NamesAreThoseOfItsRows) {
  ASSERT_EQ(algorithm_names().size(), catalogue().size());
  for (std::size_t i = 0; i < catalogue().size(); ++i) EXPECT_EQ(algorithm_names()[i], catalogue()[i].name);
}

}  // namespace
}  // namespace torii
