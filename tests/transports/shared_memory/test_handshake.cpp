// SPDX-License-Identifier: Apache-2.0
// The handshake where descriptors are short: those that a process may open, and those that a user may have in flight;
// and where the kernel tells the end of a connection before its last message.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "runtime/base/status.hpp"
#include "transports/shared_memory/handshake.hpp"

namespace {

/// For this thread's next message: it comes behind an end.
thread_local bool ends_first = false;

}  // namespace

/// Stands before the system's function. Linux looks for a message first, and whether the other end has closed
/// afterwards. If the other end sends and closes in between, it tells the end although the message is there.
extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static const auto real = reinterpret_cast<decltype(&recvmsg)>(dlsym(RTLD_NEXT, "recvmsg"));
  pollfd entry = {socket, POLLIN, 0};
  if (!ends_first || poll(&entry, 1, 0) != 1) return real(socket, message, flags);
  ends_first = false;
  message->msg_controllen = 0;
  return 0;
}

namespace torii::shared_memory {
namespace {

constexpr int kNotHere = 77;
constexpr int kLimit = 64;

/// One of two ranks, which are threads of this process.
struct Half {
  Arena arena{kArenaBytesMin};
  Listener listener{2};
  Handed handed;
  std::string error;
  Status status = Status::ok;

