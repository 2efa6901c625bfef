// SPDX-License-Identifier: Apache-2.0
// A rank's end as its peers on other nodes see it, whatever children it has, and what is no end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/deadline.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/life_watch.hpp"

namespace torii {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

/// Two ranks, each with one end of a pair of sockets. Keeps what all have told.
class PairBootstrap final : public Bootstrap {
 public:
  PairBootstrap(int rank, int socket) : rank_(rank), socket_(socket) {}
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return 2; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const auto at = static_cast<std::size_t>(rank_) * mine.size();
    const auto other = static_cast<std::size_t>(1 - rank_) * mine.size();
    std::ranges::copy(mine, all.subspan(at).begin());
    const auto bytes = static_cast<ssize_t>(mine.size());
    if (write(socket_, mine.data(), mine.size()) != bytes ||
        recv(socket_, all.data() + other, mine.size(), MSG_WAITALL) != bytes) {
      throw Error(Status::peer_lost, "the other rank");
    }
    told_.assign(all.begin(), all.end());
  }
  /// Where rank 1 listens: an IPv4 or IPv6 address begins its card.
  Address listener() const {
    sockaddr_storage address{};
    const std::size_t half = told_.size() / 2;
    std::memcpy(&address, told_.data() + half, sizeof(address));
    return {reinterpret_cast<const sockaddr*>(&address),
            address.ss_family == AF_INET ? socklen_t{sizeof(sockaddr_in)} : socklen_t{sizeof(sockaddr_in6)}};
  }

 private:
  int rank_;
  int socket_;
  std::vector<std::byte> told_;
};

/// Rank 1 as a process that calls `life` when both watch each other; this process is rank 0.
class Job {
 public:
  explicit Job(const std::function<void()>& life, bool shows_process = false,
               const std::string& address = "127.0.0.1") {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      PairBootstrap bootstrap(1, ends[1]);
      const LifeWatch watch(bootstrap, {}, address);
      (void)gather_values(bootstrap, 0);  // the other rank has connected
      life();
      pause();
    }
    const Descriptor theirs(ends[1]);
    own_ = Descriptor(ends[0]);
    bootstrap_ = std::make_unique<PairBootstrap>(0, own_.get());
    LifeWatch::Ranks ranks;
    if (shows_process) ranks.processes = {getpid(), pid_};
    watch_ = std::make_unique<LifeWatch>(*bootstrap_, ranks, address);
    listener_ = bootstrap_->listener();
    (void)gather_values(*bootstrap_, 0);
  }
  ~Job() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  LifeWatch& watch() { return *watch_; }
  const Address& listener() const { return listener_; }

  bool ends_within(double seconds) {
    const std::int64_t until_ns = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
    while (now_ns() < until_ns) {
      if (watch_->has_ended(1, now_ns())) return true;
      usleep(1000);
    }
    return false;
  }

 private:
  pid_t pid_ = -1;
  Descriptor own_;
  std::unique_ptr<PairBootstrap> bootstrap_;
  std::unique_ptr<LifeWatch> watch_;
  Address listener_;
};

/// The parent dies when its child has started; the child lives on.
void leave(pid_t child) {
  if (child == 0) {
    sleep(3);
    _exit(0);
  }
  usleep(30'000);
  raise(SIGKILL);
}

TEST(LifeWatch, TheEndIsSeenWhateverChildrenThereAre) {
  struct Case {
    const char* what;
    std::function<void()> life;
    bool shows_process = false;
  };
  const Case cases[] = {{"none", [] { raise(SIGKILL); }},
                        {"it returns", [] { _exit(0); }},
                        {"forked", [] { leave(fork()); }},
                        {"forked twice", [] { leave(fork() == 0 ? std::min(fork(), 0) : 1); }},
                        {"in the background", [] { leave(std::system("sleep 3 >/dev/null 2>&1 &") + 1); }},
                        {"spawned",
                         [] {
                           char name[] = "sleep";
                           char time[] = "3";
                           char* arguments[] = {name, time, nullptr};
                           pid_t child = -1;
                           (void)posix_spawn(&child, "/bin/sleep", nullptr, nullptr, arguments, environ);
                           leave(child);
                         }},
                        {"it execs", [] { execl("/bin/sleep", "sleep", "3", nullptr); }},
                        // No handler of fork runs.
                        {"cloned", [] { leave(static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))); }, true}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    Job job(one.life, one.shows_process);
    EXPECT_TRUE(job.ends_within(2));
  }
}

