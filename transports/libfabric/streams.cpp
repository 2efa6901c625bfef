// SPDX-License-Identifier: Apache-2.0
// Finds sockets in /proc/self: fdinfo of an epoll descriptor has a line for each descriptor that it waits for, and fd
// lists all descriptors.
#include "transports/libfabric/streams.hpp"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/base/numbers.hpp"

namespace torii::libfabric {
namespace {

/// A completion queue waits for the queue below it, and that one for sockets.
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
    // The number may have been given to another file since, if a child process keeps the original one.
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

/// Family, port and host only, without any other fields of an address; zeros for addresses that are not IP.
SocketAddress essence(const SocketAddress& address) noexcept {
  SocketAddress result{};
  sa_family_t family = 0;
  std::memcpy(&family, address.data() + offsetof(sockaddr, sa_family), sizeof(family));
  const auto keep = [&](std::size_t offset, std::size_t bytes) {
    std::copy_n(address.begin() + static_cast<std::ptrdiff_t>(offset), bytes,
                result.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  if (family != AF_INET && family != AF_INET6) return result;
  keep(offsetof(sockaddr, sa_family), sizeof(family));
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  keep(offsetof(sockaddr_in, sin_port), sizeof(in_port_t));
  if (family == AF_INET) keep(offsetof(sockaddr_in, sin_addr), sizeof(in_addr));
  if (family == AF_INET6) keep(offsetof(sockaddr_in6, sin6_addr), sizeof(in6_addr));
  return result;
}

SocketAddress ask(int (*question)(int, sockaddr*, socklen_t*), int descriptor) noexcept {
  alignas(sockaddr_storage) SocketAddress address{};
  socklen_t bytes = address.size();
  if (question(descriptor, reinterpret_cast<sockaddr*>(address.data()), &bytes) != 0) address.fill(std::byte{});
  return essence(address);
}

}  // namespace

int shut_down_streams(int descriptor) noexcept {
  try {
    return descriptor < 0 ? 0 : shut_down(descriptor, 1);
  } catch (const std::exception&) {
    return 0;
  }
}

int shut_down_streams(const SocketAddress& own, std::vector<SocketAddress> peers) noexcept {
  constexpr SocketAddress none{};
  std::transform(peers.begin(), peers.end(), peers.begin(), essence);
  peers.erase(std::remove(peers.begin(), peers.end(), none), peers.end());
  std::sort(peers.begin(), peers.end());
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  const std::unique_ptr<DIR, Close> folder(opendir("/proc/self/fd"));
  int streams = 0;
  while (const dirent* const entry = folder == nullptr ? nullptr : readdir(folder.get())) {
    const int descriptor = parse_number<int>(entry->d_name).value_or(-1);
    if (!is_stream(descriptor)) continue;
    const SocketAddress here = ask(getsockname, descriptor);
    const bool is_own = here != none && here == essence(own);
    if (!is_own && !std::binary_search(peers.begin(), peers.end(), ask(getpeername, descriptor))) continue;
    (void)shutdown(descriptor, SHUT_RDWR);
    ++streams;
  }
  return streams;
}

}  // namespace torii::libfabric
