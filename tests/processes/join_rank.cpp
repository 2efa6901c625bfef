// SPDX-License-Identifier: Apache-2.0
// The program that the tests of joining start as ranks: joins in one of several ways, misbehaving where asked to.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "tests/support/process.hpp"
#include "transports/shared_memory/node_peers.hpp"

namespace {

using namespace torii;
using shared_memory::Arena;
using shared_memory::make_arena;
using shared_memory::NodePeers;
using shared_memory::Nodes;

constexpr int kSkipped = 77;

/// Calls `after` with the number of rounds that are done, after each.
class HookedBootstrap final : public Bootstrap {
 public:
  HookedBootstrap(Bootstrap& inner, std::function<void(int rounds)> after) : inner_(inner), after_(std::move(after)) {}
  int rank() const noexcept override { return inner_.rank(); }
  int ranks() const noexcept override { return inner_.ranks(); }
  bool notices_deaths() const noexcept override { return inner_.notices_deaths(); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    inner_.all_gather(mine, all);
    after_(++rounds_);
  }

 private:
  Bootstrap& inner_;
  std::function<void(int)> after_;
  int rounds_ = 0;
};

void say(const Bootstrap& bootstrap, const std::string& sentence) {
  // One write per line, so that the lines of ranks on one pipe stay whole.
  const std::string line = "rank " + std::to_string(bootstrap.rank()) + ": " + sentence + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

int gather(Bootstrap& bootstrap) {
  const std::vector<std::string> texts =
      gather_texts(bootstrap, std::string(static_cast<std::size_t>(bootstrap.rank()) * 70'000, 'x') + "end");
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank] != std::string(rank * 70'000, 'x') + "end") return 1;
  }
  say(bootstrap, "gathered " + std::to_string(texts.size()));
  return 0;
}

/// Every rank stores a pattern into every arena; everyone checks its own.
int peers(Bootstrap& bootstrap, const Settings& settings) {
  const Nodes nodes(bootstrap);
  const auto arena = make_arena(bootstrap, nodes, settings.arena_bytes);
  const NodePeers peers(bootstrap, nodes, *arena, settings.timeout_s);
  const auto ranks = static_cast<std::size_t>(peers.ranks());
  const std::size_t offset = arena->allocate(ranks * sizeof(std::uint64_t));
  const std::vector<std::size_t> offsets = gather_values(bootstrap, offset);
  for (int peer = 0; peer < peers.ranks(); ++peer) {
    auto* const words = reinterpret_cast<std::uint64_t*>(peers.base(peer) + offsets[static_cast<std::size_t>(peer)]);
    words[peers.rank()] = static_cast<std::uint64_t>(1000 * peer + peers.rank());
    if (!peers.alive(peer)) return 1;
  }
  gather_values(bootstrap, 0);
  const auto* const own = reinterpret_cast<const std::uint64_t*>(arena->base() + offset);
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    if (own[peer] != 1000 * static_cast<std::uint64_t>(peers.rank()) + peer) return 1;
  }
  say(bootstrap, "mapped arenas of " + std::to_string(peers.arena_bytes()));
  gather_values(bootstrap, 0);
  return 0;
}

/// Joins again and again until somebody dies; for kills at random moments.
int loop(Bootstrap& bootstrap, const Settings& settings) {
  while (true) {
    const int code = peers(bootstrap, settings);
    if (code != 0) return code;
  }
}

/// Dies; a child lives on for so long.
void die_with_child(unsigned seconds) {
  if (fork() != 0) raise(SIGKILL);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) close(output);  // the test reads to the end
  _exit(static_cast<int>(sleep(seconds)));
}

/// The last rank ends by end(); the others say when they noticed.
int notice(Bootstrap& bootstrap, const Settings& settings, void (*end)()) {
  const Nodes nodes(bootstrap);
  const auto arena = make_arena(bootstrap, nodes, settings.arena_bytes);
  const NodePeers peers(bootstrap, nodes, *arena, settings.timeout_s);
  const int victim = peers.ranks() - 1;
  struct Note {
    double died_s;
    std::atomic<int> noticed;
  };
  const std::size_t offset = arena->allocate(sizeof(Note));
  const std::vector<std::size_t> offsets = gather_values(bootstrap, offset);
  auto& note = *reinterpret_cast<Note*>(peers.base(victim) + offsets.back());
  gather_values(bootstrap, 0);
  if (peers.rank() == victim) {
    note.died_s = tests::now_s();
    end();
  }
  while (peers.alive(victim)) usleep(1000);
  const double late_ms = (tests::now_s() - note.died_s) * 1000;
  for (int rank = 0; rank < victim; ++rank) {
    if (!peers.alive(rank)) return 1;
  }
  say(bootstrap, "noticed after " + std::to_string(late_ms) + " ms");
  // Who leaves first would be seen as the next one that ended. The dead rank's arena is still there to meet in.
  ++note.noticed;
  while (note.noticed < victim) usleep(1000);
  return 0;
}

/// `rank` stops for good between saying who it is and handing over its arena.
int stop_in_handshake(Bootstrap& bootstrap, const Settings& settings, int rank, int signal) {
  const Nodes nodes(bootstrap);
  const auto arena = make_arena(bootstrap, nodes, settings.arena_bytes);
  HookedBootstrap hooked(bootstrap, [&](int rounds) {
    if (rounds == 1 && bootstrap.rank() == rank) raise(signal);
  });
  const NodePeers peers(hooked, nodes, *arena, settings.timeout_s);
  return 1;
}

/// The chosen rank dies, and leaves a child, while the ranks agree on their arenas.
int leave_child_in_handshake(Bootstrap& bootstrap, const Settings& settings, bool chosen) {
  HookedBootstrap hooked(bootstrap, [chosen](int rounds) {
    if (rounds == 2 && chosen) die_with_child(4);
  });
  return peers(hooked, settings);
}

int connect_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) return fd;
  close(fd);
  return -1;
}

