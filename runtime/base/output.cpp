// SPDX-License-Identifier: Apache-2.0
// Files and stdout by the C library, whose printf() other lines of a program use.
#include "runtime/base/output.hpp"

#include <cerrno>
#include <cstring>

namespace torii {

void Output::Close::operator()(std::FILE* file) const {
  if (file != stdout) std::fclose(file);
}

void Output::refuse() const {
  throw Error(Status::invalid_argument, "cannot write '" + path_ + "': " + std::strerror(errno));
}

Output::Output(const std::string& path, Mode mode) : path_(path == "-" ? "stdout" : path) {
  if (path.empty()) return;
  file_.reset(path == "-" ? stdout : std::fopen(path.c_str(), mode == Mode::append ? "ae" : "we"));
  if (!file_) refuse();
}

void Output::write(std::string_view text) const {
  if (!file_) return;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!is_written || std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0) refuse();
}

}  // namespace torii
