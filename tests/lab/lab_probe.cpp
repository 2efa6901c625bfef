// SPDX-License-Identifier: Apache-2.0
// A small sender and receiver over TCP: `lab_probe FROM TO ADDRESS BYTES`, started on every node of a laboratory. The
// sender prints how long a connection took, which is one round trip; the receiver what came per second.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/devices/address.hpp"

namespace {

using namespace torii;
using Clock = std::chrono::steady_clock;
constexpr int kPort = 5001;
constexpr std::size_t kPieceBytes = 65536;

/// Prints the payload per second, from the first byte to the last.
int receive(const Address& address) {
  const Descriptor listener = listen_on(address, {}, 1);
  pollfd entry{listener.get(), POLLIN, 0};
  if (poll(&entry, 1, 20'000) != 1) return 4;
  const Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  std::vector<char> piece(kPieceBytes);
  std::size_t bytes = 0;
  Clock::time_point start;
  for (ssize_t got = 0; (got = recv(socket.get(), piece.data(), piece.size(), 0)) > 0;) {
    if (bytes == 0) start = Clock::now();
    bytes += static_cast<std::size_t>(got);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("received %zu bytes at %.3f Mbit/s\n", bytes, static_cast<double>(bytes) * 8e-6 / seconds);
  return 0;
}

int send_to(const Address& address, std::size_t bytes) {
  const auto give_up = Clock::now() + std::chrono::seconds(20);
  while (Clock::now() < give_up) {
    const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Clock::time_point start = Clock::now();
    if (connect(socket.get(), address.get(), address.bytes()) != 0) {
      poll(nullptr, 0, 10);
      continue;
    }
    std::printf("connected in %.3f ms\n", std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    const std::vector<char> piece(kPieceBytes);
    while (bytes > 0) {
      const ssize_t sent = send(socket.get(), piece.data(), std::min(bytes, piece.size()), MSG_NOSIGNAL);
      if (sent <= 0) return 5;
      bytes -= static_cast<std::size_t>(sent);
    }
    return 0;
  }
  return 4;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const rank = std::getenv("RANK");
  if (argc != 5 || rank == nullptr) return 2;
  const Address address = Address::parse(argv[3], kPort);
  if (std::string(rank) == argv[2]) return receive(address);
  if (std::string(rank) == argv[1]) return send_to(address, std::strtoull(argv[4], nullptr, 10));
  return 0;
}
