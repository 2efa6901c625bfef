// SPDX-License-Identifier: Apache-2.0
// Reads whole files, after looking at what they are.
#include "runtime/base/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "runtime/base/descriptor.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;

}  // namespace

std::string read_text_file(const std::string& path, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Status::invalid_argument, what + ": cannot read '" + path + "': " + why);
  };
  // Without O_NONBLOCK opening a pipe waits for a writer.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about = {};
  if (!file.open() || fstat(file.get(), &about) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse("it is no regular file");
  std::string text;
  char part[65536];
  for (ssize_t got = 0; (got = read(file.get(), part, sizeof(part))) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(std::strerror(errno));
    text.append(part, static_cast<std::size_t>(got));
    if (text.size() > kFileBytesMax) refuse("it has more than 64 MiB");
  }
  return text;
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace torii
