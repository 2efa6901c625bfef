// SPDX-License-Identifier: Apache-2.0
// Descriptors that no child keeps: children that are forked, while another thread opens more, and children that exec.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "runtime/base/own_descriptor.hpp"

namespace torii {
namespace {

/// A connected pair of which this process's end is its own.
struct Pair {
  OwnDescriptor own;
  Descriptor other;

  Pair() {
    own = OwnDescriptor::of([this] {
      int ends[2] = {-1, -1};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      other = Descriptor(ends[1]);
      return Descriptor(ends[0]);
    });
  }
  bool other_end_has_ended() const {
    pollfd entry{other.get(), POLLIN, 0};
    return poll(&entry, 1, 0) > 0;
  }
};

/// A child that lives until this object ends, and whether it found the descriptor open.
class Child {
 public:
  explicit Child(int descriptor) : pid_(fork()) {
    if (pid_ != 0) return;
    if (fcntl(descriptor, F_GETFD) >= 0) _exit(1);
    pause();
  }
  ~Child() { (void)keeps_it(); }
  bool keeps_it() {
    if (pid_ <= 0) return false;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status);
  }

 private:
  pid_t pid_;
};

TEST(OwnDescriptors, AForkedChildKeepsNone) {
  Pair first;
  const Pair second;
  Pair moved;
  moved = std::move(first);
  Child child(moved.own.get());
  usleep(50'000);  // the child has looked
  EXPECT_FALSE(second.other_end_has_ended());
  EXPECT_FALSE(moved.other_end_has_ended());
  moved.own = OwnDescriptor();
  EXPECT_TRUE(moved.other_end_has_ended());
  EXPECT_FALSE(second.other_end_has_ended());
  EXPECT_FALSE(child.keeps_it());
}

TEST(OwnDescriptors, AChildOfAChildKeepsNone) {
  auto pair = std::make_unique<Pair>();
  const pid_t pid = fork();
  if (pid == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) pause();
    pair->own = OwnDescriptor();  // what it does not have it does not close
    usleep(100'000);
    kill(grandchild, SIGKILL);
    _exit(0);
  }
  usleep(20'000);
  EXPECT_FALSE(pair->other_end_has_ended());
  pair->own = OwnDescriptor();
  EXPECT_TRUE(pair->other_end_has_ended());
  waitpid(pid, nullptr, 0);
}

TEST(OwnDescriptors, AChildThatExecsKeepsNone) {
  Pair pair;
  const pid_t pid = vfork();
  if (pid == 0) {
    execl("/bin/sleep", "sleep", "5", nullptr);
    _exit(1);
  }
  pair.own = OwnDescriptor();
  EXPECT_TRUE(pair.other_end_has_ended());
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(OwnDescriptors, NoForkComesBetween) {
  std::atomic<bool> is_over = false;
  std::vector<Pair> pairs;
  pairs.reserve(300);
  std::thread opener([&] {
    for (int i = 0; i < 300; ++i) pairs.emplace_back();
    is_over = true;
  });
  std::vector<pid_t> children;
  while (!is_over && children.size() < 40) {
    const pid_t pid = fork();
    if (pid == 0) pause();
    children.push_back(pid);
  }
  opener.join();
  usleep(50'000);  // the last child has closed them
  for (Pair& pair : pairs) {
    EXPECT_FALSE(pair.other_end_has_ended());
    pair.own = OwnDescriptor();
    EXPECT_TRUE(pair.other_end_has_ended());
  }
  for (const pid_t pid : children) kill(pid, SIGKILL);
  for (const pid_t pid : children) waitpid(pid, nullptr, 0);
}

TEST(OwnDescriptors, NothingIsKeptOfAFailure) {
  errno = 0;
  const OwnDescriptor none = OwnDescriptor::of([] { return Descriptor(open("nowhere", O_RDONLY | O_CLOEXEC)); });
  EXPECT_FALSE(none.open());
  EXPECT_EQ(none.get(), -1);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace torii
