// SPDX-License-Identifier: Apache-2.0
// Plays an attacked job, and the simplest of attackers.
#include "tests/fabric/strangers.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/base/descriptor.hpp"
#include "runtime/fabric/words.hpp"
#include "tests/fabric/scenarios.hpp"
#include "tests/fabric/transports.hpp"
#include "tests/support/thread_ranks.hpp"

namespace torii::tests {
namespace {

std::set<std::string> own_sockets() {
  std::set<std::string> own;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* const entry = folder == nullptr ? nullptr : readdir(folder)) {
    char target[64] = {};
    if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0) own.insert(target);
  }
  if (folder != nullptr) closedir(folder);
  return own;
}

Descriptor connect_to(int port) {
  Descriptor stream(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(stream.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  const timeval most = {0, 100'000};
  setsockopt(stream.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
  return stream;
}

/// Tells somebody else what its rank says.
class Overheard final : public Bootstrap {
 public:
  Overheard(Bootstrap& joined, std::function<void(std::string text)> tell) : joined_(joined), tell_(std::move(tell)) {}
  int rank() const noexcept override { return joined_.rank(); }
  int ranks() const noexcept override { return joined_.ranks(); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    tell_({reinterpret_cast<const char*>(mine.data()), mine.size()});
    joined_.all_gather(mine, all);
  }

 private:
  Bootstrap& joined_;
  std::function<void(std::string text)> tell_;
};

/// Each of two ranks puts to the other, in turn, so that one always answers the other.
void exchange_puts(Stage& stage, const std::atomic<bool>& over, std::mt19937_64& random) {
  constexpr std::uint64_t kSlot = std::uint64_t{2} << 20;
  constexpr std::uint64_t kSource = std::uint64_t{8} << 20;
  const int peer = 1 - stage.rank();
  for (std::uint64_t round = 1;; ++round) {
    const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 300'000 : 2000);
    std::memset(stage.at(kSource), static_cast<int>(round % 251), bytes);
    // The last one says so, that both end in the same round.
    stage.at(kSource)[0] = std::byte{static_cast<unsigned char>(over.load() ? 1 : 0)};
    stage.at(kSource)[bytes] = std::byte{77};
    Put put;
    put.peer = peer;
    put.source = stage.at(kSource);
    put.bytes = bytes + 1;
    put.target_offset = kSlot + kLineBytes;
    put.signal_offset = kSlot;
    put.signal = round << 24 | bytes;
    stage.expect(stage.transport().put(put), "a put");
    std::uint64_t word = 0;
    const auto has_come = [&] {
      return (word = load_word(stage.at(kSlot))) >> 24 == round && word != ~std::uint64_t{0};
    };
    stage.await("the peer's put", has_come);
    const std::byte* const got = stage.at(kSlot + kLineBytes);
    const std::size_t got_bytes = word & 0xffffff;
    const auto is_right = [&](std::byte byte) { return byte == std::byte{static_cast<unsigned char>(round % 251)}; };
    ASSERT_TRUE(std::all_of(got + 1, got + got_bytes, is_right)) << "round " << round << ", " << got_bytes << " bytes";
    ASSERT_EQ(got[got_bytes], std::byte{77}) << "round " << round;
    stage.await("drained", [&] { return stage.transport().drained(); });
    const bool peer_ends = got[0] == std::byte{1};
    const bool own_ends = stage.at(kSource)[0] == std::byte{1};
    stage.meet();
    if (peer_ends || own_ends) return;
  }
}

}  // namespace

std::vector<int> listening_ports() {
  const std::set<std::string> own = own_sockets();
  std::vector<int> ports;
  std::ifstream file("/proc/self/net/tcp");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string number, local, remote, state, skipped, inode;
    fields >> number >> local >> remote >> state;
    for (int i = 0; i < 5; ++i) fields >> skipped;
    fields >> inode;
    if (state != "0A" || !local.starts_with("0100007F:") || !own.contains("socket:[" + inode + "]")) continue;
    ports.push_back(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  return ports;
}

void send_garbage(int port, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Descriptor> open;
  for (const std::size_t bytes : {0, 1, 7, 16, 64, 300, 4096, 100'000}) {
    std::vector<unsigned char> garbage(bytes);
    for (unsigned char& byte : garbage) byte = static_cast<unsigned char>(random());
    Descriptor stream = connect_to(port);
    (void)send(stream.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    if (random() % 2 == 0) open.push_back(std::move(stream));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

std::uint64_t attack_job(const std::string& transport, const Seed& seed,
                         const std::function<void(const Exposed& exposed)>& attack) {
  SCOPED_TRACE(transport);
  SCOPED_TRACE(seed);
  const std::vector<int> others = listening_ports();
  std::atomic<bool> over = false;
  std::atomic<std::uint64_t> dropped = 0;
  Exposed exposed;
  std::mutex mutex;
  run_ranks_as_threads(2, [&](Bootstrap& joined) {
    Overheard bootstrap(joined, [&](std::string text) {
      const std::lock_guard lock(mutex);
      exposed.texts.push_back(std::move(text));
    });
    const auto opened = open_transport(transport, bootstrap, 1);
    Stage stage(opened->transport(), opened->arena(), seed.value);
    store_word(stage.at(kHalfLine), kHalfArrived);
    std::thread stranger;
    gather_values(bootstrap, 0);
    if (bootstrap.rank() == 0) {
      exposed.ports = listening_ports();
      std::erase_if(exposed.ports, [&](int port) { return std::ranges::find(others, port) != others.end(); });
      const std::lock_guard lock(mutex);
      stranger = std::thread([&attack, &over, exposed] {
        attack(exposed);
        over = true;
      });
    }
    try {
      std::mt19937_64 random(seed.value + static_cast<std::uint64_t>(bootstrap.rank()));
      exchange_puts(stage, over, random);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (stranger.joinable()) stranger.join();
    gather_values(bootstrap, 0);
    EXPECT_EQ(load_word(stage.at(kHalfLine)), kHalfArrived) << "a stranger has published a word";
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    EXPECT_TRUE(std::all_of(stage.at(kCanary), stage.at(kCanary) + kCanaryBytes, is_zero)) << "a stranger has written";
    EXPECT_EQ(opened->transport().progress(), Status::ok) << opened->transport().failure_text();
    dropped += opened->transport().strangers();
  });
  return dropped;
}

}  // namespace torii::tests
