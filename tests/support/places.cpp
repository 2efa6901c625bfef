// SPDX-License-Identifier: Apache-2.0
// The only file that is compiled with the paths of this clone.
#include "tests/support/places.hpp"

#include <filesystem>

namespace torii::tests {

const std::string& source_dir() {
  static const std::string kPath = TORII_TEST_SOURCE_DIR;
  return kPath;
}

const std::string& build_dir() {
  static const std::string kPath = TORII_TEST_BUILD_DIR;
  return kPath;
}

const std::string& bin_dir() {
  static const std::string kPath = build_dir() + "/bin";
  return kPath;
}

std::string helper(const std::string& name) { return std::filesystem::path(build_dir()) / "tests/bin" / name; }

}  // namespace torii::tests