TEST(LifeWatch, AStoppedRankLivesAndItsEndIsSeen) {
  Job job([] { raise(SIGSTOP); });
  waitpid(job.pid(), nullptr, WUNTRACED);
  // More strangers than its queue takes.
  std::vector<Descriptor> strangers;
  const Address& listener = job.listener();
  for (int i = 0; i < 200; ++i) {
    strangers.emplace_back(socket(listener.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)connect(strangers.back().get(), listener.get(), listener.bytes());
  }
  EXPECT_FALSE(job.ends_within(0.3));
  kill(job.pid(), SIGKILL);
  EXPECT_TRUE(job.ends_within(2));
}

TEST(LifeWatch, ALastMomentIsLeftForMessages) {
  Job job([] {});
  EXPECT_FALSE(job.ends_within(0.05));
  kill(job.pid(), SIGKILL);
  waitpid(job.pid(), nullptr, WNOWAIT | WEXITED);
  const std::int64_t begin_ns = now_ns();
  EXPECT_TRUE(job.ends_within(2));
  EXPECT_GE(now_ns() - begin_ns, kSecondNs / 20);
}

TEST(LifeWatch, BothFamiliesOfAddresses) {
  for (const Interface& one : interfaces_of_host()) {
    SCOPED_TRACE(one.address.host());
    Job job([] { leave(fork()); }, false, one.address.host());
    EXPECT_EQ(job.listener().host(), one.address.host());
    EXPECT_TRUE(job.ends_within(2));
  }
}

/// A bootstrap that tells rank 0 of another port than those of the other ranks.
class Misled final : public Bootstrap {
 public:
  explicit Misled(int port, int ranks = 2) : port_(port), ranks_(ranks) {}
  int rank() const noexcept override { return 0; }
  int ranks() const noexcept override { return ranks_; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    sockaddr_in address{};
    std::memcpy(&address, mine.data(), sizeof(address));
    address.sin_port = htons(static_cast<std::uint16_t>(port_));
    for (std::byte* card = all.data(); card != all.data() + all.size(); card += mine.size()) {
      std::ranges::copy(mine, card);
      if (card != all.data()) std::memcpy(card, &address, sizeof(address));
    }
  }

 private:
  int port_;
  int ranks_;
};

TEST(LifeWatch, ARefusalBeforeAnyAnswerIsNoEnd) {
  int port = 0;
  {
    const Descriptor freed = listen_on(Address::parse("127.0.0.1", 0), {}, 1);
    port = Address::of_socket(freed.get()).port();
  }
  Misled bootstrap(port);
  LifeWatch watch(bootstrap, {}, "127.0.0.1");
  for (int look = 1; look < 20; ++look) EXPECT_FALSE(watch.has_ended(1, look * kSecondNs));
}

TEST(LifeWatch, AConnectionThatEndsIsNoEndWhileTheListenerAnswers) {
  const Descriptor listener = listen_on(Address::parse("127.0.0.1", 0), {}, 16);
  Misled bootstrap(Address::of_socket(listener.get()).port());
  LifeWatch watch(bootstrap, {}, "127.0.0.1");
  for (int look = 1; look < 20; ++look) {
    EXPECT_FALSE(watch.has_ended(1, look * kSecondNs));
    const Descriptor dropped(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    usleep(1000);
  }
}

/// A copy of an ended connection in a child tells nothing more.
TEST(LifeWatch, ChildrenOfThisRankChangeNothing) {
  Descriptor listener = listen_on(Address::parse("127.0.0.1", 0), {}, 16);
  Misled bootstrap(Address::of_socket(listener.get()).port());
  LifeWatch watch(bootstrap, {}, "127.0.0.1");
  EXPECT_FALSE(watch.has_ended(1, kSecondNs));
  const pid_t child = fork();
  if (child == 0) {
    listener = Descriptor();
    for (;;) pause();
  }
  Descriptor dropped(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  dropped = Descriptor();
  for (int look = 2; look < 20; ++look) EXPECT_FALSE(watch.has_ended(1, look * kSecondNs));
  usleep(20'000);  // the child has closed the listener
  listener = Descriptor();
  bool has_ended = false;
  for (int look = 20; look < 200 && !has_ended; ++look) {
    has_ended = watch.has_ended(1, look * kSecondNs);
    usleep(1000);
  }
  EXPECT_TRUE(has_ended);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

/// Watches many ranks with few descriptors, and hears what the log says.
class Crowd {
 public:
  static constexpr int kRanks = 101;

  Crowd() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    fill_gaps();
    set_log_level(LogLevel::warn);
    set_log_function(
        [](LogLevel, std::string_view message, void* data) { *static_cast<std::string*>(data) += message; }, &said_);
  }
  ~Crowd() {
    set_limit(before_.rlim_cur);
    set_log_function(nullptr, nullptr);
    set_log_level(LogLevel::error);
  }
  void leave_free(int count) { set_limit(static_cast<rlim_t>(first_free() + count)); }
  void set_limit(rlim_t limit) {
    const rlimit now = {limit, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  rlim_t most() const { return before_.rlim_cur; }
  static int first_free() { return Descriptor(dup(0)).get(); }
  Bootstrap& bootstrap() { return bootstrap_; }
  const std::string& said() const { return said_; }

 private:
  /// From here on all numbers below first_free() are taken, and none above.
  void fill_gaps() {
    constexpr int kHighest = 1024;  // of what a test inherits
    int highest = kHighest;
    while (highest > 0 && fcntl(highest, F_GETFD) < 0) --highest;
    while (first_free() < highest) fillers_.emplace_back(dup(0));
  }

  rlimit before_ = {};
  std::string said_;
  std::vector<Descriptor> fillers_;
  Descriptor listener_ = listen_on(Address::parse("127.0.0.1", 0), {}, kRanks);
  Misled bootstrap_{Address::of_socket(listener_.get()).port(), kRanks};
};

TEST(LifeWatch, LeavesDescriptorsToOthersAndSaysWhatItLacks) {
  Crowd crowd;
  crowd.leave_free(62);
  const int first = Crowd::first_free();
  LifeWatch watch(crowd.bootstrap(), {}, "127.0.0.1");
  EXPECT_EQ(Crowd::first_free(), first + 2 + 30) << "a listener, the events, and half of the rest";
  EXPECT_EQ(crowd.said(), "");
  watch.watch_the_rest();
  EXPECT_EQ(Crowd::first_free(), first + 2 + 45);
  EXPECT_NE(crowd.said().find("55 of 100 ranks"), std::string::npos) << crowd.said();
  EXPECT_NE(crowd.said().find("only " + std::to_string(first + 62) + " files"), std::string::npos) << crowd.said();
  const std::string said = crowd.said();
  crowd.set_limit(crowd.most());
  watch.watch_the_rest();
  EXPECT_EQ(Crowd::first_free(), first + 2 + 100);
  EXPECT_EQ(crowd.said(), said) << "nothing is missing now";
  for (int peer = 1; peer < Crowd::kRanks; ++peer) EXPECT_FALSE(watch.has_ended(peer, kSecondNs));
}

TEST(LifeWatch, TheFabricComesFirst) {
  Crowd crowd;
  crowd.leave_free(222);
  const int first = Crowd::first_free();
  LifeWatch watch(crowd.bootstrap(), {.nodes = {}, .processes = {}, .fabric_files = 2}, "127.0.0.1");
  EXPECT_EQ(Crowd::first_free(), first + 2 + 10);
  watch.watch_the_rest();
  EXPECT_EQ(Crowd::first_free(), first + 2 + 100) << "the fabric has taken none";
  EXPECT_EQ(crowd.said(), "");
}

TEST(LifeWatch, NoDescriptorAtAllIsSaidToo) {
  Crowd crowd;
  crowd.leave_free(1);  // the listener's
  LifeWatch watch(crowd.bootstrap(), {}, "127.0.0.1");
  watch.watch_the_rest();
  EXPECT_NE(crowd.said().find("100 of 100 ranks"), std::string::npos) << crowd.said();
  for (int peer = 1; peer < Crowd::kRanks; ++peer) EXPECT_FALSE(watch.has_ended(peer, kSecondNs));
}

TEST(LifeWatch, RanksOfOneNodeAreNotWatchedHere) {
  const Descriptor listener = listen_on(Address::parse("127.0.0.1", 0), {}, 16);
  Misled bootstrap(Address::of_socket(listener.get()).port());
  const LifeWatch watch(bootstrap, {.nodes = {0, 0}, .processes = {}}, "127.0.0.1");
  EXPECT_LT(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), 0);
}

TEST(LifeWatch, AHostWithoutAnAddressIsNotWatched) {
  Misled bootstrap(1);
  LifeWatch watch(bootstrap, {}, "192.0.2.1");  // nobody's address (RFC 5737)
  EXPECT_FALSE(watch.has_ended(1, kSecondNs));
  EXPECT_FALSE(watch.has_ended(0, kSecondNs));
}

}  // namespace
}  // namespace torii
