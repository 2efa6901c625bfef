// SPDX-License-Identifier: Apache-2.0
// A temporary file, then a rename.
#include "tools/torii-info/whole_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "runtime/base/output.hpp"
#include "runtime/base/status.hpp"

namespace torii::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, int reason) {
  throw Error(Status::invalid_argument, "cannot write '" + path + "': " + std::strerror(reason));
}

/// Keeps signals waiting while it lives.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsWait() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_{};
};

/// Devices, pipes and stdout have no contents that a rename could replace.
bool is_direct(const fs::path& path) {
  std::error_code error;
  return path == "-" || fs::is_other(fs::status(path, error));
}

/// The file behind symbolic links, which a rename would replace.
fs::path behind_links(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real;
}

/// A name that nobody else uses at this time, in the folder of the file.
fs::path beside(const fs::path& file) { return file.string() + "." + std::to_string(getpid()) + ".part"; }

}  // namespace

void require_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  const fs::path file = behind_links(path);
  std::error_code error;
  if (fs::is_directory(file, error)) refuse(path, EISDIR);
  if (fs::exists(file, error) && access(file.c_str(), W_OK) != 0) refuse(path, errno);
  if (is_direct(file)) return;
  const SignalsWait wait;
  try {
    const Output output(beside(file));
  } catch (const Error&) {
    refuse(path, errno);
  }
  fs::remove(beside(file), error);
}

void write_whole(const std::string& path, std::string_view text) {
  const SignalsWait wait;
  if (is_direct(path)) return Output(path).write(text);
  const fs::path file = behind_links(path);
  try {
    Output(beside(file)).write(text);
    fs::rename(beside(file), file);
  } catch (const std::exception&) {
    const int reason = errno;
    std::error_code ignored;
    fs::remove(beside(file), ignored);
    refuse(path, reason);
  }
}

}  // namespace torii::tools
