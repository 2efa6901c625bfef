// SPDX-License-Identifier: Apache-2.0
// Tests that write files: a folder for each, removed with all that is in it when the test ends.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace torii::tests {

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string form = (std::filesystem::temp_directory_path() / "torii_test_XXXXXX").string();
    ASSERT_NE(mkdtemp(form.data()), nullptr) << "no folder " << form;
    folder_ = form;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Returns the file's path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return path(name);
  }

  std::filesystem::path folder_;
};

}  // namespace torii::tests