/// What a rank would send, but with a token of our own and a file of our own.
void send_forged(int socket, int rank) {
  struct {
    std::uint32_t magic = 0x746f6172;
    std::int32_t rank = 0;
    std::byte token[16] = {};
  } hello;
  hello.rank = rank;
  iovec part{&hello, sizeof(hello)};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int files[2] = {STDOUT_FILENO, STDERR_FILENO};
  std::memcpy(CMSG_DATA(rights), files, sizeof(files));
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

/// A process that is no rank tries everything on every listener it can see; returns how many connections it got.
int be_a_stranger() {
  int connections = 0;
  for (int round = 0; round < 20; ++round) {
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);) {
      const std::size_t at = line.find("@torii-");
      if (at == std::string::npos) continue;
      for (int kind = 0; kind < 4; ++kind) {
        const int fd = connect_to(line.substr(at + 1));
        if (fd < 0) continue;
        ++connections;
        if (kind == 0) continue;  // silent, and kept open to the end of this process
        if (kind == 1) send(fd, "rubbish", 7, MSG_NOSIGNAL);
        if (kind == 2) send_forged(fd, 1);
        close(fd);
      }
    }
    usleep(2000);
  }
  return connections;
}

int strangers(Bootstrap& bootstrap, const Settings& settings) {
  const Nodes nodes(bootstrap);
  const auto arena = make_arena(bootstrap, nodes, settings.arena_bytes);
  pid_t stranger = -1;
  HookedBootstrap hooked(bootstrap, [&](int rounds) {
    if (rounds != 1) return;
    if (bootstrap.rank() == 0) {
      stranger = fork();
      if (stranger == 0) _exit(be_a_stranger() > 0 ? 0 : 1);
    }
    usleep(20'000);  // the stranger comes first, and fills the queues of those who do not listen yet
  });
  const NodePeers peers(hooked, nodes, *arena, settings.timeout_s);
  for (int rank = 0; rank < peers.ranks(); ++rank) peers.base(rank)[0] = std::byte{1};
  if (bootstrap.rank() == 0) {
    int status = 0;
    waitpid(stranger, &status, 0);
    if (status != 0) return 1;  // it reached no listener: the test would show nothing
  }
  gather_values(bootstrap, 0);
  say(bootstrap, "joined among strangers");
  return 0;
}

/// The last rank pretends to stand on another machine.
int other_host(Bootstrap& bootstrap) {
  const bool moves = bootstrap.rank() == bootstrap.ranks() - 1;
  const bool moved = !moves || ((unshare(CLONE_NEWUTS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0) &&
                                sethostname("elsewhere", 9) == 0);
  for (const int one : gather_values(bootstrap, moved ? 1 : 0)) {
    if (one == 0) return kSkipped;
  }
  const Nodes nodes(bootstrap);
  if (nodes.count() != 2 || nodes.node(0) != 0 || nodes.node(bootstrap.ranks() - 1) != 1) return 1;
  nodes.check_single();
  return 1;
}

/// A join that must fail, because the last rank has not come in time.
bool fails_to_join(const Settings& settings, int rank, int last) {
  try {
    const std::unique_ptr<Bootstrap> bootstrap = join(settings);
    gather(*bootstrap);
    return false;
  } catch (const Error& error) {
    std::printf("rank %d: %s\n", rank, error.what());
    std::fflush(stdout);
    return error.status() == Status::timeout && error.rank() == last;
  }
}

/// The last rank stays away from two joins, and hears of the second one when it comes. Then all join.
int join_again(std::unique_ptr<Bootstrap> bootstrap, Settings settings) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int rank = bootstrap->rank();
  const int last = bootstrap->ranks() - 1;
  const pid_t late = gather_values(*bootstrap, getpid()).back();
  bootstrap.reset();
  const Settings patient = settings;
  settings.timeout_s = 1;
  if (rank == last) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (!fails_to_join(patient, rank, last)) return 1;
  } else {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (!fails_to_join(settings, rank, last)) return 1;
    }
    if (rank == 0) kill(late, SIGUSR1);
  }
  bootstrap = join(patient);
  return gather(*bootstrap);
}

