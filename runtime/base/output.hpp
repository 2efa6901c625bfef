// SPDX-License-Identifier: Apache-2.0
// The output of programs: to the file that the command line names, or to stdout for "-".
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.hpp"

namespace torii {

/// A file that is being written. Errors are Error{invalid_argument}: "cannot write '<path>': why".
class Output {
 public:
  enum class Mode : std::uint8_t { replace, append };

  /// Opens the file; "-" is stdout, and an empty path is nowhere.
  explicit Output(const std::string& path, Mode mode = Mode::replace);
  /// False for nowhere.
  explicit operator bool() const noexcept { return file_ != nullptr; }
  bool is_stdout() const noexcept { return file_.get() == stdout; }
  /// Hands the text to the system at once, with what else was printed to stdout if this is stdout: results that are
  /// lost are no success.
  void write(std::string_view text) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  [[noreturn]] void refuse() const;

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace torii
