// SPDX-License-Identifier: Apache-2.0
// Finds sockets in /proc/self/fdinfo, where an epoll descriptor has a line for each descriptor that it waits for.
#include "transports/libfabric/streams.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <string>

namespace torii::libfabric {
namespace {

/// A completion queue waits for the queue below it, and that for sockets.
constexpr int kDepthMost = 4;

int option(int descriptor, int name) noexcept {
  int value = 0;
  socklen_t bytes = sizeof(value);
  return getsockopt(descriptor, SOL_SOCKET, name, &value, &bytes) == 0 ? value : -1;
}

bool is_stream(int descriptor) noexcept {
  const int family = option(descriptor, SO_DOMAIN);
  return (family == AF_INET || family == AF_INET6) && option(descriptor, SO_TYPE) == SOCK_STREAM &&
         option(descriptor, SO_ACCEPTCONN) == 0;
}

int shut_down(int descriptor, int depth) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::string path = "/proc/self/fdinfo/" + std::to_string(descriptor);
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "re"));
  int streams = 0;
  char line[256];
  while (file != nullptr && std::fgets(line, sizeof(line), file.get()) != nullptr) {
    int waited = -1;
    unsigned long inode = 0;
    if (std::sscanf(line, "tfd: %d events: %*x data: %*x pos:%*d ino:%lx", &waited, &inode) != 2) continue;
    // A number may have been given to another file since, while a child keeps the one that is waited for.
    struct stat found {};
    if (fstat(waited, &found) != 0 || found.st_ino != inode) continue;
    if (is_stream(waited)) {
      (void)shutdown(waited, SHUT_RDWR);
      ++streams;
    } else if (depth < kDepthMost) {
      streams += shut_down(waited, depth + 1);
    }
  }
  return streams;
}

}  // namespace

int shut_down_streams(int descriptor) noexcept {
  try {
    return descriptor < 0 ? 0 : shut_down(descriptor, 1);
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace torii::libfabric
