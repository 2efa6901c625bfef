// SPDX-License-Identifier: Apache-2.0
// Sets environment variables while a library starts and reads its settings.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <utility>
#include <vector>

namespace torii::transports {

/// Sets the variables that the user has not set; the destructor removes them.
class EnvironmentMeanwhile {
 public:
  explicit EnvironmentMeanwhile(std::initializer_list<std::pair<const char*, const char*>> settings) {
    for (const auto& [name, value] : settings) {
      if (std::getenv(name) != nullptr) continue;
      ours_.push_back(name);
      setenv(name, value, 0);
    }
  }
  ~EnvironmentMeanwhile() {
    for (const char* const name : ours_) unsetenv(name);
  }
  EnvironmentMeanwhile(const EnvironmentMeanwhile&) = delete;
  EnvironmentMeanwhile& operator=(const EnvironmentMeanwhile&) = delete;

 private:
  std::vector<const char*> ours_;
};

}  // namespace torii::transports