int run_mode(const std::string& mode, int rank_argument) {
  const Settings settings = Settings::load();
  std::unique_ptr<Bootstrap> bootstrap = join(settings);
  const bool chosen = bootstrap->rank() == rank_argument;
  if (mode == "gather") return gather(*bootstrap);
  if (mode == "twice") {
    const int code = gather(*bootstrap);
    bootstrap.reset();
    bootstrap = join(settings);
    return code != 0 ? code : gather(*bootstrap);
  }
  if (mode == "again") return join_again(std::move(bootstrap), settings);
  if (mode == "address") {
    say(*bootstrap, "reached from " + bootstrap->address());
    return gather(*bootstrap);
  }
  if (mode == "peers") return peers(*bootstrap, settings);
  if (mode == "loop") return loop(*bootstrap, settings);
  if (mode == "notice") return notice(*bootstrap, settings, [] { raise(SIGKILL); });
  if (mode == "notice-fork") return notice(*bootstrap, settings, [] { die_with_child(1); });
  if (mode == "notice-exec") return notice(*bootstrap, settings, [] { execl("/bin/sleep", "sleep", "1", nullptr); });
  if (mode == "stop-in-handshake") return stop_in_handshake(*bootstrap, settings, rank_argument, SIGSTOP);
  if (mode == "die-in-handshake") return stop_in_handshake(*bootstrap, settings, rank_argument, SIGKILL);
  if (mode == "leave-child-in-handshake") return leave_child_in_handshake(*bootstrap, settings, chosen);
  if (mode == "strangers") return strangers(*bootstrap, settings);
  if (mode == "other-host") return other_host(*bootstrap);
  if (mode == "late") {
    if (chosen) sleep(60);
    return gather(*bootstrap);
  }
  if (mode == "later") {
    if (chosen) sleep(5);
    return gather(*bootstrap);
  }
  if (mode == "die") {
    if (chosen) raise(SIGKILL);
    return gather(*bootstrap);
  }
  if (mode == "leave") return chosen ? 0 : gather(*bootstrap);
  if (mode == "unequal") {
    std::vector<std::byte> mine(chosen ? 8 : 4);
    std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(bootstrap->ranks()));
    bootstrap->all_gather(mine, all);
    return 1;
  }
  std::fprintf(stderr, "join_rank: unknown mode %s\n", mode.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_mode(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : -1);
  } catch (const torii::Error& error) {
    const std::string line = "error " + std::string(std::to_string(static_cast<int>(error.status()))) + " about rank " +
                             std::to_string(error.rank()) + ": " + error.what() + "\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) return 1;
    switch (error.status()) {
      case torii::Status::timeout:
        return 4;
      case torii::Status::peer_lost:
        return 5;
      default:
        return 3;
    }
  }
}
