// SPDX-License-Identifier: Apache-2.0
// By what ranks of one node see each other's end, as the handshake hands it over, beside adopted memory and children.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/own_descriptor.hpp"
#include "tests/transports/shared_memory/adoption_fixture.hpp"
#include "transports/shared_memory/handshake.hpp"

namespace torii::shared_memory {
namespace {

/// `handed` receives the descriptors of the other rank.
HandshakePlan plan_of(int rank, const std::string& lower, const Arena& arena, Handed& handed) {
  HandshakePlan plan;
  plan.rank = rank;
  plan.names = {rank == 0 ? "" : lower, rank == 0 ? "the higher one dials" : ""};
  plan.who = {"rank 0", "rank 1"};
  plan.arena_fd = arena.fd();
  plan.life_fd = arena.life().get();
  plan.timeout_s = 10;
  plan.lost = [](int) { return false; };
  plan.take = [&handed](int, Handed given) { handed = std::move(given); };
  return plan;
}

/// Rank 1 as a process that joins, calls `life` and waits. This process is rank 0.
class Peer {
 public:
  explicit Peer(const std::function<void(Arena&)>& life) {
    const Listener listener(2);
    pid_ = fork();
    if (pid_ == 0) {
      Arena arena(kArenaBytesMin);
      const Listener own(2);
      hand_over_arenas(own, plan_of(1, listener.name(), arena, handed_));
      life(arena);
      for (;;) pause();
    }
    hand_over_arenas(listener, plan_of(0, "", arena_, handed_));
  }
  ~Peer() {
    end();
    waitpid(pid_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  void end() const { kill(pid_, SIGKILL); }
  bool lives_for(int ms) const {
    while (ms > 0 && is_held(handed_.life)) {
      usleep(1000);
      --ms;
    }
    return ms == 0;
  }

 private:
  Arena arena_{kArenaBytesMin};
  pid_t pid_ = -1;
  Handed handed_;
};

/// A child that lives for 2 s.
void leave_child() {
  if (fork() != 0) return;
  sleep(2);
  _exit(0);
}

TEST(Life, EndsWithTheProcessWhateverItsChildren) {
  const auto forks = [](Arena&) { leave_child(); };
  const auto adopts_and_forks = [](Arena& arena) {
    const OwnPages pages(4);
    Adoption adoption(arena);
    adoption.adopt(pages.data(), pages.bytes());
    leave_child();
    for (;;) pause();
  };
  const auto gives_back = [](Arena& arena) {
    const OwnPages pages(4);
    Adoption adoption(arena);
    adoption.adopt(pages.data(), pages.bytes());
    leave_child();
    adoption.give_back(pages.data(), pages.bytes());
    for (;;) pause();
  };
  for (const std::function<void(Arena&)>& life :
       {std::function<void(Arena&)>(forks), {adopts_and_forks}, {gives_back}}) {
    const Peer peer(life);
    EXPECT_TRUE(peer.lives_for(60));
    peer.end();
    EXPECT_FALSE(peer.lives_for(1000));
  }
  const Peer becomes_another([](Arena&) { execl("/bin/sleep", "sleep", "2", nullptr); });
  EXPECT_FALSE(becomes_another.lives_for(1500));
}

/// Two copies of this library may be in one process, with a rank each. What one gets of the other and closes must not
/// end the other for the rest.
TEST(Life, OfThisProcessIsNotHandedOver) {
  const Arena arenas[] = {Arena(kArenaBytesMin), Arena(kArenaBytesMin)};
  const Listener listeners[] = {Listener(2), Listener(2)};
  Handed handed[2];
  std::thread higher([&] { hand_over_arenas(listeners[1], plan_of(1, listeners[0].name(), arenas[1], handed[1])); });
  hand_over_arenas(listeners[0], plan_of(0, "", arenas[0], handed[0]));
  higher.join();
  for (Handed& one : handed) {
    EXPECT_TRUE(one.arena.open());
    EXPECT_FALSE(one.life.open());
    one.arena = Descriptor();
  }
  const pid_t child = fork();
  if (child == 0) _exit(is_held(arenas[0].life()) && is_held(arenas[1].life()) ? 7 : 8);
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 7) << how;
}

/// The kernel hands over as many descriptors as there is room for, here the first of two.
TEST(Life, NeedsADescriptor) {
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  Handed handed;
  int free = -1;
  try {
    const Listener listener(2);
    const Arena arena(kArenaBytesMin);
    const pid_t child = fork();
    if (child == 0) {
      const Arena own_arena(kArenaBytesMin);
      const Listener own(2);
      HandshakePlan plan = plan_of(1, listener.name(), own_arena, handed);
      plan.timeout_s = 0.3;
      try {
        hand_over_arenas(own, plan);
      } catch (const Error&) {
      }
      _exit(0);
    }
    free = dup(0);
    close(free);
    const rlimit room_for_two = {static_cast<rlim_t>(free) + 2, limit.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &room_for_two), 0);
    hand_over_arenas(listener, plan_of(0, "", arena, handed));
    ADD_FAILURE() << "a connection, an arena and a life in two descriptors";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::no_resource);
    EXPECT_STREQ(error.what(), ("too many open files: this process may open " + std::to_string(free + 2) +
                                ", and opens up to 2 for each of the 1 other ranks of its node while it joins; raise "
                                "the limit (ulimit -n)")
                                   .c_str());
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_GT(wait(nullptr), 0);
}

/// In a child the handlers that close its copies run before those that give it the adopted pages, and must not need
/// them.
TEST(Life, DescriptorsOfOneProcessMayLieOnAdoptedPages) {
  if (kUnderThreadSanitizer || kUnderAddressSanitizer) GTEST_SKIP() << "sanitizers refuse reads of a whole heap page";
  Arena arena(kArenaBytesMin);
  Adoption adoption(arena);
  std::vector<Descriptor> others;
  std::vector<std::unique_ptr<OwnDescriptor>> own;
  std::vector<std::unique_ptr<char[]>> buffers;
  constexpr std::size_t kBytes = 40;
  for (int i = 0; i < 50; ++i) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    others.emplace_back(ends[1]);
    own.push_back(std::make_unique<OwnDescriptor>(OwnDescriptor::of([&] { return Descriptor(ends[0]); })));
    buffers.push_back(std::make_unique<char[]>(kBytes));
  }
  for (const auto& buffer : buffers) adoption.adopt(buffer.get(), kBytes);
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& one : own) {
      if (one->open()) _exit(8);
    }
    for (;;) pause();
  }
  usleep(50'000);
  own.clear();
  for (const Descriptor& other : others) {
    pollfd entry{other.get(), POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, 0), 1);
  }
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, WNOHANG), 0) << how;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const auto& buffer : buffers) adoption.give_back(buffer.get(), kBytes);
}

}  // namespace
}  // namespace torii::shared_memory
