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

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

}  // namespace

void require_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  const fs::path file = behind_links(path);
  std::error_code error;
  if (fs::is_directory(file, error)) refuse(path, EISDIR);
  if (fs::exists(file, error) && access(file.c_str(), W_OK) != 0) refuse(path, errno);
  if (is_direct(file)) return;
  const fs::path folder = folder_of(file);
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(path, errno);
  if (!fs::is_directory(folder, error)) refuse(path, ENOTDIR);
}

void write_whole(const std::string& path, std::string_view text) {
  const SignalsWait wait;
  if (is_direct(path)) return Output(path).write(text);
  const fs::path file = behind_links(path);
  const fs::path beside = file.string() + "." + std::to_string(getpid()) + ".part";
  try {
    Output(beside).write(text);
    fs::rename(beside, file);
  } catch (const std::exception& error) {
    const int reason = errno;
    std::error_code ignored;
    fs::remove(beside, ignored);
    refuse(path, reason);
  }
}

}  // namespace torii::tools