  void meet(int rank, const Listener& other, double timeout_s) {
    HandshakePlan plan;
    plan.rank = rank;
    plan.names = {rank == 0 ? "" : other.name(), rank == 0 ? other.name() : ""};
    plan.who = {"rank 0", "rank 1"};
    plan.arena_fd = arena.fd();
    plan.life_fd = arena.life().get();
    plan.timeout_s = timeout_s;
    plan.lost = [](int) { return false; };
    plan.take = [this](int, Handed given) { handed = std::move(given); };
    try {
      hand_over_arenas(listener, plan);
    } catch (const Error& failure) {
      status = failure.status();
      error = failure.what();
    }
  }
};

/// Sends copies of a descriptor that nobody receives. False if the user may send no more.
bool send_copies(int socket, std::size_t copies) {
  const int copied = STDERR_FILENO;
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * kLimit * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(copies * sizeof(int));
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(copies * sizeof(int));
  for (std::size_t copy = 0; copy < copies; ++copy) {
    std::memcpy(CMSG_DATA(rights) + copy * sizeof(int), &copied, sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 || errno != ETOOMANYREFS;
}

/// As long as it lives this user may have no more descriptors in flight.
class ManyInFlight {
 public:
  ManyInFlight() {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) _exit(1);
    sender_ = Descriptor(ends[0]);
    receiver_ = Descriptor(ends[1]);
    (void)send_copies(sender_.get(), 2 * kLimit);
    if (send_copies(sender_.get(), 1)) _exit(kNotHere);  // a user with privileges
  }

 private:
  Descriptor sender_;
  Descriptor receiver_;
};

/// The exit code of `part` in a process of an ordinary user, which may open few files.
int as_ordinary_user(const std::function<int()>& part) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit few = {kLimit, kLimit};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0 || (geteuid() == 0 && setuid(65534) != 0)) _exit(kNotHere);
    _exit(part());
  }
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

int say(const Half (&halves)[2]) {
  for (const Half& one : halves)
    std::fprintf(stderr, "status %d: %s\n", static_cast<int>(one.status), one.error.c_str());
  return 1;
}

/// Either the lower rank cannot be told, or the higher one cannot be answered.
int meet_late(bool tells_early) {
  Half halves[2];
  std::thread higher;
  const auto start_higher = [&] { higher = std::thread([&] { halves[1].meet(1, halves[0].listener, 20); }); };
  if (tells_early) start_higher();
  usleep(100'000);
  auto many = std::make_unique<ManyInFlight>();
  if (!tells_early) start_higher();
  std::atomic<bool> is_over = false;
  std::thread lower([&] {
    halves[0].meet(0, halves[1].listener, 20);
    is_over = true;
  });
  usleep(200'000);
  const bool has_waited = !is_over;
  many.reset();
  lower.join();
  higher.join();
  const bool have_met = halves[0].handed.arena.open() && halves[1].handed.arena.open();
  return has_waited && have_met && halves[0].error.empty() && halves[1].error.empty() ? 0 : say(halves);
}

int give_up(bool tells_early) {
  Half halves[2];
  std::thread higher;
  // The other one is there as long as the hindered one tries, also where threads are slow to start.
  const double times_s[] = {tells_early ? 0.5 : 1.5, tells_early ? 1.5 : 0.5};
  const auto start_higher = [&] { higher = std::thread([&] { halves[1].meet(1, halves[0].listener, times_s[1]); }); };
  if (tells_early) start_higher();
  usleep(100'000);
  const ManyInFlight many;
  if (!tells_early) start_higher();
  halves[0].meet(0, halves[1].listener, times_s[0]);
  higher.join();
  const std::string late[] = {"rank 1 did not hand over its arena in time",
                              "rank 0 did not hand over its arena in time"};
  const std::string hindrance =
      "; this user has sent 64 descriptors or more that nobody has received, and may send no "
      "more; raise the limit (ulimit -n)";
  const int hindered = tells_early ? 0 : 1;
  // The other one too, if it dials again after this one has left.
  const bool is_named = halves[hindered].error == late[hindered] + hindrance &&
                        halves[1 - hindered].error.starts_with(late[1 - hindered]) &&
                        halves[0].status == Status::timeout && halves[1].status == Status::timeout;
  return is_named ? 0 : say(halves);
}

TEST(Handshake, WaitsWhileTheUserMaySendNoMoreDescriptors) {
  for (const bool tells_early : {false, true}) {
    const int code = as_ordinary_user([=] { return meet_late(tells_early); });
    if (code == kNotHere) GTEST_SKIP() << "this user may have any number of descriptors in flight";
    EXPECT_EQ(code, 0) << tells_early;
  }
}

TEST(Handshake, NamesThatTheUserMaySendNoMoreDescriptors) {
  for (const bool tells_early : {false, true}) {
    const int code = as_ordinary_user([=] { return give_up(tells_early); });
    if (code == kNotHere) GTEST_SKIP() << "this user may have any number of descriptors in flight";
    EXPECT_EQ(code, 0) << tells_early;
  }
}

TEST(Handshake, FindsAMessageBehindTheEndOfAConnection) {
  Half halves[2];
  std::thread higher([&] {
    ends_first = true;
    halves[1].meet(1, halves[0].listener, 2);
    EXPECT_FALSE(ends_first) << "no message came";
  });
  halves[0].meet(0, halves[1].listener, 20);
  higher.join();
  for (const Half& one : halves) {
    EXPECT_EQ(one.error, "");
    EXPECT_TRUE(one.handed.arena.open());
  }
}

/// A lower rank that is to be dialed, and a higher one that has dialed.
TEST(Handshake, NamesTheLimitOfOpenFiles) {
  const auto fails = [](int rank) {
    Half halves[2];
    std::thread higher;
    if (rank == 0) higher = std::thread([&] { halves[1].meet(1, halves[0].listener, 1); });
    usleep(50'000);
    const int free = dup(0);
    close(free);
    rlimit before = {};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none = {static_cast<rlim_t>(free), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    halves[rank].meet(rank, halves[1 - rank].listener, 1);
    setrlimit(RLIMIT_NOFILE, &before);
    if (higher.joinable()) higher.join();
    EXPECT_EQ(halves[rank].status, Status::no_resource);
    EXPECT_EQ(halves[rank].error, "too many open files: this process may open " + std::to_string(free) +
                                      ", and opens up to 2 for each of the 1 other ranks of its node while it joins; "
                                      "raise the limit (ulimit -n)");
  };
  fails(0);
  fails(1);
}

}  // namespace
}  // namespace torii::shared_memory
